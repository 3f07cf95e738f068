"""The ledger's scripts: each finds its own work done when it is run again, and refuses what is out of turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from dpone_provider.application.ledger import admission, gates, promotion, publications, retirement, sealing
from dpone_provider.application.ledger.calls import call, require
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, OccurrenceId, ServiceId
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Busy, DponeError, Refused, fail
from dpone_provider.domain.publication import PublicationState, Verb
from tests.conformance.ledger_world import (
    ENVIRONMENT,
    LOAD,
    WAREHOUSE,
    Steps,
    binding_of,
    document,
    occurrence_of,
    principal_of,
    publication_of,
    request_script,
    verdict_of,
)
from tests.simulation.actors import Actors
from tests.simulation.clock import SimulatedClock
from tests.simulation.ledger import SimulatedLedger
from tests.simulation.ledger_rows import ConstraintBroken
from tests.simulation.outcomes import failure_of
from tests.simulation.wire import Wire

NOBODY = AttemptId("0" * 64)
FAILED = fail("told", "it", found="a", allowed="b", next_command="c")


@pytest.fixture
def ledger() -> SimulatedLedger:
    """An empty ledger."""
    return SimulatedLedger(Wire(Actors()))


@pytest.fixture
def steps(ledger: SimulatedLedger) -> Steps:
    """The protocol's steps over it."""
    return Steps(ledger)


@pytest.fixture
def active(steps: Steps) -> Occurrence:
    """An ACTIVE occurrence."""
    return steps.promote(occurrence_of("first"))


@pytest.fixture
def running(steps: Steps, active: Occurrence) -> Attempt:
    """A RUNNING attempt."""
    return steps.admit(binding_of(active))


def run(ledger: SimulatedLedger, script: Callable[[LedgerTransaction], object]) -> object:
    """Run a script and return what it came to, failures too."""
    deadline = Deadline.after(SimulatedClock(ledger.wire.actors), 10.0)
    return call(ledger, "script", script, deadline)


def refused(ledger: SimulatedLedger, reason: str, script: Callable[[LedgerTransaction], object]) -> Refused:
    """Run a script that must refuse, and leave everything as it was."""
    before = ledger.rows.copy()
    found = failure_of(run(ledger, script), Refused, reason)
    assert ledger.rows == before
    return found


class TestCalls:
    """What a run is to its caller."""

    def test_a_constraint_that_decided_is_busy(self, ledger: SimulatedLedger) -> None:
        def conflicting(tx: LedgerTransaction) -> None:
            raise ConstraintBroken("one_execution")

        busy = failure_of(run(ledger, conflicting), Busy, "ledger_conflict")
        assert "one_execution" in busy.holder

    def test_an_unwound_failure_is_returned_or_raised(self, ledger: SimulatedLedger) -> None:
        def unwinding(tx: LedgerTransaction) -> None:
            raise DponeError(FAILED)

        deadline = Deadline.after(SimulatedClock(ledger.wire.actors), 10.0)
        assert call(ledger, "script", unwinding, deadline) == FAILED
        with pytest.raises(DponeError):
            require(ledger, "script", unwinding, deadline)
        assert require(ledger, "script", lambda tx: 7, deadline) == 7


class TestPromotion:
    """Request, drain, prepare, activate, withdraw, abandon, retire."""

    def test_a_request_that_stands_is_told(self, ledger: SimulatedLedger, steps: Steps) -> None:
        first = steps.request(occurrence_of("first"))
        again = run(ledger, partial(request_script, first, (LOAD,)))
        assert again == promotion.Requested(first, resumed=True)

    def test_a_drain_that_was_made_is_told(self, ledger: SimulatedLedger, steps: Steps, active: Occurrence) -> None:
        second = steps.request(occurrence_of("second", after="first"))
        for _ in range(2):
            assert steps.drain(second, active).state is OccurrenceState.RETIRING
        steps.prepare(second)
        assert steps.drain(second, active).state is OccurrenceState.RETIRED

    def test_a_withdrawn_request_drains_nobody(self, ledger: SimulatedLedger, steps: Steps, active: Occurrence) -> None:
        second = steps.request(occurrence_of("second", after="first"))
        steps.do("withdraw", lambda tx: promotion.withdraw(tx, second.occurrence_id))
        ids = second.occurrence_id, active.occurrence_id
        refused(ledger, "drained_by_its_successor", lambda tx: promotion.drain(tx, *ids))

    def test_a_prepare_that_was_made_is_told(self, steps: Steps) -> None:
        first = steps.request(occurrence_of("first"))
        assert steps.prepare(first) == steps.prepare(first)
        assert steps.activate(first) == steps.activate(first)
        assert steps.prepare(first).state is OccurrenceState.ACTIVE

    def test_a_slot_that_changed_hands_by_hand_stops_prepare(
        self, ledger: SimulatedLedger, steps: Steps, active: Occurrence
    ) -> None:
        """Neither a gain nor a release is made of what is not the predecessor's."""
        second = steps.request(occurrence_of("second", after="first"))
        steps.drain(second, active)
        stranger = OccurrenceId("00000000-0000-4000-8000-000000000009")
        for slot_id, slot in ledger.rows.slots.copy().items():
            ledger.rows.slots[slot_id] = replace(slot, owner_id=stranger)
        prepare = lambda tx: promotion.prepare(tx, second.occurrence_id, lambda *_: b"{}")  # noqa: E731
        refused(ledger, "slot_free_or_predecessors", prepare)

    def test_endings_again_are_told(self, steps: Steps) -> None:
        first = steps.prepare(steps.request(occurrence_of("first")))
        one = first.occurrence_id
        for _ in range(2):
            assert steps.do("abandon", lambda tx: retirement.abandon(tx, one)).state is OccurrenceState.RETIRING
        assert steps.retire(first).state is OccurrenceState.RETIRED
        for script in (retirement.abandon, retirement.begin_retirement, retirement.retire):
            assert steps.do("again", partial(_apply, script, one)).state is OccurrenceState.RETIRED

    def test_nothing_retires_while_something_lives(
        self, ledger: SimulatedLedger, steps: Steps, running: Attempt
    ) -> None:
        one = running.binding.occurrence_id
        steps.do("begin retirement", lambda tx: retirement.begin_retirement(tx, one))
        refused(ledger, "no_live_attempt", lambda tx: retirement.retire(tx, one))

    def test_an_environment_that_somebody_else_holds_stays_held(
        self, ledger: SimulatedLedger, steps: Steps, active: Occurrence
    ) -> None:
        second = steps.request(occurrence_of("second", after="first"))
        steps.drain(second, active)
        steps.activate(steps.prepare(second))
        assert steps.retire(active).state is OccurrenceState.RETIRED
        assert ledger.rows.environments[ENVIRONMENT].holder_id == second.occurrence_id


class TestAdmission:
    """Looking before admitting."""

    def test_nobody_keeps_out_what_no_request_holds(self, ledger: SimulatedLedger, active: Occurrence) -> None:
        binding = replace(binding_of(active), workload_id="nothing")
        assert run(ledger, lambda tx: admission.holders(tx, binding)) == ()


class TestGates:
    """Journal, ready, deliver, bar, closing, closed."""

    def test_nothing_of_nobody(self, ledger: SimulatedLedger, running: Attempt) -> None:
        service = WAREHOUSE.service_id
        refused(ledger, "no_such_attempt", lambda tx: gates.journal(tx, NOBODY, principal_of(running.binding)))
        refused(ledger, "no_such_gate", lambda tx: gates.closing(tx, running.attempt_id, service))
        other = ServiceId("00000000-0000-4000-8000-000000000009")
        refused(ledger, "no_such_gate", lambda tx: gates.deliver(tx, running.attempt_id, other))

    def test_a_second_login_is_not_journaled(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        steps.journal(running)
        principal = principal_of(running.binding)
        refused(ledger, "one_gate_per_service", lambda tx: gates.journal(tx, running.attempt_id, principal))

    def test_what_is_created_rolls_back_with_its_failure(
        self, ledger: SimulatedLedger, steps: Steps, running: Attempt
    ) -> None:
        gate = steps.journal(running)
        make = lambda tx: gates.ready(tx, running.attempt_id, gate.service_id, lambda _: FAILED)  # noqa: E731
        assert run(ledger, make) == FAILED
        assert _gate(ledger, running).state is GateState.JOURNALED

    def test_ready_and_delivered_once(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        gate = steps.deliver(steps.ready(steps.journal(running)))
        made: list[object] = []
        again = lambda tx: gates.ready(tx, running.attempt_id, gate.service_id, made.append)  # noqa: E731
        refused(ledger, "gate_is_journaled", again)
        refused(ledger, "delivered_once", lambda tx: gates.deliver(tx, running.attempt_id, gate.service_id))
        assert not made

    def test_no_power_after_the_end(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        gate = steps.closed(steps.closing(steps.journal(running)))
        steps.seal(running, AttemptState.FAILED, gate)
        one, service = running.attempt_id, gate.service_id
        principal = principal_of(running.binding)
        for script in (
            lambda tx: gates.journal(tx, one, principal),
            lambda tx: gates.ready(tx, one, service, lambda _: None),
            lambda tx: gates.deliver(tx, one, service),
        ):
            refused(ledger, "attempt_is_running", script)

    def test_barring_what_has_a_gate_tells_that_gate(self, steps: Steps, running: Attempt) -> None:
        gate = steps.journal(running)
        assert steps.bar(running) == gate

    def test_closing_again_is_told(self, steps: Steps, running: Attempt) -> None:
        gate = steps.closing(steps.journal(running))
        assert steps.closing(gate) == gate
        closed = steps.closed(gate)
        assert steps.closing(gate) == closed
        assert steps.closed(gate) == closed
        assert steps.bar(running) == closed

    def test_what_is_not_quiescent_is_not_closed(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        gate = steps.closing(steps.journal(running))
        close = lambda tx: gates.closed(  # noqa: E731
            tx, running.attempt_id, gate.service_id, quiescent=False, evidence=document("a session")
        )
        refused(ledger, "no_session_left", close)

    def test_what_is_not_closing_is_not_closed(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        gate = steps.ready(steps.journal(running))
        close = lambda tx: gates.closed(  # noqa: E731
            tx, running.attempt_id, gate.service_id, quiescent=True, evidence=document("nothing")
        )
        refused(ledger, "gate_is_closing", close)


class TestPublications:
    """Intend, stage, dispatch."""

    def test_nothing_of_nobody(self, ledger: SimulatedLedger, running: Attempt) -> None:
        refused(ledger, "no_such_publication", lambda tx: publications.standing(tx, running.attempt_id))
        refused(ledger, "no_such_publication", lambda tx: publications.stage(tx, running.attempt_id, 1, "x"))

    def test_an_intent_that_stands_is_told(self, steps: Steps, running: Attempt) -> None:
        new = publication_of(running)
        assert steps.intend(new) == steps.intend(new)

    def test_another_intent_of_the_same_attempt_is_refused(
        self, ledger: SimulatedLedger, steps: Steps, running: Attempt
    ) -> None:
        steps.intend(publication_of(running))
        other = publication_of(running, Verb.EXCHANGE)
        refused(ledger, "no_unresolved_publication", lambda tx: publications.intend(tx, other))

    @pytest.mark.parametrize("state", [GateState.CLOSING, GateState.CLOSED])
    def test_nothing_is_intended_behind_a_door_that_closes(
        self, ledger: SimulatedLedger, steps: Steps, running: Attempt, state: GateState
    ) -> None:
        gate = steps.closing(steps.journal(running))
        if state is GateState.CLOSED:
            steps.closed(gate)
        new = publication_of(running)
        refused(ledger, "gate_is_open", lambda tx: publications.intend(tx, new))

    def test_nothing_is_intended_by_what_ended(self, ledger: SimulatedLedger, steps: Steps, active: Occurrence) -> None:
        ended = steps.ended(steps.admit(binding_of(active)), AttemptState.FAILED)
        new = publication_of(ended)
        refused(ledger, "gate_is_open", lambda tx: publications.intend(tx, new))

    def test_an_exchange_needs_the_closed_gate(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        steps.stage(steps.intend(publication_of(running, Verb.EXCHANGE)))
        dispatch = lambda tx: publications.dispatch(tx, running.attempt_id)  # noqa: E731
        refused(ledger, "writer_closed_before_exchange", dispatch)
        steps.ready(steps.journal(running))
        refused(ledger, "writer_closed_before_exchange", dispatch)

    def test_an_attempt_without_publication_settles_none(self, ledger: SimulatedLedger, running: Attempt) -> None:
        settle = partial(_settle, running)
        assert run(ledger, settle) is None


class TestSealing:
    """Seal, reconcile, node events."""

    def test_a_seal_that_was_made_is_told(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        gate = steps.bar(running)
        sealed = steps.seal(running, AttemptState.FAILED, gate)
        before = ledger.rows.copy()
        assert steps.seal(running, AttemptState.SUCCEEDED, gate) == sealed
        assert ledger.rows == before

    def test_a_seal_needs_gates_and_their_names(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        nameless = verdict_of(AttemptState.FAILED)
        refused(ledger, "gate_for_every_service", lambda tx: sealing.seal(tx, running.attempt_id, nameless))
        gate = steps.closing(steps.journal(running))
        named = verdict_of(AttemptState.FAILED, gate)
        refused(ledger, "gates_closed", lambda tx: sealing.seal(tx, running.attempt_id, named))
        steps.closed(gate)
        refused(ledger, "proof_read_after_gates", lambda tx: sealing.seal(tx, running.attempt_id, nameless))

    def test_a_publication_that_cannot_be_settled_keeps_the_attempt(
        self, ledger: SimulatedLedger, steps: Steps, running: Attempt
    ) -> None:
        steps.intend(publication_of(running))
        gate = steps.bar(running)
        published = verdict_of(AttemptState.SUCCEEDED, gate, publication=PublicationState.PUBLISHED)
        refused(ledger, "publication_is_unsettled", lambda tx: sealing.seal(tx, running.attempt_id, published))
        lingering = verdict_of(AttemptState.FAILED, gate, publication=PublicationState.NOT_PUBLISHED)
        refused(ledger, "staged_object_gone", lambda tx: sealing.seal(tx, running.attempt_id, lingering))

    def test_a_reconciliation_that_was_made_is_told(
        self, ledger: SimulatedLedger, steps: Steps, running: Attempt
    ) -> None:
        gate = steps.bar(running)
        steps.seal(running, AttemptState.COMMIT_UNKNOWN, gate)
        good, bad = (verdict_of(one, gate) for one in (AttemptState.SUCCEEDED, AttemptState.FAILED))
        for _ in range(2):
            done = steps.do("reconcile", lambda tx: sealing.reconcile(tx, running.attempt_id, good))
            assert done.state is AttemptState.SUCCEEDED
        refused(ledger, "attempt_is_unknown", lambda tx: sealing.reconcile(tx, running.attempt_id, bad))

    def test_unknown_is_no_reconciliation(self, ledger: SimulatedLedger, steps: Steps, running: Attempt) -> None:
        gate = steps.bar(running)
        steps.seal(running, AttemptState.COMMIT_UNKNOWN, gate)
        still = verdict_of(AttemptState.COMMIT_UNKNOWN, gate)
        refused(ledger, "no_commit_unknown", lambda tx: sealing.reconcile(tx, running.attempt_id, still))


def _apply(
    script: Callable[[LedgerTransaction, OccurrenceId], Occurrence | Refused], one: OccurrenceId, tx: LedgerTransaction
) -> Occurrence | Refused:
    return script(tx, one)


def _gate(ledger: SimulatedLedger, running: Attempt) -> Gate:
    return ledger.rows.gates[running.attempt_id, WAREHOUSE.service_id]


def _settle(running: Attempt, tx: LedgerTransaction) -> object:
    return publications.settled(tx, running.attempt_id, PublicationState.PUBLISHED, staged_object_gone=True)
