"""What every ledger must do, part one: runs, and records that read back as they were written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.application.ledger import admission, gates, promotion, publications, retirement, sealing
from dpone_provider.application.ports.ledger import (
    Conflict,
    EnvironmentRow,
    Ledger,
    LedgerTransaction,
    Lock,
)
from dpone_provider.domain import attempt as attempts
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import GateName, OccurrenceId, Principal
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Failure, Refused
from dpone_provider.domain.publication import PublicationState
from dpone_provider.domain.slot import Claim
from tests.conformance.ledger_histories import (
    FAILURES,
    TWO_SERVICES,
    LedgerStage,
    attempt_by_hand,
    broken,
    event,
    proof_of,
    read,
    reversed_,
    writing_then,
)
from tests.conformance.ledger_world import (
    ANALYTICS,
    DATABASE,
    DELAYS,
    ELSEWHERE,
    ENVIRONMENT,
    FLIGHTS,
    LOAD,
    MART,
    PLANES,
    WAREHOUSE,
    WORKS,
    Steps,
    binding_of,
    deadline,
    document,
    free_slot,
    good,
    occurrence_of,
    publication_of,
    slot_of,
    uuid_of,
    verdict_of,
)


class LedgerRecords(LedgerStage):
    """Runs and records."""

    # ── what a run is ───────────────────────────────────────────────────────────────────────────────────────────────

    def test_says_who_it_is(self, ledger: Ledger) -> None:
        """The authority is the same on a kept connection and on a new one."""
        found = good(ledger.authority())
        assert found == good(ledger.afresh().authority())
        assert found.incarnation

    def test_commits_what_the_script_wrote(self, ledger: Ledger, steps: Steps) -> None:
        """What one run wrote the next one reads, on a new connection too."""
        entered = steps.request(occurrence_of("first"))
        assert good(read(ledger.afresh(), lambda tx: tx.pending(ENVIRONMENT))) == entered

    @pytest.mark.parametrize("failure", FAILURES, ids=lambda one: type(one).__name__)
    def test_a_failure_rolls_back_and_is_returned(self, ledger: Ledger, failure: Failure) -> None:
        """Whatever failure a script returns, nothing that it wrote stays."""
        assert ledger.run("fails", writing_then(lambda: failure), deadline()) is failure
        assert read(ledger, lambda tx: tx.environment(ENVIRONMENT, Lock.NONE)) is None

    def test_an_exception_rolls_back_and_passes(self, ledger: Ledger) -> None:
        """A script that raises leaves nothing behind, and its exception is not changed."""

        class Odd(Exception):
            """No exception of ours."""

        def raise_odd() -> None:
            raise Odd

        with pytest.raises(Odd):
            ledger.run("raises", writing_then(raise_odd), deadline())
        assert read(ledger, lambda tx: tx.environment(ENVIRONMENT, Lock.NONE)) is None

    def test_sequence_only_grows(self, ledger: Ledger) -> None:
        """Numbers grow within a transaction, from one to the next, and after a rollback."""
        first = read(ledger, lambda tx: [tx.next_sequence(), tx.next_sequence()])
        ledger.run("fails", lambda tx: FAILURES[0] if tx.next_sequence() else None, deadline())
        last = read(ledger, lambda tx: tx.next_sequence())
        assert first == sorted(set(first))
        assert last > first[-1]

    # ── environments and occurrences ────────────────────────────────────────────────────────────────────────────────

    def test_nothing_is_none_or_empty(self, ledger: Ledger) -> None:
        """Reading what is not there gives None or nothing."""
        some = OccurrenceId(uuid_of("first"))

        def look(tx: LedgerTransaction) -> list[object]:
            return [
                tx.environment("none", Lock.UPDATE),
                tx.occurrence(some, Lock.SHARE),
                tx.pending("none"),
                tx.receipt(some),
                tx.workload(some, "load"),
                tx.incarnation(DATABASE.incarnation_id, Lock.EXCLUSIVE),
                tx.run_occurrence("none", "0" * 64),
                tx.attempt(binding_of(occurrence_of("first")).attempt_id, Lock.UPDATE),
                tx.gate(binding_of(occurrence_of("first")).attempt_id, WAREHOUSE.service_id, Lock.UPDATE),
                tx.gate_of_principal(WAREHOUSE.service_id, "dpone_v3_x"),
                tx.publication(binding_of(occurrence_of("first")).attempt_id, Lock.UPDATE),
                tx.unresolved_publication(slot_of(FLIGHTS)),
                *tx.occurrences(None),
                *tx.registered(DATABASE.incarnation_id),
                *tx.slots([slot_of(FLIGHTS)], Lock.UPDATE),
                *tx.claims([slot_of(FLIGHTS)]),
                *tx.attempts(environment=None, unresolved_only=False, limit=10),
                *tx.principals_used(WAREHOUSE.service_id),
            ]

        assert set(read(ledger, look)) == {None}

    def test_a_request_reads_back_whole(self, ledger: Ledger, steps: Steps) -> None:
        """Occurrence, document, workloads, slots and claims of a request."""
        new = occurrence_of("first")
        steps.request(new, (*WORKS, TWO_SERVICES))
        one = new.occurrence_id
        assert read(ledger, lambda tx: tx.occurrence(one, Lock.NONE)) == new
        assert read(ledger, lambda tx: tx.request_document(one)) == document("request first")
        for work in (*WORKS, TWO_SERVICES):
            assert read(ledger, lambda tx, name=work.name: tx.workload(one, name)) == work.row(new)
        assert read(ledger, lambda tx: tx.workload(one, "other")) is None
        assert set(read(ledger, lambda tx: tx.registered(DATABASE.incarnation_id))) == {FLIGHTS, DELAYS, PLANES}
        assert read(ledger, lambda tx: tx.incarnation(DATABASE.incarnation_id, Lock.NONE)) == DATABASE
        ids = sorted(slot_of(one) for one in (FLIGHTS, DELAYS, PLANES))
        claims = tuple(Claim(slot, one) for slot in ids)
        assert read(ledger, lambda tx: tx.claims_of(one)) == claims
        assert read(ledger, lambda tx: tx.claims(reversed_(ids))) == claims

    def test_slots_come_in_id_order_under_each_lock(self, ledger: Ledger, steps: Steps) -> None:
        """However they are asked for."""
        steps.request(occurrence_of("first"), (*WORKS, TWO_SERVICES))
        ids = sorted(slot_of(one) for one in (FLIGHTS, DELAYS, PLANES))
        for lock in Lock:
            found = read(ledger, lambda tx, lock=lock: tx.slots(reversed_(ids), lock))
            assert [slot.slot_id for slot in found] == ids
        assert found[ids.index(slot_of(PLANES))] == free_slot(PLANES)

    def test_a_receipt_reads_back(self, ledger: Ledger, steps: Steps) -> None:
        """Document and epochs, in slot order; the slots are owned."""
        prepared = steps.prepare(steps.request(occurrence_of("first")))
        bytes_, epochs = good(read(ledger, lambda tx: tx.receipt(prepared.occurrence_id)))  # type: ignore[misc]
        assert epochs == tuple((slot, 1) for slot in sorted([slot_of(FLIGHTS), slot_of(DELAYS)]))
        assert bytes_.startswith(b'{"name":"receipt')
        owned = read(ledger, lambda tx: tx.slots_owned_by(prepared.occurrence_id))
        assert owned == tuple(slot for slot, _ in epochs)
        assert read(ledger, lambda tx: tx.environment(ENVIRONMENT, Lock.NONE)) == EnvironmentRow(
            name=ENVIRONMENT, holder_id=prepared.occurrence_id, generation=1
        )

    def test_occurrences_come_newest_first(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """All of them, or an environment's."""
        second = steps.request(occurrence_of("second", after="first"))
        other = steps.request(occurrence_of("other", environment=ELSEWHERE), (TWO_SERVICES,))
        assert read(ledger, lambda tx: tx.occurrences(None)) == (other, second, active)
        assert read(ledger, lambda tx: tx.occurrences(ENVIRONMENT)) == (second, active)
        assert read(ledger, lambda tx: tx.pending(ELSEWHERE)) == other

    def test_a_promotion_over_another(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """Epochs of kept slots grow, dropped ones are free, the predecessor is RETIRED."""
        second = steps.request(occurrence_of("second", after="first"), (LOAD,))
        steps.drain(second, active)
        prepared = steps.prepare(second)
        kept, dropped = read(ledger, lambda tx: [tx.slots([slot_of(one)], Lock.NONE)[0] for one in (FLIGHTS, DELAYS)])
        assert (kept.owner_id, kept.epoch) == (second.occurrence_id, 2)
        assert (dropped.owner_id, dropped.epoch) == (None, 1)
        gone = read(ledger, lambda tx: tx.occurrence(active.occurrence_id, Lock.NONE))
        assert gone is not None
        assert gone.state is OccurrenceState.RETIRED
        assert prepared.generation == 2

    def test_withdraw_drops_the_claims(self, ledger: Ledger, steps: Steps) -> None:
        """And another request may follow."""
        first = steps.request(occurrence_of("first"))
        gone = steps.do("withdraw", lambda tx: promotion.withdraw(tx, first.occurrence_id))
        assert gone.state is OccurrenceState.WITHDRAWN
        assert read(ledger, lambda tx: tx.claims_of(first.occurrence_id)) == ()
        steps.request(occurrence_of("second"))

    def test_abandon_and_retire_release_everything(self, ledger: Ledger, steps: Steps) -> None:
        """A prepared occurrence that never became ACTIVE."""
        first = steps.prepare(steps.request(occurrence_of("first")))
        steps.do("abandon", lambda tx: retirement.abandon(tx, first.occurrence_id))
        steps.retire(first)
        assert read(ledger, lambda tx: tx.slots_owned_by(first.occurrence_id)) == ()
        environment = read(ledger, lambda tx: tx.environment(ENVIRONMENT, Lock.NONE))
        assert environment == EnvironmentRow(name=ENVIRONMENT, holder_id=None, generation=1)

    # ── attempts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def test_an_attempt_reads_back_whole(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """Its binding, services, slots with epochs."""
        admitted = steps.admit(binding_of(active, MART, run="run ☃"))
        for lock in Lock:
            assert read(ledger, lambda tx, lock=lock: tx.attempt(admitted.attempt_id, lock)) == admitted
        assert admitted.reads == (slot_of(FLIGHTS),)
        run_key = admitted.binding.airflow.run_key
        assert read(ledger, lambda tx: tx.run_occurrence(ENVIRONMENT, run_key)) == active.occurrence_id

    def test_attempts_by_what_is_asked(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """Newest first, live ones, tries of one task, writers and readers of slots."""
        old = steps.ended(steps.admit(binding_of(active, LOAD)), AttemptState.FAILED)
        mart = steps.admit(binding_of(active, MART, run="run 2"))
        asked = read(
            ledger,
            lambda tx: {
                "all": tx.attempts(environment=None, unresolved_only=False, limit=10),
                "newest": tx.attempts(environment=ENVIRONMENT, unresolved_only=False, limit=1),
                "unresolved": tx.attempts(environment=ENVIRONMENT, unresolved_only=True, limit=10),
                "unresolved everywhere": tx.attempts(environment=None, unresolved_only=True, limit=10),
                "elsewhere": tx.attempts(environment=ELSEWHERE, unresolved_only=False, limit=10),
                "live": tx.live_attempts(active.occurrence_id),
                "tries": tx.tries_of(ENVIRONMENT, old.binding.airflow.task_key),
                "writers": tx.live_writers([slot_of(FLIGHTS), slot_of(DELAYS)]),
                "readers": tx.running_readers([slot_of(FLIGHTS)]),
                "no readers": tx.running_readers([slot_of(DELAYS)]),
            },
        )
        assert asked == {
            "all": (mart, old),
            "newest": (mart,),
            "unresolved": (mart,),
            "unresolved everywhere": (mart,),
            "elsewhere": (),
            "live": (mart,),
            "tries": (old,),
            "writers": (mart,),
            "readers": (mart,),
            "no readers": (),
        }

    def test_unknown_keeps_written_slots_and_frees_read_ones(
        self, ledger: Ledger, steps: Steps, active: Occurrence
    ) -> None:
        """COMMIT_UNKNOWN still writes, and reads no more; reconciling frees the rest."""
        mart = steps.admit(binding_of(active, MART))
        gate = steps.bar(mart)
        stuck = steps.seal(mart, AttemptState.COMMIT_UNKNOWN, gate)
        assert read(ledger, lambda tx: tx.live_writers([slot_of(DELAYS)])) == (stuck,)
        assert read(ledger, lambda tx: tx.running_readers([slot_of(FLIGHTS)])) == ()
        verdict = verdict_of(AttemptState.FAILED, gate)
        ended = steps.do("reconcile", lambda tx: sealing.reconcile(tx, mart.attempt_id, verdict))
        assert ended.state is AttemptState.FAILED
        assert read(ledger, lambda tx: tx.live_writers([slot_of(DELAYS)])) == ()

    def test_a_run_belongs_to_one_occurrence(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """Inserting the same again is nothing; an attempt of the run under another occurrence is refused."""
        run_key = binding_of(active).airflow.run_key
        for _ in range(2):
            steps.do("run", lambda tx: tx.add_run(ENVIRONMENT, run_key, active.occurrence_id))
        second = steps.request(occurrence_of("second", after="first"))
        steps.drain(second, active)
        steps.activate(steps.prepare(second))
        admit = lambda tx: admission.admit(tx, ENVIRONMENT, binding_of(second))  # noqa: E731
        outcome = ledger.run("admit", admit, deadline())
        assert isinstance(outcome, Refused)
        assert outcome.problem.reason == attempts.RUN_OF_THIS_OCCURRENCE.name
        late = attempt_by_hand(second, epoch=2, sequence=900)
        assert ledger.run("by hand", lambda tx: tx.add_attempt(late), deadline()) == Conflict("attempt_of_its_run")

    def test_node_events_keep_their_order(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """As entered, repeated ones too."""
        events = [event(running, "b", "started"), event(running, "a", "started"), event(running, "b", "success")]
        for one in events:
            steps.do("node", lambda tx, one=one: sealing.record_node(tx, one))
        assert read(ledger, lambda tx: tx.node_events(running.attempt_id)) == tuple(events)

    def test_a_stray_node_event_is_refused_by_law(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """After sealing nothing is added to what was judged."""
        steps.ended(running, AttemptState.FAILED)
        assert broken(ledger, lambda tx: tx.add_node_event(event(running, "a", "started"))) == "attempt_is_running"

    # ── gates, proofs, publications ─────────────────────────────────────────────────────────────────────────────────

    def test_a_gate_reads_back_in_each_state(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """With the evidence of its closing."""
        gate = steps.journal(running)
        for step in (steps.ready, steps.deliver, steps.closing, steps.closed):
            gate = step(gate)
            for lock in Lock:
                asked = read(ledger, lambda tx, lock=lock: tx.gate(running.attempt_id, WAREHOUSE.service_id, lock))
                assert asked == gate
        assert gate.state is GateState.CLOSED
        assert gate.delivered
        name = gate.principal.name
        assert read(ledger, lambda tx: tx.gate_of_principal(WAREHOUSE.service_id, name)) == gate
        assert read(ledger, lambda tx: tx.principals_used(WAREHOUSE.service_id)) == {name}
        assert read(ledger, lambda tx: tx.principals_used(ANALYTICS.service_id)) == frozenset()

    def test_gates_come_by_name(self, ledger: Ledger, steps: Steps) -> None:
        """Of all services, whatever the order of journaling."""
        active = steps.promote(occurrence_of("first"), (TWO_SERVICES,))
        running = steps.admit(binding_of(active, TWO_SERVICES))
        pooled = Principal(service_id=ANALYTICS.service_id, name="dpone_v3_a_pool_1", sid="dpone_v3_a_pool_1")
        one = steps.journal(running)
        other = steps.do("journal", lambda tx: gates.journal(tx, running.attempt_id, pooled))
        expected = sorted([one, other], key=lambda gate: gate.principal.name)
        assert list(read(ledger, lambda tx: tx.gates(running.attempt_id))) == expected

    def test_proofs_come_in_ledger_order_with_their_evidence(
        self, ledger: Ledger, steps: Steps, running: Attempt
    ) -> None:
        """Names in the order in which the proof gave them."""
        same = [GateName(service.service_id, "b") for service in (ANALYTICS, WAREHOUSE)]
        named = (*same, GateName(ANALYTICS.service_id, "a"))
        made = [proof_of(running, number, names) for number, names in ((700, named), (600, ()))]
        for one in made:
            steps.do("prove", lambda tx, one=one: tx.add_proof(one, document(f"proof {one.ledger_sequence}")))
        assert read(ledger, lambda tx: tx.proofs(running.attempt_id)) == tuple(reversed(made))
        evidence = (document("proof 600"), document("proof 700"))
        assert read(ledger, lambda tx: tx.evidence(running.attempt_id)) == evidence

    def test_a_publication_reads_back_in_each_state(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """And is found as the slot's unresolved one until it is settled."""
        slot = running.writes[0][0]
        current = steps.intend(publication_of(running))
        look = lambda tx: (tx.publication(running.attempt_id, Lock.UPDATE), tx.unresolved_publication(slot))  # noqa: E731
        assert read(ledger, look) == (current, current)
        staged = steps.stage(current)
        assert read(ledger, look) == (staged, staged)
        sent = steps.do("dispatch", lambda tx: publications.dispatch(tx, running.attempt_id))
        assert read(ledger, look) == (sent, sent)
        verdict = verdict_of(AttemptState.SUCCEEDED, steps.bar(running), publication=PublicationState.PUBLISHED)
        steps.do("seal", lambda tx: sealing.seal(tx, running.attempt_id, verdict))
        settled = replace(sent, state=PublicationState.PUBLISHED)
        assert read(ledger, look) == (settled, None)
