"""The laws that ``sql/postgres/010_control_schema.sql`` holds, written a second time, over the simulated rows.

Those of a single write are demanded when it is made; those that several rows must show together, at COMMIT.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dpone_provider.application.ports.ledger import EnvironmentRow
from dpone_provider.domain import attempt as attempts
from dpone_provider.domain import gate as gates
from dpone_provider.domain import occurrence as occurrences
from dpone_provider.domain import publication as publications
from dpone_provider.domain.attempt import LIVE, Attempt, AttemptState, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, OccurrenceId, ServiceId, SlotId
from dpone_provider.domain.occurrence import HOLDING, Occurrence, OccurrenceState
from dpone_provider.domain.publication import Publication, PublicationState, Verb
from dpone_provider.domain.slot import Claim, Slot
from tests.simulation.ledger_rows import Rows, constraint, law

Machine = Literal["occurrence", "attempt", "gate", "publication"]
EDGES: dict[Machine, frozenset[tuple[str, str]]] = {
    "occurrence": frozenset((str(a), str(b)) for a, b in occurrences.EDGES),
    "attempt": frozenset((str(a), str(b)) for a, b in attempts.EDGES),
    "gate": frozenset((str(a), str(b)) for a, b in gates.EDGES),
    "publication": frozenset((str(a), str(b)) for a, b in publications.EDGES),
}
SCHEMA = "schema:"


def edge(machine: Machine, subject: object, before: str, after: str) -> None:
    """Demand a step that the machine has; staying is none."""
    law((str(before), str(after)) in EDGES[machine], f"{machine}_edge", subject, f"{before} → {after}", "an edge")


# single writes


def new_environment(row: EnvironmentRow) -> None:
    """An environment begins without holder."""
    law(
        row.holder_id is None and row.generation == 0,
        "environment_begins_empty",
        row.name,
        row,
        "no holder, generation 0",
    )


def moved_environment(rows: Rows, before: EnvironmentRow, after: EnvironmentRow) -> None:
    """Its generation grows by one, from its floor up, exactly when it gains a holder."""
    gained = after.holder_id is not None and after.holder_id != before.holder_id
    grown = max(before.generation, rows.generation_floors.get(after.name, 0)) + 1 if gained else before.generation
    law(
        after.generation == grown,
        "generation_grows_by_one",
        f"environment {after.name}",
        f"{before.generation} → {after.generation}",
        "one more exactly when a holder comes",
    )


def moved_occurrence(before: Occurrence, after: Occurrence) -> None:
    """It moves along its edges; prepare alone sets the generation."""
    edge("occurrence", after, before.state, after.state)
    kept = after.state is OccurrenceState.PREPARED or after.generation == before.generation
    law(kept, "generation_set_by_prepare", after, after.generation, "no change")


def moved_slot(rows: Rows, before: Slot, after: Slot) -> None:
    """The epoch grows by one, from its floor up, exactly when an owner gains the slot (I1)."""
    gained = after.owner_id is not None and after.owner_id != before.owner_id
    grown = max(before.epoch, rows.epoch_floors.get(after.slot_id, 0)) + 1 if gained else before.epoch
    law(
        after.epoch == grown,
        "epoch_grows_by_one",
        after,
        f"{before.epoch} → {after.epoch}",
        "one more exactly when an owner gains it",
    )


def new_claim(rows: Rows, claim: Claim) -> None:
    """A claim is a REQUESTED occurrence's, on a slot that is free or its predecessor's (I1)."""
    claimant = rows.occurrences.get(claim.occurrence_id)
    slot = rows.slots.get(claim.slot_id)
    constraint(claimant is not None, "slot_claim_occurrence_fkey")
    constraint(slot is not None, "slot_claim_slot_fkey")
    assert claimant is not None
    assert slot is not None
    requested = claimant.state is OccurrenceState.REQUESTED
    law(requested, "occurrence_is_requested", claim, claimant.state, "REQUESTED")
    free = slot.owner_id is None or slot.owner_id == claimant.predecessor_id
    law(free, "slot_free_or_predecessors", claim, slot.owner_id, "a slot that is free or the predecessor's")
    constraint(claim.slot_id not in rows.claims, "one_claim_per_slot")


def new_attempt(rows: Rows, new: Attempt) -> None:
    """An attempt begins RUNNING, under an ACTIVE occurrence, as requested, the newest of its task (I4, I5, I13)."""
    bound = new.binding
    occurrence = rows.occurrences.get(bound.occurrence_id)
    requested = rows.workloads.get((bound.occurrence_id, bound.workload_id))
    law(new.state is AttemptState.RUNNING, "attempt_begins_running", new, new.state, "RUNNING")
    active = occurrence is not None and occurrence.state is OccurrenceState.ACTIVE
    law(active, "occurrence_is_active", new, occurrence, "an ACTIVE occurrence")
    if not bound.workload_id.startswith(SCHEMA):
        wanted = requested and (requested.constituent, requested.pack_digest, requested.plan_digest)
        asked = (bound.constituent, bound.pack_digest, bound.plan_digest)
        law(wanted == asked, "digests_as_requested", new, "other digests", "those of the request")
    later = [
        one
        for one in rows.attempts.values()
        if one.environment == new.environment
        and one.binding.airflow.task_key == bound.airflow.task_key
        and one.binding.airflow.try_number >= bound.airflow.try_number
    ]
    newer = [one for one in later if one.binding.airflow.try_number > bound.airflow.try_number]
    law(not newer, "not_superseded", new, "a later try", "the newest try of the task")
    law(new.attempt_id not in rows.spent, "attempt_is_not_spent", new, "a target knows it", "a new id")
    constraint(new.attempt_id not in rows.attempts, "one_execution")
    taken = {one.ledger_sequence for one in rows.attempts.values()}
    constraint(new.ledger_sequence not in taken, "attempt_ledger_sequence")
    constraint(not later, "one_attempt_per_try")


def new_attempt_slots(rows: Rows, new: Attempt) -> None:
    """What it writes is its occurrence's at its epoch, what it reads has no writer; both as requested (I3, I5)."""
    bound = new.binding
    requested = rows.workloads.get((bound.occurrence_id, bound.workload_id))
    free = bound.workload_id.startswith(SCHEMA)
    for slot_id, epoch in new.writes:
        slot = rows.slots.get(slot_id)
        current = slot is not None and (slot.owner_id, slot.epoch) == (bound.occurrence_id, epoch)
        law(current, "epochs_current", new, slot, "slots of its occurrence at its epochs")
        asked = free or (requested is not None and slot_id in requested.writes)
        law(asked, "slots_as_requested", new, slot_id, "the slots that its workload writes")
        readers = [one for one in rows.attempts.values() if one.state is AttemptState.RUNNING and slot_id in one.reads]
        law(not readers, "no_running_reader", new, readers, "no running reader")
        constraint(not _writers(rows, slot_id), "one_live_writer_per_slot")
    for slot_id in new.reads:
        asked = free or (requested is not None and slot_id in requested.reads)
        law(asked, "slots_as_requested", new, slot_id, "the slots that its workload reads")
        law(not _writers(rows, slot_id), "no_live_writer", new, "a live writer", "no live writer")


def new_gate(rows: Rows, gate: Gate) -> None:
    """A gate begins JOURNALED, or CLOSED and barred, for a RUNNING attempt (I6)."""
    begins = GateState.CLOSED if gate.barred else GateState.JOURNALED
    law(gate.state is begins, "gate_begins_journaled_or_barred", gate, gate.state, "JOURNALED, or CLOSED and barred")
    if not gate.barred:
        unburied(rows, gate.service_id, gate)
        stray = (gate.service_id, gate.principal.name) in rows.strays
        law(not stray, "principal_name_once_per_service", gate, "a stray", "a name that was never used")
    _running(rows, gate.attempt_id, gate)
    same = [one for one in rows.gates.values() if one.service_id == gate.service_id]
    constraint(gate.principal.name not in {one.principal.name for one in same}, "principal_name_once_per_service")
    constraint(gate.principal.sid not in {one.principal.sid for one in same}, "sid_once_per_service")
    constraint((gate.attempt_id, gate.service_id) not in rows.gates, "one_gate_per_attempt_and_service")
    constraint(gate.service_id in rows.attempts[gate.attempt_id].services, "gate_of_a_written_service")


def moved_gate(rows: Rows, before: Gate, after: Gate) -> None:
    """It moves along its edges; delivery is marked once, by itself, on the READY row (I7)."""
    if after.state is before.state:
        marks = after.state is GateState.READY and after.delivered and not before.delivered
        law(marks, "delivered_once", after, after.state, "a READY gate that was never delivered")
    else:
        edge("gate", after, before.state, after.state)
        law(after.delivered is before.delivered, "delivered_once", after, after.state, "delivery marked by itself")
    if after.state in (GateState.JOURNALED, GateState.READY):
        _running(rows, after.attempt_id, after)


def new_publication(rows: Rows, new: Publication) -> None:
    """A publication begins INTENDED, for a slot that its RUNNING attempt writes, alone on its target (I10)."""
    begins = new.state is PublicationState.INTENDED
    law(begins, "publication_begins_intended", new, new.state, "INTENDED")
    _running(rows, new.attempt_id, new)
    constraint(new.attempt_id not in rows.publications, "publication_pkey")
    open_ones = [one for one in rows.publications.values() if one.slot_id == new.slot_id]
    alone = all(one.state in publications.SETTLED for one in open_ones)
    constraint(alone, "one_unresolved_publication_per_slot")
    written = (new.slot_id, new.epoch) in rows.attempts[new.attempt_id].writes
    constraint(written, "publication_of_a_written_slot")
    constraint(new.service_id in rows.attempts[new.attempt_id].services, "publication_service_fkey")


def moved_publication(rows: Rows, before: Publication, after: Publication) -> None:
    """It moves along its edges; a dispatch owns its slot, an exchange comes after the closed gate (I8, I11)."""
    edge("publication", after, before.state, after.state)
    staged = after.state is PublicationState.STAGED
    same = (after.rows, after.content_digest) == (before.rows, before.content_digest)
    law(staged or same, "counted_when_staged", after, "another count", "the count and digest of staging")
    doubted = after.state is PublicationState.UNKNOWN and before.state is not PublicationState.DISPATCHED
    opened = any(one not in rows.readmissions_ended for one in list(rows.readmissions)[-1:])
    judged = opened or after.service_id in rows.burials
    law(judged or not doubted, "doubted_by_judgement", after, before.state, "a readmission, or a burial")
    if after.state not in (PublicationState.STAGED, PublicationState.DISPATCHED):
        return
    law(after.rows is not None and after.rows >= 0, "counted_when_staged", after, after.rows, "a count")
    attempt = _running(rows, after.attempt_id, after)
    if after.state is PublicationState.DISPATCHED:
        slot = rows.slots[after.slot_id]
        owns = (slot.owner_id, slot.epoch) == (attempt.binding.occurrence_id, after.epoch)
        law(owns, "dispatch_owns_its_slot", after, slot, "its slot at its epoch")
        gate = rows.gates.get((after.attempt_id, after.service_id))
        closed = after.verb is Verb.REPLACE or (gate is not None and gate.state is GateState.CLOSED)
        law(closed, "writer_closed_before_exchange", after, gate, "a CLOSED gate of the worker")


def unburied(rows: Rows, service_id: ServiceId, subject: object) -> None:
    """A buried service is registered, requested and issued on never again."""
    law(service_id not in rows.burials, "service_is_not_buried", subject, "a buried service", "another service")


def new_node_event(rows: Rows, attempt_id: AttemptId, node_id: str) -> None:
    """What comes after sealing comes from a stray."""
    _running(rows, attempt_id, f"event of node {node_id}")


def _running(rows: Rows, attempt_id: AttemptId, subject: object) -> Attempt:
    constraint(attempt_id in rows.attempts, "attempt_fkey")
    attempt = rows.attempts[attempt_id]
    law(attempt.state is AttemptState.RUNNING, "attempt_is_running", subject, attempt.state, "a RUNNING attempt")
    return attempt


def _writers(rows: Rows, slot_id: SlotId) -> list[Attempt]:
    return [one for one in rows.attempts.values() if one.state in LIVE and slot_id in dict(one.writes)]


# at COMMIT


def settle_environment(rows: Rows, name: str) -> None:
    """The holder is the one PREPARED, ACTIVE or RETIRING occurrence, at the same generation (I15)."""
    row = rows.environments[name]
    holder = next((one for one in rows.occurrences.values() if one.environment == name and one.state in HOLDING), None)
    held = row.holder_id == (holder.occurrence_id if holder else None)
    same = holder is None or row.generation == holder.generation
    law(held and same, "environment_held_by_it", f"environment {name}", row, str(holder))


def settle_occurrence(rows: Rows, occurrence_id: OccurrenceId) -> None:
    """What an occurrence holds fits its state (I1, I2, I3, I11)."""
    one = rows.occurrences[occurrence_id]
    owned = {slot.slot_id: slot.epoch for slot in rows.slots.values() if slot.owner_id == occurrence_id}
    claimed = {claim.slot_id for claim in rows.claims.values() if claim.occurrence_id == occurrence_id}
    live = [a for a in rows.attempts.values() if a.binding.occurrence_id == occurrence_id and a.state in LIVE]
    environment = rows.environments[one.environment]
    held = environment.holder_id == occurrence_id
    law(one.state in HOLDING or not owned, "only_holders_own", one, owned, "no slot")
    law(one.state is OccurrenceState.REQUESTED or not claimed, "only_requests_claim", one, claimed, "no claim")
    law(one.state is not OccurrenceState.RETIRED or not live, "no_live_attempt", one, live, "no live attempt")
    holds = held and environment.generation == one.generation
    law(one.state not in HOLDING or holds, "environment_held_by_it", one, environment, "the holder")
    ended = one.state in occurrences.FINAL
    law(not (ended and held), "environment_held_by_it", one, environment, "another holder, or none")
    before = rows.occurrences.get(one.predecessor_id) if one.predecessor_id else None
    stopped = before is None or before.state is OccurrenceState.RETIRED
    law(one.state is not OccurrenceState.PREPARED or stopped, "predecessor_takes_no_work", one, before, "RETIRED")
    wanted = {slot for work in rows.workloads.values() if work.occurrence_id == occurrence_id for slot in work.writes}
    whole = True
    if one.state is OccurrenceState.REQUESTED:
        whole = wanted == claimed
    elif one.state is OccurrenceState.PREPARED:
        whole = wanted == set(owned) and dict(rows.receipts.get(occurrence_id, (b"", ()))[1]) == owned
    law(whole, "complete_or_nothing", one, "other slots", "every slot of every workload")


def settle_slot(rows: Rows, slot_id: SlotId, before: OccurrenceId | None) -> None:
    """Who owns a slot holds its environment at its receipt's epoch; who lost one is RETIRED (I1, I2)."""
    slot = rows.slots[slot_id]
    if slot.owner_id is not None:
        owner = rows.occurrences[slot.owner_id]
        given = dict(rows.receipts.get(slot.owner_id, (b"", ()))[1]).get(slot_id)
        by_receipt = given == slot.epoch and owner.state in HOLDING
        law(by_receipt, "owned_by_receipt", slot, owner, "a holder whose receipt gives it this epoch")
    if before is not None and before != slot.owner_id:
        retired = rows.occurrences[before].state is OccurrenceState.RETIRED
        law(retired, "complete_or_nothing", slot, f"a release by {before}", "a release by one that retires")


def settle_claim(rows: Rows, claim: Claim) -> None:
    """A claim stands exactly while its occurrence is REQUESTED (I2)."""
    stands = rows.claims.get(claim.slot_id) == claim
    requested = rows.occurrences[claim.occurrence_id].state is OccurrenceState.REQUESTED
    law(stands is requested, "only_requests_claim", claim, stands, "claims of REQUESTED occurrences")


def settle_receipt(rows: Rows, occurrence_id: OccurrenceId, epochs: Iterable[tuple[SlotId, int]]) -> None:
    """A receipt is written by prepare, with the ownership that it tells of."""
    for slot_id, epoch in epochs:
        slot = rows.slots[slot_id]
        prepared = rows.occurrences[occurrence_id].state is OccurrenceState.PREPARED
        owns = (slot.owner_id, slot.epoch) == (occurrence_id, epoch)
        law(prepared and owns, "owned_by_receipt", occurrence_id, slot, "slots that it has just gained")


def settle_attempt(rows: Rows, attempt_id: AttemptId) -> None:
    """A RUNNING attempt has what its workload has; one that ended was closed and proven, with its publication."""
    one = rows.attempts[attempt_id]
    requested = rows.workloads.get((one.binding.occurrence_id, one.binding.workload_id))
    if requested is not None:
        slots = set(requested.writes) <= {slot for slot, _ in one.writes} and set(requested.reads) <= set(one.reads)
        law(slots, "slots_as_requested", one, "fewer slots", "every slot of its workload")
        services = set(requested.services) <= set(one.services)
        law(services, "slots_as_requested", one, "fewer services", "every service of its workload")
    if one.state is AttemptState.RUNNING:
        return
    gates_ = {service: rows.gates.get((attempt_id, service)) for service in one.services}
    law(None not in gates_.values(), "gate_for_every_service", one, gates_, "a gate row for every service")
    rows_of = [gate for gate in rows.gates.values() if gate.attempt_id == attempt_id]
    closed = all(gate.state is GateState.CLOSED for gate in rows_of)
    law(closed, "gates_closed", one, rows_of, "every gate CLOSED")
    publication = rows.publications.get(attempt_id)
    open_states = {PublicationState.INTENDED, PublicationState.STAGED, PublicationState.DISPATCHED}
    if one.state is not AttemptState.COMMIT_UNKNOWN:
        open_states.add(PublicationState.UNKNOWN)
    left = publication is not None and publication.state in open_states
    law(not left, "publication_settled_with_its_attempt", one, publication, "a publication of its own outcome")
    last = max(gate.closed_sequence or 0 for gate in rows_of)
    names = {gate.principal.gate_name for gate in rows_of}
    proven = any(
        proof.attempt_id == attempt_id
        and proof.kind is ProofKind.OUTCOME
        and proof.ledger_sequence > last
        and set(proof.names_gates) == names
        for proof, _ in rows.proofs.values()
    )
    law(proven, "proof_read_after_gates", one, "no such proof", "an outcome proof after every gate, naming them")
