"""What every ledger must do. A subclass gives the fixture ``ledger``: empty, nobody else connected.

The names of constraints and laws belong to the contract: callers and operators see them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TypeVar
from uuid import UUID

import pytest

from dpone_provider.application.ledger import admission, gates, promotion, publications, retirement, sealing
from dpone_provider.application.ports.ledger import (
    Conflict,
    EnvironmentRow,
    Ledger,
    LedgerTransaction,
    Lock,
    NodeEvent,
)
from dpone_provider.domain import attempt as attempts
from dpone_provider.domain import gate as gate_machine
from dpone_provider.domain import occurrence as occurrences
from dpone_provider.domain import publication as publication_machine
from dpone_provider.domain.attempt import Attempt, AttemptState, Proof, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import OccurrenceId, Principal, digest_of
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import DponeError, Failed, Failure, Refused, busy, fail, refuse, unknown
from dpone_provider.domain.publication import Publication, PublicationState, Verb
from dpone_provider.domain.slot import Claim
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
    Work,
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

T = TypeVar("T")
TWO_SERVICES = Work("export", writes=(PLANES,), services=(WAREHOUSE, ANALYTICS))
FAILURES: tuple[Failure, ...] = (
    refuse("told", "it", found="a", allowed="b", next_command="c"),
    busy("told", "it", holder="a", allowed="b", next_command="c"),
    fail("told", "it", found="a", allowed="b", next_command="c"),
    unknown("told", "it", found="a", allowed="b", next_command="c"),
)


class LedgerSuite:
    """The contract of ``Ledger`` and ``LedgerTransaction``."""

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
        made = [proof_of(running, number, names) for number, names in ((700, ("b", "a")), (600, ()))]
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

    # ── conflicts ───────────────────────────────────────────────────────────────────────────────────────────────────

    def test_one_pending_occurrence_per_environment(self, ledger: Ledger, steps: Steps) -> None:
        """I15."""
        steps.request(occurrence_of("first"))
        second = occurrence_of("second")
        add = lambda tx: tx.add_occurrence(second, document("request second"))  # noqa: E731
        assert ledger.run("by hand", add, deadline()) == Conflict("one_pending_per_environment")

    def test_one_claim_per_slot(self, ledger: Ledger, steps: Steps) -> None:
        """I1."""
        steps.request(occurrence_of("first"))
        other = occurrence_of("other", environment=ELSEWHERE)

        def claim(tx: LedgerTransaction) -> None:
            tx.add_environment(EnvironmentRow(name=ELSEWHERE, holder_id=None, generation=0))
            tx.add_occurrence(other, document("request other"))
            tx.add_claim(Claim(slot_of(FLIGHTS), other.occurrence_id))

        assert ledger.run("by hand", claim, deadline()) == Conflict("one_claim_per_slot")

    def test_one_execution_per_attempt_id(self, ledger: Ledger, running: Attempt) -> None:
        """I4."""
        add = lambda tx: tx.add_attempt(running)  # noqa: E731
        assert ledger.run("by hand", add, deadline()) == Conflict("one_execution")

    def test_one_live_writer_per_slot(self, ledger: Ledger, running: Attempt, active: Occurrence) -> None:
        """I3, for RUNNING attempts."""
        rival = attempt_by_hand(active, run="run 2", sequence=900)
        assert ledger.run("by hand", adding(rival), deadline()) == Conflict("one_live_writer_per_slot")

    def test_one_live_writer_while_unknown(
        self, ledger: Ledger, steps: Steps, running: Attempt, active: Occurrence
    ) -> None:
        """I3 and I10, for COMMIT_UNKNOWN ones."""
        steps.ended(running, AttemptState.COMMIT_UNKNOWN)
        rival = attempt_by_hand(active, run="run 2", sequence=900)
        assert ledger.run("by hand", adding(rival), deadline()) == Conflict("one_live_writer_per_slot")

    def test_one_attempt_per_try(self, ledger: Ledger, steps: Steps, running: Attempt, active: Occurrence) -> None:
        """I4: two instances of one try of one task."""
        steps.ended(running, AttemptState.FAILED)
        twin = attempt_by_hand(active, sequence=900, instance="twin")
        assert ledger.run("by hand", adding(twin), deadline()) == Conflict("one_attempt_per_try")

    def test_one_gate_per_attempt_and_service(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """I9."""
        steps.journal(running)
        other = Principal(service_id=WAREHOUSE.service_id, name="dpone_v3_other", sid="other")
        second = Gate(attempt_id=running.attempt_id, principal=other, state=GateState.JOURNALED)
        outcome = ledger.run("by hand", lambda tx: tx.add_gate(second), deadline())
        assert outcome == Conflict("one_gate_per_attempt_and_service")

    def test_a_principal_is_used_once_per_service(
        self, ledger: Ledger, steps: Steps, running: Attempt, active: Occurrence
    ) -> None:
        """Forever, also after its gate is CLOSED."""
        gate = steps.closed(steps.closing(steps.journal(running)))
        steps.seal(running, AttemptState.FAILED, gate)
        later = steps.admit(binding_of(active, run="run 2"))
        again = Gate(attempt_id=later.attempt_id, principal=gate.principal, state=GateState.JOURNALED)
        outcome = ledger.run("by hand", lambda tx: tx.add_gate(again), deadline())
        assert outcome == Conflict("principal_name_once_per_service")

    def test_an_epoch_is_given_once(self, ledger: Ledger, active: Occurrence, steps: Steps) -> None:
        """I1: no two receipts give the same epoch of a slot."""
        second = steps.request(occurrence_of("second", after="first"))
        add = lambda tx: tx.add_receipt(second.occurrence_id, b"{}", [(slot_of(FLIGHTS), 1)])  # noqa: E731
        assert ledger.run("by hand", add, deadline()) == Conflict("epoch_given_once")

    # ── guards and laws ─────────────────────────────────────────────────────────────────────────────────────────────

    def test_a_move_from_what_is_not_there_is_lost(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """Every guarded write demands the state that was read."""
        moved = replace(running, state=AttemptState.FAILED)
        steps.ended(running, AttemptState.SUCCEEDED)
        assert broken(ledger, lambda tx: tx.move_attempt(running, moved)) == "ledger_guard_lost"
        environment = EnvironmentRow(name=ENVIRONMENT, holder_id=None, generation=7)
        assert broken(ledger, lambda tx: tx.move_environment(environment, environment)) == "ledger_guard_lost"
        slot = free_slot(FLIGHTS)
        assert broken(ledger, lambda tx: tx.move_slot(slot, slot)) == "ledger_guard_lost"

    def test_a_move_changes_no_identity(self, ledger: Ledger, running: Attempt) -> None:
        """A record that differs in more than its state cannot be written."""
        other = replace(running, environment=ELSEWHERE)
        assert broken(ledger, lambda tx: tx.move_attempt(running, other)) == "ledger_guard_lost"

    @pytest.mark.parametrize("edge", sorted(set(product(AttemptState, repeat=2)) - attempts.EDGES), ids="→".join)
    def test_attempts_have_no_other_edge(
        self, ledger: Ledger, steps: Steps, running: Attempt, edge: tuple[AttemptState, AttemptState]
    ) -> None:
        """The ledger refuses each pair of states that is no edge."""
        before = running if edge[0] is AttemptState.RUNNING else steps.ended(running, edge[0])
        after = replace(before, state=edge[1])
        assert broken(ledger, lambda tx: tx.move_attempt(before, after)) == "attempt_edge"

    @pytest.mark.parametrize("edge", sorted(set(product(OccurrenceState, repeat=2)) - occurrences.EDGES), ids="→".join)
    def test_occurrences_have_no_other_edge(
        self, ledger: Ledger, steps: Steps, edge: tuple[OccurrenceState, OccurrenceState]
    ) -> None:
        """The ledger refuses each pair of states that is no edge."""
        before = occurrence_in(steps, edge[0])
        generation = (
            None if edge[1] in (OccurrenceState.REQUESTED, OccurrenceState.WITHDRAWN) else before.generation or 1
        )
        after = replace(before, state=edge[1], generation=generation)
        assert broken(ledger, lambda tx: tx.move_occurrence(before, after)) == "occurrence_edge"

    @pytest.mark.parametrize(
        "edge",
        sorted(
            pair for pair in set(product(GateState, repeat=2)) - gate_machine.EDGES if pair != (GateState.READY,) * 2
        ),
        ids="→".join,
    )
    def test_gates_have_no_other_edge(
        self, ledger: Ledger, steps: Steps, running: Attempt, edge: tuple[GateState, GateState]
    ) -> None:
        """The ledger refuses each pair of states that is no edge; staying is delivery, which only READY has."""
        before = gate_in(steps, running, edge[0])
        closed = edge[1] is GateState.CLOSED
        after = replace(
            before,
            state=edge[1],
            closed_sequence=(before.closed_sequence or 1) if closed else None,
            evidence_digest=(before.evidence_digest or digest_of(b"")) if closed else None,
        )
        law = "delivered_once" if edge[0] is edge[1] else "gate_edge"
        assert broken(ledger, lambda tx: tx.move_gate(before, after)) == law

    @pytest.mark.parametrize(
        "edge",
        sorted(
            pair
            for pair in set(product(PublicationState, repeat=2)) - publication_machine.EDGES
            if pair[1] is not PublicationState.INTENDED
        ),
        ids="→".join,
    )
    def test_publications_have_no_other_edge(
        self, ledger: Ledger, steps: Steps, running: Attempt, edge: tuple[PublicationState, PublicationState]
    ) -> None:
        """The ledger refuses each pair of states that is no edge."""
        before = publication_in(steps, running, edge[0])
        after = replace(before, state=edge[1], rows=2, content_digest="xxh:2")
        assert broken(ledger, lambda tx: tx.move_publication(before, after)) == "publication_edge"

    def test_a_secret_is_delivered_once(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """I7, by the database too."""
        gate = steps.deliver(steps.ready(steps.journal(running)))
        assert broken(ledger, lambda tx: tx.move_gate(gate, gate)) == "delivered_once"
        assert broken(ledger, lambda tx: tx.move_gate(gate, replace(gate, delivered=False))) == "delivered_once"

    def test_no_seal_without_gate_closing_and_proof(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """I9: each part is demanded at commit, whatever the script thinks."""
        ended = replace(running, state=AttemptState.FAILED)

        def seal(tx: LedgerTransaction, *proofs: Proof) -> None:
            for one in proofs:
                tx.add_proof(one, document(f"proof {one.ledger_sequence}"))
            tx.move_attempt(running, ended)

        assert broken(ledger, seal) == "gate_for_every_service"
        gate = steps.closing(steps.journal(running))
        assert broken(ledger, seal) == "gates_closed"
        gate = steps.closed(gate)
        assert broken(ledger, seal) == "proof_read_after_gates"
        names = (gate.principal.name,)
        early = proof_of(running, (gate.closed_sequence or 0) - 1, names)
        assert broken(ledger, lambda tx: seal(tx, early)) == "proof_read_after_gates"
        nameless = proof_of(running, 800, ())
        assert broken(ledger, lambda tx: seal(tx, nameless)) == "proof_read_after_gates"
        of_gates = replace(proof_of(running, 800, names), kind=ProofKind.GATES_CLOSED)
        assert broken(ledger, lambda tx: seal(tx, of_gates)) == "proof_read_after_gates"
        good(ledger.run("seal", lambda tx: seal(tx, proof_of(running, 800, names)), deadline()))

    def test_no_power_for_an_attempt_that_ended(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """I6: JOURNALED, READY, DELIVERED and INTENDED need a RUNNING attempt."""
        running = steps.admit(binding_of(active, MART))
        steps.ended(running, AttemptState.FAILED)
        intent = publication_of(running)
        assert broken(ledger, lambda tx: tx.add_publication(intent)) == "attempt_is_running"

    def test_the_occurrence_of_an_attempt_is_active(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """I5."""
        steps.do("begin retirement", lambda tx: retirement.begin_retirement(tx, active.occurrence_id))
        late = attempt_by_hand(active, sequence=900)
        assert broken(ledger, adding(late)) == "occurrence_is_active"

    def test_the_digests_of_an_attempt_are_requested(self, ledger: Ledger, active: Occurrence) -> None:
        """I13."""
        binding = replace(binding_of(active), pack_digest=digest_of(b"another pack"))
        late = replace(attempt_by_hand(active, sequence=900), attempt_id=binding.attempt_id, binding=binding)
        assert broken(ledger, adding(late)) == "digests_as_requested"

    def test_the_epochs_of_an_attempt_are_current(self, ledger: Ledger, active: Occurrence) -> None:
        """I5."""
        assert broken(ledger, adding(attempt_by_hand(active, epoch=2, sequence=900))) == "epochs_current"

    def test_an_attempt_writes_what_its_workload_does(self, ledger: Ledger, active: Occurrence) -> None:
        """I13: neither more slots, nor fewer slots or services."""
        whole = attempt_by_hand(active, sequence=900)
        more = replace(whole, writes=tuple(sorted((slot_of(one), 1) for one in (FLIGHTS, DELAYS))))
        other = replace(whole, services=(ANALYTICS.service_id,))
        mart = binding_of(active, MART)
        blind = replace(whole, attempt_id=mart.attempt_id, binding=mart, writes=((slot_of(DELAYS), 1),), reads=())
        for wrong in (more, other, blind):
            assert broken(ledger, adding(wrong)) == "slots_as_requested"

    def test_readers_and_writers_of_one_slot_exclude_each_other(
        self, ledger: Ledger, steps: Steps, active: Occurrence
    ) -> None:
        """I3, in both directions."""
        reader = steps.admit(binding_of(active, MART))
        writer = attempt_by_hand(active, sequence=900)
        assert broken(ledger, adding(writer)) == "no_running_reader"
        steps.ended(reader, AttemptState.FAILED)
        steps.admit(binding_of(active))
        mart = binding_of(active, MART, try_number=2)
        late = replace(
            writer,
            attempt_id=mart.attempt_id,
            binding=mart,
            writes=((slot_of(DELAYS), 1),),
            reads=(slot_of(FLIGHTS),),
        )
        assert broken(ledger, adding(late)) == "no_live_writer"

    def test_an_epoch_grows_by_one_with_its_owner(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """I1."""
        (slot,) = read(ledger, lambda tx: tx.slots([slot_of(FLIGHTS)], Lock.NONE))
        for wrong in (replace(slot, epoch=2), replace(slot, owner_id=None, epoch=2)):
            assert broken(ledger, lambda tx, wrong=wrong: tx.move_slot(slot, wrong)) == "epoch_grows_by_one"

    def test_slots_change_hands_by_prepare_and_retirement_only(
        self, ledger: Ledger, steps: Steps, active: Occurrence
    ) -> None:
        """I1, I2: neither a release nor a gain by itself."""
        (slot,) = read(ledger, lambda tx: tx.slots([slot_of(FLIGHTS)], Lock.NONE))
        assert broken(ledger, lambda tx: tx.move_slot(slot, replace(slot, owner_id=None))) == "complete_or_nothing"
        second = steps.request(occurrence_of("second", after="first"))
        taken = replace(slot, owner_id=second.occurrence_id, epoch=2)
        assert broken(ledger, lambda tx: tx.move_slot(slot, taken)) == "owned_by_receipt"

    def test_a_request_claims_everything_until_it_ends(self, ledger: Ledger, steps: Steps) -> None:
        """I2: no request without its claims, no claim dropped by itself."""
        first = occurrence_of("first")

        def half(tx: LedgerTransaction) -> None:
            tx.add_environment(EnvironmentRow(name=ENVIRONMENT, holder_id=None, generation=0))
            tx.add_incarnation(DATABASE)
            tx.add_slot(free_slot(FLIGHTS))
            tx.add_occurrence(first, document("request first"))
            tx.add_workloads([LOAD.row(first)])

        assert broken(ledger, half) == "complete_or_nothing"
        steps.request(first)
        assert broken(ledger, lambda tx: tx.drop_claims(first.occurrence_id)) == "only_requests_claim"

    def test_a_claim_is_on_a_free_slot_or_the_predecessors(
        self, ledger: Ledger, steps: Steps, active: Occurrence
    ) -> None:
        """I1: another environment's slot cannot be claimed."""
        other = steps.request(occurrence_of("other", environment=ELSEWHERE), (TWO_SERVICES,))
        claim = Claim(slot_of(FLIGHTS), other.occurrence_id)
        assert broken(ledger, lambda tx: tx.add_claim(claim)) == "slot_free_or_predecessors"
        mine = Claim(slot_of(PLANES), active.occurrence_id)
        assert broken(ledger, lambda tx: tx.add_claim(mine)) == "occurrence_is_requested"

    def test_the_holder_is_the_environments_one(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """I15: holder, occurrence and generation move together."""
        before = EnvironmentRow(name=ENVIRONMENT, holder_id=active.occurrence_id, generation=1)
        for law, after in (
            ("environment_held_by_it", replace(before, holder_id=None)),
            ("generation_grows_by_one", replace(before, generation=2)),
        ):
            assert broken(ledger, lambda tx, after=after: tx.move_environment(before, after)) == law
        retiring = replace(active, state=OccurrenceState.RETIRING)
        good(ledger.run("begin", lambda tx: tx.move_occurrence(active, retiring), deadline()))
        retired = replace(active, state=OccurrenceState.RETIRED)
        assert broken(ledger, lambda tx: tx.move_occurrence(retiring, retired)) == "only_holders_own"

    def test_nothing_retires_while_an_attempt_lives(
        self, ledger: Ledger, steps: Steps, running: Attempt, active: Occurrence
    ) -> None:
        """I3, I11: retirement's own script without its guard."""
        steps.do("begin retirement", lambda tx: retirement.begin_retirement(tx, active.occurrence_id))

        def retire(tx: LedgerTransaction) -> None:
            with_guards_off = replace(active, state=OccurrenceState.RETIRING)
            for slot in tx.slots(tx.slots_owned_by(active.occurrence_id), Lock.EXCLUSIVE):
                tx.move_slot(slot, replace(slot, owner_id=None))
            row = EnvironmentRow(name=ENVIRONMENT, holder_id=active.occurrence_id, generation=1)
            tx.move_environment(row, replace(row, holder_id=None))
            tx.move_occurrence(with_guards_off, replace(with_guards_off, state=OccurrenceState.RETIRED))

        assert broken(ledger, retire) == "no_live_attempt"

    def test_prepare_comes_after_the_predecessors_end(self, ledger: Ledger, steps: Steps, active: Occurrence) -> None:
        """I2, I15: two holders never stand beside each other."""
        second = steps.request(occurrence_of("second", after="first"))
        after = replace(second, state=OccurrenceState.PREPARED, generation=2)
        outcome = ledger.run("by hand", lambda tx: tx.move_occurrence(second, after), deadline())
        assert outcome == Conflict("one_holder_per_environment")

    def test_an_exchange_waits_for_the_closed_gate(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """I8, I11."""
        staged = steps.stage(steps.intend(publication_of(running, Verb.EXCHANGE)))
        sent = replace(staged, state=PublicationState.DISPATCHED)
        move = lambda tx: tx.move_publication(staged, sent)  # noqa: E731
        assert broken(ledger, move) == "writer_closed_before_exchange"
        steps.bar(running)
        good(ledger.run("dispatch", move, deadline()))

    def test_an_attempt_ends_with_its_publication(self, ledger: Ledger, steps: Steps, running: Attempt) -> None:
        """I10: nothing of an ended attempt stays open."""
        steps.intend(publication_of(running))
        gate = steps.bar(running)
        verdict = verdict_of(AttemptState.FAILED, gate)
        seal = lambda tx: sealing.seal(tx, running.attempt_id, verdict)  # noqa: E731
        assert broken(ledger, seal) == "publication_settled_with_its_attempt"


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


def proof_of(running: Attempt, number: int, names: tuple[str, ...]) -> Proof:
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
