"""Ways to a record in each state, and the small scripts that the ledger's suite is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import pytest

from dpone_provider.application.ledger import promotion, publications, retirement, sealing
from dpone_provider.application.ports.ledger import (
    EnvironmentRow,
    Ledger,
    LedgerTransaction,
    NodeEvent,
)
from dpone_provider.domain.attempt import Attempt, AttemptState, Proof, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import GateName, digest_of
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import DponeError, Failed, Failure, busy, fail, refuse, unknown
from dpone_provider.domain.publication import Publication, PublicationState
from tests.conformance.ledger_world import (
    ANALYTICS,
    ENVIRONMENT,
    FLIGHTS,
    PLANES,
    WAREHOUSE,
    Steps,
    Work,
    binding_of,
    deadline,
    document,
    good,
    occurrence_of,
    publication_of,
    slot_of,
    uuid_of,
    verdict_of,
)

T = TypeVar("T")
TWO_SERVICES = Work("export", writes=(PLANES,), services=(WAREHOUSE, ANALYTICS))
FAILURES: tuple[Failure, ...] = (
    refuse("told", "it", found="a", allowed="b", next_command="c"),
    busy("told", "it", holder="a", allowed="b", next_command="c"),
    fail("told", "it", found="a", allowed="b", next_command="c"),
    unknown("told", "it", found="a", allowed="b", next_command="c"),
)


def read(ledger: Ledger, script: Callable[[LedgerTransaction], T]) -> T:
    """Return what ``script`` reads."""
    return good(ledger.run("read", script, deadline()))


def broken(ledger: Ledger, script: Callable[[LedgerTransaction], object]) -> str:
    """Run ``script``, which a law must refuse, and return the law's name."""
    with pytest.raises(DponeError) as refused:
        ledger.run("by hand", script, deadline())
    assert isinstance(refused.value.failure, Failed)
    return refused.value.failure.problem.reason


def writing_then(end: Callable[[], T]) -> Callable[[LedgerTransaction], T]:
    """Return a script that writes a row and then does ``end``."""

    def script(tx: LedgerTransaction) -> T:
        tx.add_environment(EnvironmentRow(name=ENVIRONMENT, holder_id=None, generation=0))
        return end()

    return script


def reversed_(ids: list[T]) -> list[T]:
    """Return ids in the opposite order, with one twice."""
    return [*reversed(ids), ids[0]]


def event(running: Attempt, node: str, status: str) -> NodeEvent:
    """Return a node's event."""
    return NodeEvent(attempt_id=running.attempt_id, node_id=node, status=status, rebuilt_whole=node == "a")


def proof_of(running: Attempt, number: int, names: tuple[GateName, ...]) -> Proof:
    """Return an outcome proof with this ledger sequence number."""
    return Proof(
        attempt_id=running.attempt_id,
        kind=ProofKind.OUTCOME,
        evidence_digest=digest_of(document(f"proof {number}")),
        names_gates=names,
        ledger_sequence=number,
    )


def attempt_by_hand(
    occurrence: Occurrence, *, sequence: int, epoch: int = 1, run: str = "run 1", instance: str = ""
) -> Attempt:
    """Return a RUNNING attempt of the first workload, as no script would make it."""
    binding = binding_of(occurrence, run=run)
    if instance:
        tried = replace(binding.airflow, task_instance_id=UUID(uuid_of(instance)))
        binding = replace(binding, airflow=tried)
    return Attempt(
        attempt_id=binding.attempt_id,
        binding=binding,
        environment=ENVIRONMENT,
        services=(WAREHOUSE.service_id,),
        writes=((slot_of(FLIGHTS), epoch),),
        reads=(),
        state=AttemptState.RUNNING,
        ledger_sequence=sequence,
    )


def adding(attempt: Attempt) -> Callable[[LedgerTransaction], None]:
    """Return a script that inserts the attempt with its run."""

    def script(tx: LedgerTransaction) -> None:
        tx.add_run(attempt.environment, attempt.binding.airflow.run_key, attempt.binding.occurrence_id)
        tx.add_attempt(attempt)

    return script


def occurrence_in(steps: Steps, state: OccurrenceState) -> Occurrence:
    """Return an occurrence that came to ``state`` by the protocol's own steps."""
    found = steps.request(occurrence_of("first"))
    if state is OccurrenceState.REQUESTED:
        return found
    one = found.occurrence_id
    if state is OccurrenceState.WITHDRAWN:
        return steps.do("withdraw", lambda tx: promotion.withdraw(tx, one))
    found = steps.prepare(found)
    if state is OccurrenceState.PREPARED:
        return found
    found = steps.activate(found)
    if state is OccurrenceState.ACTIVE:
        return found
    found = steps.do("begin retirement", lambda tx: retirement.begin_retirement(tx, one))
    return found if state is OccurrenceState.RETIRING else steps.retire(found)


def gate_in(steps: Steps, running: Attempt, state: GateState) -> Gate:
    """Return a gate that came to ``state`` by the protocol's own steps."""
    gate = steps.journal(running)
    for reached, step in (
        (GateState.JOURNALED, steps.ready),
        (GateState.READY, steps.closing),
        (GateState.CLOSING, steps.closed),
    ):
        if state is reached:
            return gate
        gate = step(gate)
    return gate


def publication_in(steps: Steps, running: Attempt, state: PublicationState) -> Publication:
    """Return a publication that came to ``state`` by the protocol's own steps."""
    found = steps.intend(publication_of(running))
    if state is PublicationState.INTENDED:
        return found
    found = steps.stage(found)
    if state is PublicationState.STAGED:
        return found
    found = steps.do("dispatch", lambda tx: publications.dispatch(tx, running.attempt_id))
    if state is PublicationState.DISPATCHED:
        return found
    outcome = {
        PublicationState.PUBLISHED: AttemptState.SUCCEEDED,
        PublicationState.NOT_PUBLISHED: AttemptState.FAILED,
        PublicationState.UNKNOWN: AttemptState.COMMIT_UNKNOWN,
    }[state]
    verdict = verdict_of(outcome, steps.bar(running), publication=state, gone=True)
    steps.do("seal", lambda tx: sealing.seal(tx, running.attempt_id, verdict))
    return replace(found, state=state)


class LedgerStage:
    """What each part of the suite begins with; a subclass gives the fixture ``ledger``: empty, nobody connected."""

    @pytest.fixture
    def steps(self, ledger: Ledger) -> Steps:
        """Act on the ledger under test."""
        return Steps(ledger)

    @pytest.fixture
    def active(self, steps: Steps) -> Occurrence:
        """An ACTIVE first occurrence."""
        return steps.promote(occurrence_of("first"))

    @pytest.fixture
    def running(self, steps: Steps, active: Occurrence) -> Attempt:
        """A RUNNING attempt of it."""
        return steps.admit(binding_of(active))
