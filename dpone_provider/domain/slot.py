"""The slot: one relation that may be written, its owner, its claimant and its fencing epoch."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

from dpone_provider.domain.guards import guard, unmet
from dpone_provider.domain.identity import IncarnationId, OccurrenceId, Relation, SlotId, slot_id
from dpone_provider.domain.outcomes import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One row of the ledger. ``relation`` is the class: the first registered spelling. ``epoch`` only grows."""

    slot_id: SlotId
    incarnation_id: IncarnationId
    relation: Relation
    owner_id: OccurrenceId | None
    epoch: int

    def __post_init__(self) -> None:
        """Refuse an id that is not the relation's own, and an owned slot that never gained an epoch."""
        if self.slot_id != slot_id(self.incarnation_id, self.relation):
            raise ValueError(f"slot id {self.slot_id} is not that of {self.relation}")
        if self.epoch < 0 or (self.owner_id is not None and self.epoch == 0):
            raise ValueError(f"slot {self.relation}: owner {self.owner_id} at epoch {self.epoch}")

    def __str__(self) -> str:
        """Return a name for messages."""
        return f"slot {self.relation}"


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    """An occurrence's claim on a slot; at most one per slot."""

    slot_id: SlotId
    occurrence_id: OccurrenceId


FREE_OR_PREDECESSOR = guard(
    "slot_free_or_predecessors",
    "I1",
    "I2",
    says="a slot that is free or owned by the request's own predecessor",
    next_command="dpone occurrence list; another environment's slots are never drained: change one of the two",
)
UNCLAIMED = guard(
    "slot_unclaimed",
    "I1",
    "I2",
    says="a slot that nobody else claims",
    next_command="dpone occurrence list; finish or withdraw the other promotion",
)
COMPARED = guard(
    "slots_registered_meanwhile",
    "I1",
    says="only registered slots that the observation had compared with the new ones, by the database's rules for names",
    next_command="run cache-sync again",
)
CLAIMED_BY_IT = guard("slot_claimed_by_it", "I1", "I2", says="a slot claimed by this occurrence")
OWNED_BY_IT = guard("slot_owned_by_it", "I1", says="a slot owned by this occurrence")


def register(database: str, *, registered: Set[Relation], compared: Set[Relation]) -> Refused | None:
    """Refuse new slots beside classes that were registered after the database had been observed.

    ``registered`` is read under the incarnation's lock. A name that the database holds equal to one of them would
    become a second slot of the same relation.
    """
    return unmet(
        f"database {database}",
        (COMPARED, registered <= compared, f"{len(registered - compared)} slots that it had not compared"),
    )


def claim(slot: Slot, *, by: OccurrenceId, predecessor: OccurrenceId | None, existing: Claim | None) -> Claim | Refused:
    """none → X, inside X's request."""
    free = slot.owner_id is None or slot.owner_id == predecessor
    unclaimed = existing is None or existing.occurrence_id == by
    return unmet(
        str(slot),
        (FREE_OR_PREDECESSOR, free, f"owner {slot.owner_id}"),
        (UNCLAIMED, unclaimed, existing),
    ) or Claim(slot.slot_id, by)


def gain(
    slot: Slot, *, by: OccurrenceId, predecessor: OccurrenceId | None, existing: Claim | None, floor: int = 0
) -> Slot | Refused:
    """null | predecessor → X at the next epoch, inside X's prepare.

    ``floor`` is the highest epoch that a readmission found on targets beyond what the ledger knew.
    """
    free = slot.owner_id is None or slot.owner_id == predecessor
    return unmet(
        str(slot),
        (CLAIMED_BY_IT, existing == Claim(slot.slot_id, by), existing),
        (FREE_OR_PREDECESSOR, free, f"owner {slot.owner_id}"),
    ) or replace(slot, owner_id=by, epoch=max(slot.epoch, floor) + 1)


def release(slot: Slot, *, by: OccurrenceId) -> Slot | Refused:
    """X → null, inside X's retirement or its successor's prepare. The epoch stays."""
    return unmet(str(slot), (OWNED_BY_IT, slot.owner_id == by, f"owner {slot.owner_id}")) or replace(
        slot, owner_id=None
    )
