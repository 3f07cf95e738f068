"""Failures as JSON and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.application.failure_codec import from_json, to_json
from dpone_provider.domain.outcomes import Busy, Failed, Failure, Problem, Refused, StateChange, Unknown

PROBLEM = Problem(reason="told", subject="it", found="a", allowed="b", next_command="c")
FAILURES: tuple[Failure, ...] = (
    Refused(PROBLEM),
    Busy(PROBLEM, "somebody"),
    *(Failed(PROBLEM, change=change) for change in StateChange),
    Unknown(PROBLEM),
    Unknown(PROBLEM, change=StateChange.NONE),
)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda one: f"{type(one).__name__} {one.change}")
def test_each_comes_back_as_it_was(failure: Failure) -> None:
    """Found: whether state may have changed was lost on the way for all but failures."""
    assert from_json(to_json(failure)) == failure


def test_a_class_that_nobody_knows_is_a_failure() -> None:
    assert from_json(to_json(Refused(PROBLEM)) | {"class": "sulking"}) == Failed(PROBLEM)


def test_a_holder_without_a_name() -> None:
    said = {name: value for name, value in to_json(Busy(PROBLEM, "x")).items() if name != "holder"}
    assert from_json(said) == Busy(PROBLEM, "unnamed")


@pytest.mark.parametrize("part", ["reason", "subject", "found", "allowed", "next_command"])
@pytest.mark.parametrize("value", ["", None, 7])
def test_a_failure_without_a_part_is_nonsense(part: str, value: object) -> None:
    found = from_json(dict(to_json(Refused(PROBLEM))) | {part: value})
    assert isinstance(found, Failed)
    assert found.problem.reason == "child_spoke_nonsense"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from(["class", "state_change", "holder", "reason", "found", "event"]) | st.text(), JSON)
)
def test_whatever_a_child_says_is_a_failure(said: dict[str, object]) -> None:
    """Found: an unknown state_change was a ValueError in the controller."""
    whole = {"subject": "a", "allowed": "b", "next_command": "c", "found": "d", "reason": "e"} | said
    assert isinstance(from_json(whole), (Refused, Busy, Failed, Unknown))
    assert isinstance(from_json(said), (Refused, Busy, Failed, Unknown))
