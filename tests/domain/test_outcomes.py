"""Failures as values."""

from __future__ import annotations

import pytest

from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.outcomes import (
    Busy,
    DponeError,
    Failed,
    Failure,
    Problem,
    Refused,
    StateChange,
    Unknown,
    busy,
    fail,
    refuse,
    type_of_failure,
    unknown,
    unwind,
)

PARTS = {"found": 3, "allowed": 4, "next_command": "dpone status"}
REFUSED = refuse("reason", "it", found=3, allowed=4, next_command="dpone status")
BUSY = busy("reason", "it", holder="somebody", allowed=4, next_command="dpone status")
FAILED = fail("reason", "it", found=3, allowed=4, next_command="dpone status")
UNKNOWN = unknown("reason", "it", found=3, allowed=4, next_command="dpone status")


@pytest.mark.parametrize(
    ("failure", "kind", "code", "change"),
    [
        (REFUSED, Refused, ExitCode.REFUSED, StateChange.NONE),
        (BUSY, Busy, ExitCode.BUSY, StateChange.NONE),
        (FAILED, Failed, ExitCode.FAILED, StateChange.NONE),
        (UNKNOWN, Unknown, ExitCode.UNKNOWN, StateChange.MAYBE),
    ],
)
def test_each_class_has_its_code_and_says_what_changed(
    failure: Failure, kind: type[Failure], code: ExitCode, change: StateChange
) -> None:
    """Refused, failed, unknown and busy are different types."""
    assert type(failure) is kind
    assert isinstance(failure, type_of_failure)
    assert failure.exit_code is code
    assert failure.change is change


def test_a_failure_may_say_that_something_changed() -> None:
    """Exactly what its message says."""
    some = fail("reason", "it", found=3, allowed=4, next_command="look", change=StateChange.SAID)
    assert some.change is StateChange.SAID


def test_busy_names_its_holder() -> None:
    """In the message too."""
    assert BUSY.holder == "somebody"
    assert BUSY.problem.found == "held by somebody"


def test_a_message_in_one_paragraph() -> None:
    """Reason, subject, found, allowed, the way out."""
    assert str(REFUSED.problem) == "reason: it: found 3; allowed: 4. Next: dpone status"


@pytest.mark.parametrize("empty", ["reason", "subject", "found", "allowed", "next_command"])
def test_no_part_of_a_problem_is_empty(empty: str) -> None:
    """A message without a way out is a fault of its own."""
    parts = dict.fromkeys(("reason", "subject", "found", "allowed", "next_command"), "x") | {empty: ""}
    with pytest.raises(ValueError, match=empty):
        Problem(**parts)


def test_unwinding_carries_the_failure() -> None:
    """An exception only unwinds; the value is what is told."""
    with pytest.raises(DponeError) as raised:
        unwind(REFUSED)
    assert raised.value.failure is REFUSED
    assert str(raised.value) == str(REFUSED.problem)


def test_exit_codes_are_documented_numbers() -> None:
    """Scripts depend on them."""
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "CHANGES_PLANNED": 3,
        "REFUSED": 10,
        "BUSY": 11,
        "UNKNOWN": 12,
        "INCOMPLETE": 13,
        "INTERRUPTED": 130,
    }
