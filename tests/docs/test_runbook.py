"""The runbook has every state that can be left behind, each with exactly one next command."""

from __future__ import annotations

import re
from enum import StrEnum

import pytest

from dpone_provider.application import status
from dpone_provider.application.recovery import Recovered
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.occurrence import OccurrenceState
from dpone_provider.domain.publication import PublicationState
from tests.docs.code_mentions import mentions, named_commands
from tests.docs.dpone_lines import command_at
from tests.docs.pages import page
from tests.docs.reference_reasons import all_reasons

RUNBOOK = page("how-to-recover.md")
NEEDS_NOTHING = (
    {OccurrenceState.ACTIVE, OccurrenceState.RETIRED, OccurrenceState.WITHDRAWN}
    | {AttemptState.SUCCEEDED, AttemptState.FAILED}
    | {GateState.CLOSED}
    | {PublicationState.PUBLISHED, PublicationState.NOT_PUBLISHED}
)
STATES = [
    (machine, state) for machine in (OccurrenceState, AttemptState, GateState, PublicationState) for state in machine
]
NO_REASONS = {"dpone_stage"}


def left_behind() -> list[list[str]]:
    """The rows of the first table: state, how it is seen, next."""
    _, _, rest = RUNBOOK.text.partition("## What can be left behind")
    lines = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize(("machine", "state"), STATES, ids=lambda each: str(each))
def test_every_state_is_there(machine: type[StrEnum], state: StrEnum) -> None:
    kind = machine.__name__.removesuffix("State").lower()
    rows = [row for row in left_behind() if row[0].startswith(kind) and f"`{state}`" in row[0]]
    needs_nothing = re.search(r"^(`[A-Z_]+`.*) need nothing\.$", RUNBOOK.text, re.MULTILINE)
    assert needs_nothing is not None
    if state in NEEDS_NOTHING:
        assert f"`{state}`" in needs_nothing[1]
        assert not rows
    else:
        assert rows, f"no row of the runbook begins with {kind} and names {state}"


def test_every_state_has_exactly_one_next_command() -> None:
    rows = left_behind()
    assert len(rows) > 10
    assert [row[0] for row in rows if len(re.findall(r"`dpone [^`]+`", row[2])) != 1] == []


def test_what_status_says_to_do_is_in_the_runbook() -> None:
    said = {
        path_of(command)
        for each in mentions()
        if each.path.as_posix() == status.__file__
        for command in named_commands(each)
    }
    assert said
    told = {path_of(piece.text.removeprefix("dpone ")) for piece in RUNBOOK.code if piece.text.startswith("dpone ")}
    assert said <= told


def test_what_recover_says_is_in_the_runbook() -> None:
    missing = [each for each in Recovered if each.value not in RUNBOOK.text]
    assert not missing


def test_reasons_in_the_runbook_are_given_by_the_code() -> None:
    known = {each.code for each in all_reasons()} | NO_REASONS
    named = {piece.text for piece in RUNBOOK.code if re.fullmatch(r"[a-z]+(?:_[a-z]+)+", piece.text)}
    assert named <= known


def path_of(line: str) -> tuple[str, ...]:
    """The words of a command line that name the command."""
    words = line.split()
    _, rest = command_at(words)
    return tuple(words[: len(words) - len(rest)])
