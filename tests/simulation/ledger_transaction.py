"""One transaction of the simulated ledger: the port's methods over a copy of the rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from dpone_provider.application.ports.ledger import Authority, EnvironmentRow, GuardLost, Lock, NodeEvent, WorkloadRow
from dpone_provider.domain.attempt import LIVE, Attempt, AttemptState, Proof
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import (
    AttemptId,
    Incarnation,
    IncarnationId,
    OccurrenceId,
    Relation,
    ServiceId,
    SlotId,
    digest_of,
)
from dpone_provider.domain.occurrence import HOLDING, PENDING, Occurrence, OccurrenceState
from dpone_provider.domain.publication import SETTLED, Publication
from dpone_provider.domain.slot import Claim, Slot
from tests.simulation import ledger_laws as laws
from tests.simulation.ledger_readmission import ReadmissionPart
from tests.simulation.ledger_rows import LockWait, constraint, law

STRONG = (Lock.UPDATE, Lock.EXCLUSIVE)


@dataclass(slots=True)
class SimulatedTransaction(ReadmissionPart):
    """``LedgerTransaction``; the first write of a table makes a copy of it.

    ``held`` are the rows that open transactions of targets keep share-locked.
    """

    held: Mapping[str, str] = field(default_factory=dict)
    open: bool = True
    wrote: bool = False
    at_commit: list[Callable[[], None]] = field(default_factory=list)
    """Laws, in the order in which the writes that set them off were made."""
    after_commit: list[Callable[[], None]] = field(default_factory=list)
    """What an engine of the ledger's own instance does in the same transaction."""
    _own: set[str] = field(default_factory=set)
    """The tables that are this transaction's own copies."""

    @property
    def handle(self) -> object:
        """The transaction itself."""
        return self

    def authority(self) -> Authority:
        """Return whose rows these are."""
        return self.rows.authority[0]

    def next_sequence(self) -> int:
        """Take a number."""
        return self.numbers.take()

    # environments and occurrences

    def environment(self, name: str, lock: Lock) -> EnvironmentRow | None:
        """Read one."""
        return self.rows.environments.get(name)

    def add_environment(self, row: EnvironmentRow) -> None:
        """Insert one."""
        self._write("environments")
        laws.new_environment(row)
        constraint(row.name not in self.rows.environments, "environment_pkey")
        self.rows.environments[row.name] = row
        self.at_commit.append(lambda: laws.settle_environment(self.rows, row.name))

    def move_environment(self, before: EnvironmentRow, after: EnvironmentRow) -> None:
        """Change one."""
        self._write("environments")
        _same(before.name == after.name, before, after)
        _standing(self.rows.environments.get(before.name), before)
        laws.moved_environment(self.rows, before, after)
        self.rows.environments[after.name] = after
        self.at_commit.append(lambda: laws.settle_environment(self.rows, after.name))

    def occurrence(self, occurrence_id: OccurrenceId, lock: Lock) -> Occurrence | None:
        """Read one."""
        return self.rows.occurrences.get(occurrence_id)

    def pending(self, environment: str) -> Occurrence | None:
        """Read the pending one."""
        found = [one for one in self.occurrences(environment) if one.state in PENDING]
        return found[0] if found else None

    def occurrences(self, environment: str | None) -> tuple[Occurrence, ...]:
        """Read all, newest first."""
        found = reversed(self.rows.occurrences.values())
        return tuple(one for one in found if environment in (None, one.environment))

    def add_occurrence(self, occurrence: Occurrence, request: bytes) -> None:
        """Insert one."""
        self._write("occurrences", "requests")
        new, rows = occurrence, self.rows
        requested = new.state is OccurrenceState.REQUESTED
        law(requested, "occurrence_begins_requested", new, new.state, "REQUESTED")
        same = new.request_digest == digest_of(request)
        law(same, "request_digest_of_request", new, new.request_digest, "the document's digest")
        constraint(new.occurrence_id not in rows.occurrences, "occurrence_pkey")
        constraint(self.pending(new.environment) is None, "one_pending_per_environment")
        constraint(new.environment in rows.environments, "occurrence_environment_fkey")
        before = rows.occurrences.get(new.predecessor_id) if new.predecessor_id else None
        named = new.predecessor_id is None or (before is not None and before.environment == new.environment)
        constraint(named, "predecessor_of_environment")
        rows.occurrences[new.occurrence_id] = new
        rows.requests[new.occurrence_id] = request
        self.at_commit.append(lambda: laws.settle_occurrence(self.rows, new.occurrence_id))

    def add_workloads(self, workloads: Sequence[WorkloadRow]) -> None:
        """Insert a request's workloads."""
        self._write("workloads")
        for row in workloads:
            key = (row.occurrence_id, row.workload_id)
            constraint(key not in self.rows.workloads, "workload_pkey")
            constraint(not set(row.writes) & set(row.reads), "workload_slot_pkey")
            for service in row.services:
                laws.unburied(self.rows, service, row.workload_id)
            self.rows.workloads[key] = row
            for slot in (*row.writes, *row.reads):
                self.at_commit.append(partial(self._require_slot, slot))

    def move_occurrence(self, before: Occurrence, after: Occurrence) -> None:
        """Change one."""
        self._write("occurrences")
        _same(replace(before, state=after.state, generation=after.generation) == after, before, after)
        _standing(self.rows.occurrences.get(before.occurrence_id), before)
        laws.moved_occurrence(before, after)
        self.rows.occurrences[after.occurrence_id] = after
        holders = [
            one
            for one in self.rows.occurrences.values()
            if one.environment == after.environment and one.state in HOLDING
        ]
        constraint(len(holders) < 2, "one_holder_per_environment")
        self.at_commit.append(lambda: laws.settle_occurrence(self.rows, after.occurrence_id))

    def request_document(self, occurrence_id: OccurrenceId) -> bytes:
        """Read a request."""
        return self.rows.requests[occurrence_id]

    def add_receipt(self, occurrence_id: OccurrenceId, receipt: bytes, epochs: Sequence[tuple[SlotId, int]]) -> None:
        """Insert a receipt."""
        self._write("receipts")
        constraint(occurrence_id not in self.rows.receipts, "receipt_pkey")
        given = {pair for _, pairs in self.rows.receipts.values() for pair in pairs}
        constraint(not given & set(epochs), "epoch_given_once")
        self.rows.receipts[occurrence_id] = (receipt, tuple(sorted(epochs)))
        self.at_commit.append(lambda: laws.settle_receipt(self.rows, occurrence_id, epochs))

    def receipt(self, occurrence_id: OccurrenceId) -> tuple[bytes, tuple[tuple[SlotId, int], ...]] | None:
        """Read a receipt."""
        return self.rows.receipts.get(occurrence_id)

    def workload(self, occurrence_id: OccurrenceId, workload_id: str) -> WorkloadRow | None:
        """Read one workload."""
        return self.rows.workloads.get((occurrence_id, workload_id))

    # incarnations and slots

    def add_incarnation(self, incarnation: Incarnation) -> None:
        """Insert one if it is new."""
        self._write("incarnations")
        laws.unburied(self.rows, incarnation.service.service_id, incarnation.database)
        self.rows.incarnations.setdefault(incarnation.incarnation_id, incarnation)

    def incarnation(self, incarnation_id: IncarnationId, lock: Lock) -> Incarnation | None:
        """Read one."""
        return self.rows.incarnations.get(incarnation_id)

    def registered(self, incarnation_id: IncarnationId) -> tuple[Relation, ...]:
        """Read the registered classes."""
        found = (slot.relation for slot in self.rows.slots.values() if slot.incarnation_id == incarnation_id)
        return tuple(sorted(found))

    def registered_before(self, incarnation: Incarnation) -> tuple[Relation, ...]:
        """Read the classes of the database's other lives."""
        same = {
            one.incarnation_id
            for one in self.rows.incarnations.values()
            if (one.service, one.database) == (incarnation.service, incarnation.database) and one != incarnation
        }
        return tuple(sorted({slot.relation for slot in self.rows.slots.values() if slot.incarnation_id in same}))

    def add_slot(self, slot: Slot) -> None:
        """Insert one."""
        self._write("slots")
        law(slot.owner_id is None and slot.epoch == 0, "slot_begins_free", slot, slot.owner_id, "no owner, epoch 0")
        constraint(slot.slot_id not in self.rows.slots, "slot_pkey")
        constraint(slot.incarnation_id in self.rows.incarnations, "slot_incarnation_fkey")
        self.rows.slots[slot.slot_id] = slot

    def slots(self, ids: Collection[SlotId], lock: Lock) -> tuple[Slot, ...]:
        """Read slots in id order."""
        for one in sorted(set(ids)):
            self._wait_for(one, lock)
        return tuple(self.rows.slots[one] for one in sorted(set(ids)) if one in self.rows.slots)

    def slots_owned_by(self, occurrence_id: OccurrenceId) -> tuple[SlotId, ...]:
        """Read the ids of an owner's slots."""
        return tuple(sorted(one.slot_id for one in self.rows.slots.values() if one.owner_id == occurrence_id))

    def move_slot(self, before: Slot, after: Slot) -> None:
        """Change one."""
        self._write("slots")
        _same(before.slot_id == after.slot_id, before, after)
        _standing(self.rows.slots.get(before.slot_id), before)
        self._wait_for(after.slot_id, Lock.UPDATE)
        laws.moved_slot(self.rows, before, after)
        constraint(after.owner_id is None or after.owner_id in self.rows.occurrences, "slot_owner_fkey")
        self.rows.slots[after.slot_id] = after
        self.at_commit.append(lambda: laws.settle_slot(self.rows, after.slot_id, before.owner_id))

    def claims(self, slot_ids: Collection[SlotId]) -> tuple[Claim, ...]:
        """Read claims by slot."""
        return tuple(self.rows.claims[one] for one in sorted(set(slot_ids)) if one in self.rows.claims)

    def claims_of(self, occurrence_id: OccurrenceId) -> tuple[Claim, ...]:
        """Read an occurrence's claims."""
        return tuple(sorted(one for one in self.rows.claims.values() if one.occurrence_id == occurrence_id))

    def add_claim(self, claim: Claim) -> None:
        """Insert one."""
        self._write("claims")
        laws.new_claim(self.rows, claim)
        self.rows.claims[claim.slot_id] = claim
        self.at_commit.append(lambda: laws.settle_claim(self.rows, claim))

    def drop_claims(self, occurrence_id: OccurrenceId) -> None:
        """Delete an occurrence's claims."""
        self._write("claims")
        for claim in self.claims_of(occurrence_id):
            del self.rows.claims[claim.slot_id]
            self.at_commit.append(partial(laws.settle_claim, self.rows, claim))

    # attempts

    def run_occurrence(self, environment: str, run_key: str) -> OccurrenceId | None:
        """Read whose a run is."""
        return self.rows.runs.get((environment, run_key))

    def add_run(self, environment: str, run_key: str, occurrence_id: OccurrenceId) -> None:
        """Insert whose a run is, if it is new."""
        self._write("runs")
        self.rows.runs.setdefault((environment, run_key), occurrence_id)

    def attempt(self, attempt_id: AttemptId, lock: Lock) -> Attempt | None:
        """Read one."""
        self._wait_for(attempt_id, lock)
        return self.rows.attempts.get(attempt_id)

    def add_attempt(self, attempt: Attempt) -> None:
        """Insert one."""
        self._write("attempts")
        laws.new_attempt(self.rows, attempt)
        laws.new_attempt_slots(self.rows, attempt)
        self.rows.attempts[attempt.attempt_id] = attempt
        key = (attempt.environment, attempt.binding.airflow.run_key)
        of = attempt.binding.occurrence_id
        self.at_commit.append(lambda: constraint(self.rows.runs.get(key) == of, "attempt_of_its_run"))
        self.at_commit.append(lambda: laws.settle_attempt(self.rows, attempt.attempt_id))

    def move_attempt(self, before: Attempt, after: Attempt) -> None:
        """Change the state."""
        self._write("attempts")
        _same(replace(before, state=after.state) == after, before, after)
        _standing(self.rows.attempts.get(before.attempt_id), before)
        self._wait_for(after.attempt_id, Lock.UPDATE)
        laws.edge("attempt", after, before.state, after.state)
        self.rows.attempts[after.attempt_id] = after
        self.at_commit.append(lambda: laws.settle_attempt(self.rows, after.attempt_id))

    def live_attempts(self, occurrence_id: OccurrenceId) -> tuple[Attempt, ...]:
        """Read an occurrence's live ones, newest first."""
        return tuple(one for one in self._newest_first(LIVE) if one.binding.occurrence_id == occurrence_id)

    def attempts(self, *, environment: str | None, unresolved_only: bool, limit: int) -> tuple[Attempt, ...]:
        """Read attempts, newest first."""
        found = self._newest_first(LIVE if unresolved_only else frozenset(AttemptState))
        return tuple(one for one in found if environment in (None, one.environment))[:limit]

    def tries_of(self, environment: str, task_key: str) -> tuple[Attempt, ...]:
        """Read a task's tries."""
        found = [
            one
            for one in self.rows.attempts.values()
            if one.environment == environment and one.binding.airflow.task_key == task_key
        ]
        return tuple(sorted(found, key=lambda one: one.binding.airflow.try_number))

    def live_writers(self, slot_ids: Collection[SlotId]) -> tuple[Attempt, ...]:
        """Read the live writers of slots."""
        found = (one for one in self._newest_first(LIVE) if {slot for slot, _ in one.writes} & set(slot_ids))
        return tuple(reversed(tuple(found)))

    def running_readers(self, slot_ids: Collection[SlotId]) -> tuple[Attempt, ...]:
        """Read the RUNNING readers of slots."""
        running = self._newest_first(frozenset({AttemptState.RUNNING}))
        return tuple(reversed(tuple(one for one in running if set(one.reads) & set(slot_ids))))

    def add_node_event(self, event: NodeEvent) -> None:
        """Enter an event."""
        self._write("node_events")
        laws.new_node_event(self.rows, event.attempt_id, event.node_id)
        self.rows.node_events.append(event)

    def node_events(self, attempt_id: AttemptId) -> tuple[NodeEvent, ...]:
        """Read an attempt's events."""
        return tuple(one for one in self.rows.node_events if one.attempt_id == attempt_id)

    # gates and proofs

    def gate(self, attempt_id: AttemptId, service_id: ServiceId, lock: Lock) -> Gate | None:
        """Read one."""
        return self.rows.gates.get((attempt_id, service_id))

    def gates(self, attempt_id: AttemptId) -> tuple[Gate, ...]:
        """Read an attempt's gates."""
        found = [one for one in self.rows.gates.values() if one.attempt_id == attempt_id]
        return tuple(sorted(found, key=lambda one: (one.principal.name, one.service_id)))

    def principals_used(self, service_id: ServiceId) -> frozenset[str]:
        """Read every name ever journaled on a service."""
        gates = (one.principal.name for one in self.rows.gates.values() if one.service_id == service_id)
        return frozenset(gates) | self.strays(service_id)

    def gate_of_principal(self, service_id: ServiceId, name: str) -> Gate | None:
        """Read the gate of a name."""
        found = [g for g in self.rows.gates.values() if (g.service_id, g.principal.name) == (service_id, name)]
        return found[0] if found else None

    def add_gate(self, gate: Gate) -> None:
        """Insert one."""
        self._write("gates")
        laws.new_gate(self.rows, gate)
        self.rows.gates[gate.attempt_id, gate.service_id] = gate

    def move_gate(self, before: Gate, after: Gate) -> None:
        """Change one."""
        self._write("gates")
        moved = replace(
            before,
            state=after.state,
            delivered=after.delivered,
            closed_sequence=after.closed_sequence,
            evidence_digest=after.evidence_digest,
        )
        _same(moved == after, before, after)
        _standing(self.rows.gates.get((before.attempt_id, before.service_id)), before)
        laws.moved_gate(self.rows, before, after)
        self.rows.gates[after.attempt_id, after.service_id] = after

    def add_proof(self, proof: Proof, evidence: bytes) -> None:
        """Insert one."""
        self._write("proofs")
        same = proof.evidence_digest == digest_of(evidence)
        law(same, "evidence_digest_of_evidence", proof, proof.evidence_digest, "the evidence's digest")
        constraint(proof.ledger_sequence not in self.rows.proofs, "attempt_proof_pkey")
        constraint(proof.attempt_id in self.rows.attempts, "attempt_proof_attempt_fkey")
        self.rows.proofs[proof.ledger_sequence] = (proof, evidence)

    def proofs(self, attempt_id: AttemptId) -> tuple[Proof, ...]:
        """Read an attempt's proofs."""
        return tuple(proof for _, (proof, _) in sorted(self.rows.proofs.items()) if proof.attempt_id == attempt_id)

    def evidence(self, attempt_id: AttemptId) -> tuple[bytes, ...]:
        """Read an attempt's evidence."""
        found = sorted(self.rows.proofs.items())
        return tuple(evidence for _, (proof, evidence) in found if proof.attempt_id == attempt_id)

    # publications

    def publication(self, attempt_id: AttemptId, lock: Lock) -> Publication | None:
        """Read one."""
        return self.rows.publications.get(attempt_id)

    def unresolved_publication(self, slot_id: SlotId) -> Publication | None:
        """Read the one of a slot that is not settled."""
        found = [p for p in self.rows.publications.values() if p.slot_id == slot_id and p.state not in SETTLED]
        return found[0] if found else None

    def add_publication(self, publication: Publication) -> None:
        """Insert one."""
        self._write("publications")
        laws.new_publication(self.rows, publication)
        self.rows.publications[publication.attempt_id] = publication

    def move_publication(self, before: Publication, after: Publication) -> None:
        """Change one."""
        self._write("publications")
        moved = replace(before, state=after.state, rows=after.rows, content_digest=after.content_digest)
        _same(moved == after, before, after)
        _standing(self.rows.publications.get(before.attempt_id), before)
        laws.moved_publication(self.rows, before, after)
        self.rows.publications[after.attempt_id] = after

    def _write(self, *tables: str) -> None:
        if not self.wrote:
            self.rows = self.rows.branch()
            self.wrote = True
        for name in tables:
            if name not in self._own:
                self._own.add(name)
                setattr(self.rows, name, getattr(self.rows, name).copy())

    def _newest_first(self, states: frozenset[AttemptState]) -> list[Attempt]:
        found = [one for one in self.rows.attempts.values() if one.state in states]
        return sorted(found, key=lambda one: -one.ledger_sequence)

    def _require_slot(self, slot_id: SlotId) -> None:
        constraint(slot_id in self.rows.slots, "workload_slot_slot_fkey")

    def _wait_for(self, row: str, lock: Lock) -> None:
        if lock in STRONG and row in self.held:
            raise LockWait(self.held[row])


def _same(holds: bool, before: object, after: object) -> None:
    if not holds:
        raise GuardLost(f"{before} and {after} differ in more than their state")


def _standing(found: object, before: object) -> None:
    if found != before:
        raise GuardLost(f"{before} is not what was read")
