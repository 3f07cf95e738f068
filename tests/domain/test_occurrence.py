"""The occurrence's machine: each transition from each state, each guard, nothing beside the edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain import occurrence as machine
from dpone_provider.domain.occurrence import EDGES, FINAL, HOLDING, PENDING, Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Refused
from tests.domain.records import FIRST, NEVER_PREPARED, SECOND, THIRD, occurrence, reason

S = OccurrenceState
Transition = Callable[[Occurrence], Occurrence | Refused]
REQUEST = occurrence(S.REQUESTED, one=SECOND, predecessor=FIRST)

TRANSITIONS: dict[str, tuple[Transition, S, S, str]] = {
    "request": (lambda o: machine.request(o, holder=None, pending=None), S.REQUESTED, S.REQUESTED, "is_requested"),
    "drain": (lambda o: machine.drain(o, successor=REQUEST, unknown_attempts=0), S.ACTIVE, S.RETIRING, "is_active"),
    "begin": (lambda o: machine.begin_retirement(o, unknown_attempts=0), S.ACTIVE, S.RETIRING, "is_active"),
    "prepare": (
        lambda o: machine.prepare(o, predecessor=None, holder=None, live=0, generation=4),
        S.REQUESTED,
        S.PREPARED,
        "is_requested",
    ),
    "activate": (
        lambda o: machine.activate(o, pointed_at=FIRST, holder=FIRST),
        S.PREPARED,
        S.ACTIVE,
        "is_prepared",
    ),
    "withdraw": (machine.withdraw, S.REQUESTED, S.WITHDRAWN, "is_requested"),
    "abandon": (machine.abandon, S.PREPARED, S.RETIRING, "is_prepared"),
    "retire": (lambda o: machine.retire(o, live=0), S.RETIRING, S.RETIRED, "is_retiring"),
}


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("name", TRANSITIONS)
def test_each_transition_has_one_beginning(name: str, state: S) -> None:
    """From its own state it moves on; from any other it is refused by its state guard."""
    transition, before, after, guard = TRANSITIONS[name]
    outcome = transition(occurrence(state))
    if state is before:
        assert isinstance(outcome, Occurrence)
        assert outcome.state is after
        assert replace(outcome, state=state, generation=occurrence(state).generation) == occurrence(state)
    else:
        assert reason(outcome) == f"occurrence_{guard}"


def test_the_transitions_are_the_edges() -> None:
    """No edge without a transition, no transition without an edge."""
    assert {(before, after) for _, before, after, _ in TRANSITIONS.values() if before is not after} == EDGES


def test_the_sets_of_states() -> None:
    """What is pending, what holds, what is final."""
    assert {S.REQUESTED, S.PREPARED} == PENDING
    assert {S.PREPARED, S.ACTIVE, S.RETIRING} == HOLDING
    assert {state for state in S if not any(before is state for before, _ in EDGES)} == FINAL


@given(st.lists(st.sampled_from(sorted(TRANSITIONS)), max_size=8))
def test_no_sequence_leaves_the_edges(names: list[str]) -> None:
    """Whatever is tried in whatever order; a final state is never left; the generation is kept once given."""
    current = occurrence(S.REQUESTED)
    for name in names:
        outcome = TRANSITIONS[name][0](current)
        if isinstance(outcome, Occurrence):
            assert outcome.state is current.state or (current.state, outcome.state) in EDGES
            assert current.generation in (None, outcome.generation)
            assert current.state not in FINAL
            current = outcome


def test_request_wants_nothing_pending_and_the_right_predecessor() -> None:
    """I15, I2."""
    assert machine.request(REQUEST, holder=FIRST, pending=None) is REQUEST
    assert reason(machine.request(REQUEST, holder=FIRST, pending=occurrence(S.PREPARED))) == "no_other_pending"
    for holder in (None, THIRD):
        assert reason(machine.request(REQUEST, holder=holder, pending=None)) == "predecessor_is_holder"


@pytest.mark.parametrize(
    "successor",
    [
        occurrence(S.WITHDRAWN, one=SECOND, predecessor=FIRST),
        occurrence(S.PREPARED, one=SECOND, predecessor=FIRST),
        occurrence(S.REQUESTED, one=SECOND, predecessor=THIRD),
        occurrence(S.REQUESTED, one=SECOND),
    ],
    ids=str,
)
def test_only_its_requested_successor_drains(successor: Occurrence) -> None:
    """A withdrawn promotion does not drain the live one."""
    outcome = machine.drain(occurrence(S.ACTIVE), successor=successor, unknown_attempts=0)
    assert reason(outcome) == "drained_by_its_successor"


def test_an_unknown_attempt_refuses_the_drain() -> None:
    """I10, for both ways into RETIRING."""
    active = occurrence(S.ACTIVE)
    assert reason(machine.drain(active, successor=REQUEST, unknown_attempts=1)) == "no_commit_unknown"
    assert reason(machine.begin_retirement(active, unknown_attempts=2)) == "no_commit_unknown"


@pytest.mark.parametrize("state", S)
def test_prepare_wants_a_predecessor_that_takes_no_work(state: S) -> None:
    """RETIRING or RETIRED."""
    outcome = machine.prepare(REQUEST, predecessor=occurrence(state), holder=FIRST, live=0, generation=2)
    if state in (S.RETIRING, S.RETIRED):
        assert isinstance(outcome, Occurrence)
        assert outcome.generation == 2
    else:
        assert reason(outcome) == "predecessor_takes_no_work"


def test_prepare_wants_the_expected_holder() -> None:
    """The holder is the predecessor, or nobody any more."""
    retired = occurrence(S.RETIRED)
    assert not reason(machine.prepare(REQUEST, predecessor=retired, holder=None, live=0, generation=2))
    assert reason(machine.prepare(REQUEST, predecessor=retired, holder=THIRD, live=0, generation=2)) == (
        "predecessor_is_holder"
    )
    assert reason(machine.prepare(REQUEST, predecessor=None, holder=None, live=0, generation=2)) == (
        "predecessor_is_holder"
    )


def test_nothing_is_prepared_or_retired_over_live_attempts() -> None:
    """I3, I11."""
    retiring = occurrence(S.RETIRING)
    prepared = machine.prepare(REQUEST, predecessor=retiring, holder=FIRST, live=1, generation=2)
    assert reason(prepared) == "no_live_attempt"
    assert reason(machine.retire(retiring, live=1)) == "no_live_attempt"


def test_activate_wants_pointer_and_holder() -> None:
    """I12, I15."""
    prepared = occurrence(S.PREPARED)
    for elsewhere in (None, SECOND):
        assert reason(machine.activate(prepared, pointed_at=elsewhere, holder=FIRST)) == "pointer_names_it"
        assert reason(machine.activate(prepared, pointed_at=FIRST, holder=elsewhere)) == "environment_held_by_it"


@pytest.mark.parametrize("state", S)
def test_a_generation_exists_from_prepared_on(state: S) -> None:
    """And never before: such a record cannot be built."""
    wrong = 1 if state in NEVER_PREPARED else None
    with pytest.raises(ValueError, match="generation"):
        replace(occurrence(state), generation=wrong)


def test_nothing_precedes_itself() -> None:
    """Such a record cannot be built."""
    with pytest.raises(ValueError, match="precedes itself"):
        occurrence(S.REQUESTED, predecessor=FIRST)


def test_a_name_for_messages() -> None:
    """Id, state, environment."""
    assert str(occurrence()) == f"occurrence {FIRST} (ACTIVE) of environment prod"
