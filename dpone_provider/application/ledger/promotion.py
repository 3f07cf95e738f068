"""The transactions of a promotion: request, drain, prepare, activate, withdraw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpone_provider.application.ports.ledger import EnvironmentRow, LedgerTransaction, Lock, WorkloadRow
from dpone_provider.domain import occurrence as occurrences
from dpone_provider.domain import slot as slots
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import Incarnation, OccurrenceId, Relation, SlotId
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Refused, refuse, unwind
from dpone_provider.domain.readmission import require_unburied
from dpone_provider.domain.slot import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedIncarnation:
    """One database of a request, and the relation classes that were registered when it was observed.

    ``slots`` are written by the request's workloads and get claimed; ``read_only`` are read by them, only registered.
    """

    incarnation: Incarnation
    registered: frozenset[Relation]
    slots: tuple[Slot, ...]
    read_only: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Requested:
    """The request stands in the ledger. ``resumed`` tells that it already did."""

    occurrence: Occurrence
    resumed: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """The occurrence owns its slots, at these epochs and this generation."""

    occurrence: Occurrence
    epochs: tuple[tuple[SlotId, int], ...]
    receipt: bytes


ReceiptWriter = Callable[[Occurrence, Sequence[tuple[SlotId, int]]], bytes]
"""Makes the receipt's canonical bytes from the PREPARED occurrence and its (slot, epoch) pairs."""


def request(
    tx: LedgerTransaction,
    new: Occurrence,
    document: bytes,
    workloads: Sequence[WorkloadRow],
    databases: Sequence[ObservedIncarnation],
) -> Requested | Refused:
    """Enter the immutable request and its claims on every slot."""
    environment = _lock_environment(tx, new.environment)
    standing = tx.occurrence(new.occurrence_id, Lock.NONE)
    if standing is not None:
        return Requested(standing, resumed=True)
    decided = occurrences.request(new, holder=environment.holder_id, pending=tx.pending(new.environment))
    if isinstance(decided, Refused):
        return decided
    tx.add_occurrence(decided, document)
    for database in sorted(databases, key=lambda one: one.incarnation.incarnation_id):
        moved = _register(tx, database)
        if moved is not None:
            return moved
    tx.add_workloads(workloads)
    return _claim_all(tx, decided, databases)


def drain(tx: LedgerTransaction, request_id: OccurrenceId, predecessor_id: OccurrenceId) -> Occurrence | Refused:
    """ACTIVE → RETIRING of the predecessor, while the request's own row is locked and still REQUESTED."""
    locked = _lock_occurrences(tx, {request_id: Lock.UPDATE, predecessor_id: Lock.EXCLUSIVE})
    successor, predecessor = locked[request_id], locked[predecessor_id]
    if predecessor.state in (OccurrenceState.RETIRING, OccurrenceState.RETIRED):
        return predecessor
    decided = occurrences.drain(predecessor, successor=successor, unknown_attempts=_unknown(tx, predecessor_id))
    if isinstance(decided, Refused):
        return decided
    tx.move_occurrence(predecessor, decided)
    return decided


def prepare(tx: LedgerTransaction, occurrence_id: OccurrenceId, write_receipt: ReceiptWriter) -> Prepared | Refused:
    """Retire the predecessor and move ownership, all in this transaction."""
    peeked = required_occurrence(tx, occurrence_id, Lock.NONE)
    environment = _lock_environment(tx, peeked.environment)
    wanted = {occurrence_id: Lock.EXCLUSIVE}
    if peeked.predecessor_id is not None:
        wanted[peeked.predecessor_id] = Lock.EXCLUSIVE
    locked = _lock_occurrences(tx, wanted)
    occurrence = locked[occurrence_id]
    done = prepared_already(tx, occurrence)
    if done is not None:
        return done
    generation = max(environment.generation, tx.generation_floor(environment.name)) + 1
    predecessor = locked[peeked.predecessor_id] if peeked.predecessor_id is not None else None
    decided = occurrences.prepare(
        occurrence,
        predecessor=predecessor,
        holder=environment.holder_id,
        live=len(tx.live_attempts(predecessor.occurrence_id)) if predecessor else 0,
        generation=generation,
    )
    if isinstance(decided, Refused):
        return decided
    epochs = _move_slots(tx, occurrence, predecessor)
    if isinstance(epochs, Refused):
        return epochs
    if predecessor is not None and predecessor.state is OccurrenceState.RETIRING:
        tx.move_occurrence(predecessor, replace(predecessor, state=OccurrenceState.RETIRED))
    tx.move_environment(environment, replace(environment, holder_id=occurrence_id, generation=generation))
    tx.move_occurrence(occurrence, decided)
    receipt = write_receipt(decided, epochs)
    tx.add_receipt(occurrence_id, receipt, epochs)
    return Prepared(decided, epochs, receipt)


def activate(
    tx: LedgerTransaction, occurrence_id: OccurrenceId, pointed_at: OccurrenceId | None
) -> Occurrence | Refused:
    """PREPARED → ACTIVE, if the pointer names the occurrence and it holds the environment."""
    environment = _lock_environment(tx, required_occurrence(tx, occurrence_id, Lock.NONE).environment)
    occurrence = required_occurrence(tx, occurrence_id, Lock.EXCLUSIVE)
    if occurrence.state is OccurrenceState.ACTIVE:
        return occurrence
    decided = occurrences.activate(occurrence, pointed_at=pointed_at, holder=environment.holder_id)
    if isinstance(decided, Refused):
        return decided
    tx.move_occurrence(occurrence, decided)
    return decided


def withdraw(tx: LedgerTransaction, occurrence_id: OccurrenceId) -> Occurrence | Refused:
    """REQUESTED → WITHDRAWN, with its claims dropped."""
    occurrence = required_occurrence(tx, occurrence_id, Lock.EXCLUSIVE)
    if occurrence.state is OccurrenceState.WITHDRAWN:
        return occurrence
    decided = occurrences.withdraw(occurrence)
    if isinstance(decided, Refused):
        return decided
    tx.move_occurrence(occurrence, decided)
    tx.drop_claims(occurrence_id)
    return decided


def prepared_already(tx: LedgerTransaction, occurrence: Occurrence) -> Prepared | None:
    """Return what an earlier prepare of ``occurrence`` left, if it got that far."""
    receipt = tx.receipt(occurrence.occurrence_id)
    if receipt is None or occurrence.state not in (OccurrenceState.PREPARED, OccurrenceState.ACTIVE):
        return None
    return Prepared(occurrence, receipt[1], receipt[0])


def required_occurrence(tx: LedgerTransaction, occurrence_id: OccurrenceId, lock: Lock) -> Occurrence:
    """Return the occurrence.

    Raises:
        DponeError: Refused ``no_such_occurrence``.
    """
    found = tx.occurrence(occurrence_id, lock)
    if found is None:
        unwind(
            refuse(
                "no_such_occurrence",
                f"occurrence {occurrence_id}",
                found="no such row in the ledger",
                allowed="an occurrence of this ledger",
                next_command="dpone occurrence list",
            )
        )
    return found


def _lock_environment(tx: LedgerTransaction, name: str) -> EnvironmentRow:
    row = tx.environment(name, Lock.UPDATE)
    if row is None:
        row = EnvironmentRow(name=name, holder_id=None, generation=0)
        tx.add_environment(row)
    return row


def _lock_occurrences(tx: LedgerTransaction, wanted: dict[OccurrenceId, Lock]) -> dict[OccurrenceId, Occurrence]:
    return {one: required_occurrence(tx, one, wanted[one]) for one in sorted(wanted)}


def _unknown(tx: LedgerTransaction, occurrence_id: OccurrenceId) -> int:
    return sum(one.state is AttemptState.COMMIT_UNKNOWN for one in tx.live_attempts(occurrence_id))


def _register(tx: LedgerTransaction, database: ObservedIncarnation) -> Refused | None:
    incarnation_id = database.incarnation.incarnation_id
    service = database.incarnation.service
    buried = require_unburied(f"database {database.incarnation.database}", tx.burial(service.service_id))
    if buried is not None:
        return buried
    tx.add_incarnation(database.incarnation)
    tx.incarnation(incarnation_id, Lock.EXCLUSIVE)
    registered = set(tx.registered(incarnation_id))
    meanwhile = slots.register(database.incarnation.database, registered=registered, compared=database.registered)
    if meanwhile is not None:
        return meanwhile
    for slot in (*database.slots, *database.read_only):
        if slot.relation not in registered:
            tx.add_slot(replace(slot, owner_id=None, epoch=0))
    return None


def _claim_all(tx: LedgerTransaction, new: Occurrence, databases: Sequence[ObservedIncarnation]) -> Requested | Refused:
    ids = {slot.slot_id for database in databases for slot in database.slots}
    locked = tx.slots(ids, Lock.SHARE)
    existing = {claim.slot_id: claim for claim in tx.claims(ids)}
    for slot in locked:
        claim = slots.claim(
            slot, by=new.occurrence_id, predecessor=new.predecessor_id, existing=existing.get(slot.slot_id)
        )
        if isinstance(claim, Refused):
            return claim
        tx.add_claim(claim)
    return Requested(new, resumed=False)


def _move_slots(
    tx: LedgerTransaction, occurrence: Occurrence, predecessor: Occurrence | None
) -> tuple[tuple[SlotId, int], ...] | Refused:
    claims = {claim.slot_id: claim for claim in tx.claims_of(occurrence.occurrence_id)}
    owned = set(tx.slots_owned_by(predecessor.occurrence_id)) if predecessor else set()
    floors = tx.epoch_floors(claims)
    epochs: list[tuple[SlotId, int]] = []
    for slot in tx.slots(set(claims) | owned, Lock.EXCLUSIVE):
        if slot.slot_id in claims:
            moved = slots.gain(
                slot,
                by=occurrence.occurrence_id,
                predecessor=occurrence.predecessor_id,
                existing=claims[slot.slot_id],
                floor=floors.get(slot.slot_id, 0),
            )
        else:
            moved = slots.release(slot, by=OccurrenceId(str(occurrence.predecessor_id)))
        if isinstance(moved, Refused):
            return moved
        tx.move_slot(slot, moved)
        if slot.slot_id in claims:
            epochs.append((moved.slot_id, moved.epoch))
    tx.drop_claims(occurrence.occurrence_id)
    return tuple(epochs)
