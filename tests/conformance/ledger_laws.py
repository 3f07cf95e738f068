"""What every ledger must do, part two: conflicts, guards, and laws that no script can break."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from dpone_provider.application.ledger import retirement, sealing
from dpone_provider.application.ports.ledger import (
    Conflict,
    EnvironmentRow,
    Ledger,
    LedgerTransaction,
    Lock,
)
from dpone_provider.domain import attempt as attempts
from dpone_provider.domain import gate as gate_machine
from dpone_provider.domain import occurrence as occurrences
from dpone_provider.domain import publication as publication_machine
from dpone_provider.domain.attempt import Attempt, AttemptState, Proof, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import GateName, Principal, ServiceId, digest_of
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.publication import PublicationState, Verb
from dpone_provider.domain.slot import Claim
from tests.conformance.ledger_histories import (
    TWO_SERVICES,
    LedgerStage,
    adding,
    attempt_by_hand,
    broken,
    gate_in,
    occurrence_in,
    proof_of,
    publication_in,
    read,
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


class LedgerLaws(LedgerStage):
    """Conflicts, guards and laws."""

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
        names = (gate.principal.gate_name,)
        early = proof_of(running, (gate.closed_sequence or 0) - 1, names)
        assert broken(ledger, lambda tx: seal(tx, early)) == "proof_read_after_gates"
        nameless = proof_of(running, 800, ())
        assert broken(ledger, lambda tx: seal(tx, nameless)) == "proof_read_after_gates"
        elsewhere = proof_of(running, 800, (GateName(ANALYTICS.service_id, gate.principal.name),))
        assert broken(ledger, lambda tx: seal(tx, elsewhere)) == "proof_read_after_gates"
        of_gates = replace(proof_of(running, 800, names), kind=ProofKind.GATES_CLOSED)
        assert broken(ledger, lambda tx: seal(tx, of_gates)) == "proof_read_after_gates"
        good(ledger.run("seal", lambda tx: seal(tx, proof_of(running, 800, names)), deadline()))

    def test_a_name_on_one_service_stands_for_no_other(self, ledger: Ledger, steps: Steps) -> None:
        """I9: two services know the same login; a proof has to name the gate on each, and none on a third."""
        active = steps.promote(occurrence_of("first"), (TWO_SERVICES,))
        running = steps.admit(binding_of(active, TWO_SERVICES))
        ended = replace(running, state=AttemptState.FAILED)
        named = [steps.bar(running, service).principal.gate_name for service in (WAREHOUSE, ANALYTICS)]
        assert len({name.principal for name in named}) == 1

        def seal(tx: LedgerTransaction, *names: GateName) -> None:
            proof = proof_of(running, 800, names)
            tx.add_proof(proof, document("proof 800"))
            tx.move_attempt(running, ended)

        third = GateName(ServiceId(uuid_of("a third service")), named[0].principal)
        for names in ([named[0]], [named[1]], [named[0], named[0]], [named[0], third], [*named, third]):
            assert broken(ledger, lambda tx, names=names: seal(tx, *names)) == "proof_read_after_gates"
        good(ledger.run("seal", lambda tx: seal(tx, *named), deadline()))

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
