"""The publication's machine."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from dpone_provider.domain import publication as machine
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.publication import EDGES, SETTLED, UNRESOLVED, Publication, PublicationState, Verb
from tests.domain.records import attempt, publication, reason

P = PublicationState
NOT_RUNNING = [state for state in AttemptState if state is not AttemptState.RUNNING]
RUNNING = attempt()


def dispatched(one: Publication, *, owns: bool = True, writer: GateState | None = GateState.CLOSED) -> object:
    """Dispatch while the attempt is RUNNING."""
    return machine.dispatch(one, attempt=RUNNING, owns_slot=owns, writer_gate=writer)


@pytest.mark.parametrize("state", P)
def test_intend_stage_and_dispatch_from_each_state(state: P) -> None:
    """Each has one beginning."""
    one = publication(state)
    intended = machine.intend(one, attempt=RUNNING, unresolved=None)
    assert reason(intended) == ("" if state is P.INTENDED else "publication_is_intended")
    staged = machine.stage(one, attempt=RUNNING, rows=3, content_digest="xxh:3")
    if state is P.INTENDED:
        assert staged == replace(one, state=P.STAGED, rows=3, content_digest="xxh:3")
    else:
        assert reason(staged) == "publication_is_intended"
    sent = dispatched(one)
    assert sent == replace(one, state=P.DISPATCHED) if state is P.STAGED else reason(sent) == "publication_is_staged"


@pytest.mark.parametrize("state", NOT_RUNNING)
def test_nothing_goes_on_for_an_attempt_that_ended(state: AttemptState) -> None:
    """I6, I11."""
    ended = attempt(state)
    assert reason(machine.intend(publication(), attempt=ended, unresolved=None)) == "attempt_is_running"
    assert reason(machine.stage(publication(), attempt=ended, rows=0, content_digest="")) == "attempt_is_running"
    staged = publication(P.STAGED)
    outcome = machine.dispatch(staged, attempt=ended, owns_slot=True, writer_gate=GateState.CLOSED)
    assert reason(outcome) == "attempt_is_running"


@pytest.mark.parametrize("state", sorted(UNRESOLVED))
def test_an_unresolved_publication_of_the_target_blocks(state: P) -> None:
    """I10."""
    outcome = machine.intend(publication(), attempt=RUNNING, unresolved=publication(state))
    assert reason(outcome) == "no_unresolved_publication"


def test_a_dispatch_owns_its_slot() -> None:
    """I11."""
    assert reason(dispatched(publication(P.STAGED), owns=False)) == "dispatch_owns_its_slot"


@pytest.mark.parametrize(("verb", "writer"), list(product(Verb, [None, *GateState])))
def test_an_exchange_or_rename_waits_for_the_closed_gate(verb: Verb, writer: GateState | None) -> None:
    """A transaction that replaces is the worker's own; the others are the controller's, after its end."""
    outcome = dispatched(publication(P.STAGED, verb=verb), writer=writer)
    free = verb is Verb.REPLACE or writer is GateState.CLOSED
    assert reason(outcome) == ("" if free else "writer_closed_before_exchange")


@pytest.mark.parametrize(("state", "outcome", "gone"), list(product(P, P, [True, False])))
def test_settle_from_each_state_to_each(state: P, outcome: P, gone: bool) -> None:
    """Along the edges, to an outcome; NOT_PUBLISHED needs the staged object gone."""
    settled = machine.settle(publication(state), outcome, staged_object_gone=gone)
    if (state, outcome) not in EDGES or outcome in (P.STAGED, P.DISPATCHED):
        assert reason(settled) == "publication_is_unsettled"
    elif outcome is P.UNKNOWN and state is not P.DISPATCHED:
        assert reason(settled) == "doubted_by_judgement"
    elif outcome is P.NOT_PUBLISHED and not gone:
        assert reason(settled) == "staged_object_gone"
    else:
        assert settled == replace(publication(state), state=outcome)


def test_the_sets_of_states() -> None:
    """Settled ones are never left."""
    assert {P.PUBLISHED, P.NOT_PUBLISHED} == SETTLED
    assert set(P) - SETTLED == UNRESOLVED
    assert not [edge for edge in EDGES if edge[0] in SETTLED]


def test_a_wrong_publication_cannot_be_built() -> None:
    """An exchange without target, a rename over one, a count without digest."""
    with pytest.raises(ValueError, match="target's identity"):
        replace(publication(verb=Verb.EXCHANGE), target_identity=None)
    with pytest.raises(ValueError, match="free"):
        replace(publication(verb=Verb.RENAME), target_identity="target")
    with pytest.raises(ValueError, match="together"):
        replace(publication(), rows=1)
    with pytest.raises(ValueError, match="together"):
        replace(publication(), content_digest="xxh:1")


def test_a_name_for_messages() -> None:
    """Attempt and state."""
    assert str(publication(P.STAGED)) == f"publication of attempt {RUNNING.attempt_id[:12]} (STAGED)"
