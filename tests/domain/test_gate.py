"""The gate's machine: one login, forward only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain import gate as machine
from dpone_provider.domain.gate import EDGES, Gate, GateState
from dpone_provider.domain.identity import digest_of
from dpone_provider.domain.outcomes import Refused
from tests.domain.records import EVIDENCE, SERVICE, binding, gate, principal, reason

G = GateState
ATTEMPT = binding().attempt_id
Transition = Callable[[Gate], Gate | Refused]
TRANSITIONS: dict[str, tuple[Transition, dict[G, G], str]] = {
    "ready": (machine.ready, {G.JOURNALED: G.READY}, "gate_is_journaled"),
    "deliver": (machine.deliver, {G.READY: G.READY}, "gate_is_ready"),
    "closing": (machine.closing, {G.JOURNALED: G.CLOSING, G.READY: G.CLOSING}, "gate_is_open"),
    "close": (
        lambda one: machine.close(one, quiescent=True, sequence=12, evidence=EVIDENCE),
        {G.CLOSING: G.CLOSED},
        "gate_is_closing",
    ),
}


@pytest.mark.parametrize("state", G)
@pytest.mark.parametrize("name", TRANSITIONS)
def test_each_transition_from_each_state(name: str, state: G) -> None:
    """From its own states it moves on; from any other it is refused by its state guard."""
    transition, moves, guard = TRANSITIONS[name]
    outcome = transition(gate(state))
    if state in moves:
        assert isinstance(outcome, Gate)
        assert outcome.state is moves[state]
        assert outcome.principal == principal()
    else:
        assert reason(outcome) == guard


def test_the_transitions_are_the_edges() -> None:
    """No edge without a transition, no transition without an edge; delivery is a mark, not an edge."""
    moves = {edge for _, states, _ in TRANSITIONS.values() for edge in states.items()}
    assert moves - {(G.READY, G.READY)} == EDGES


@given(st.lists(st.sampled_from(sorted(TRANSITIONS)), max_size=10))
def test_no_sequence_goes_back(names: list[str]) -> None:
    """Delivered at most once, CLOSED never left, and nothing but edges."""
    current, delivered = gate(G.JOURNALED), 0
    for name in names:
        outcome = TRANSITIONS[name][0](current)
        if isinstance(outcome, Gate):
            delivered += name == "deliver"
            assert outcome.state is current.state or (current.state, outcome.state) in EDGES
            assert current.state is not G.CLOSED
            current = outcome
    assert delivered <= 1
    assert current.delivered == (delivered == 1)


def test_journal_and_bar_want_no_gate_yet() -> None:
    """One gate per attempt and service, ever."""
    journaled = machine.journal(ATTEMPT, principal(), existing=None)
    assert journaled == gate(G.JOURNALED)
    barred = machine.bar(ATTEMPT, principal(), existing=None, sequence=10, evidence=EVIDENCE)
    assert barred == replace(gate(G.CLOSED), barred=True)
    for state in G:
        assert reason(machine.journal(ATTEMPT, principal(), existing=gate(state))) == "one_gate_per_service"
        again = machine.bar(ATTEMPT, principal(), existing=gate(state), sequence=10, evidence=EVIDENCE)
        assert reason(again) == "one_gate_per_service"


def test_a_secret_is_delivered_once() -> None:
    """I7."""
    once = machine.deliver(gate(G.READY))
    assert isinstance(once, Gate)
    assert reason(machine.deliver(once)) == "delivered_once"


def test_closed_wants_an_observation_of_nothing() -> None:
    """I8; a blind observer proves nothing."""
    restless = machine.close(gate(G.CLOSING), quiescent=False, sequence=12, evidence=EVIDENCE)
    assert reason(restless) == "no_session_left"


@pytest.mark.parametrize("state", G)
def test_evidence_comes_with_closed(state: G) -> None:
    """Neither without the other: such a record cannot be built."""
    closed = state is G.CLOSED
    for changed in ({"closed_sequence": None if closed else 1}, {"evidence_digest": None if closed else EVIDENCE}):
        with pytest.raises(ValueError, match="evidence"):
            replace(gate(state), **changed)  # type: ignore[arg-type]


def test_only_what_was_ready_was_delivered() -> None:
    """Such a record cannot be built."""
    with pytest.raises(ValueError, match="READY"):
        replace(gate(G.JOURNALED), delivered=True)
    with pytest.raises(ValueError, match="READY"):
        replace(gate(G.CLOSED), delivered=True, barred=True)
    assert replace(gate(G.CLOSED), delivered=True).delivered


def test_names_for_messages() -> None:
    """Principal, state, delivery; the service."""
    name = principal().name
    assert str(gate(G.CLOSED)) == f"gate {name} (CLOSED)"
    assert str(gate(G.READY, delivered=True)) == f"gate {name} (READY, delivered)"
    assert gate().service_id == SERVICE
    assert digest_of(b"evidence") == EVIDENCE
