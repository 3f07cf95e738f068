"""Incarnations, slots and claims."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import Row

from dpone_provider.adapters.ledger.session import Session, unmoved
from dpone_provider.adapters.ledger.statements import slots as sql
from dpone_provider.application.ports.ledger import GuardLost, Lock
from dpone_provider.domain.identity import (
    EngineKind,
    Incarnation,
    IncarnationId,
    OccurrenceId,
    Relation,
    Service,
    ServiceId,
    SlotId,
)
from dpone_provider.domain.slot import Claim, Slot


class SlotRows:
    """The part of ``LedgerTransaction`` that is about incarnations, slots and claims, and the sequence."""

    session: Session

    def next_sequence(self) -> int:
        """Take the next ledger sequence number."""
        ((number,),) = self.session.rows(sql.NEXT_SEQUENCE)
        return int(number)

    def add_incarnation(self, incarnation: Incarnation) -> None:
        """Insert the incarnation if it is new."""
        self.session.write(
            sql.ADD_INCARNATION,
            to_incarnation_id=incarnation.incarnation_id,
            to_kind=incarnation.service.kind.value,
            to_service_id=incarnation.service.service_id,
            to_database_name=incarnation.database,
            to_facts=json.dumps(incarnation.facts, ensure_ascii=False),
        )

    def incarnation(self, incarnation_id: IncarnationId, lock: Lock) -> Incarnation | None:
        """Return the incarnation.

        Raises:
            GuardLost: its facts are not those of its id.
        """
        row = self.session.row(sql.INCARNATION_ROW[lock], id_incarnation_id=incarnation_id)
        if row is None:
            return None
        read = Incarnation(
            Service(EngineKind(row.kind), ServiceId(row.service_id)),
            row.database_name,
            tuple((name, value) for name, value in json.loads(row.facts)),
        )
        if read.incarnation_id != incarnation_id:
            raise GuardLost(f"incarnation {incarnation_id}: its facts are those of {read.incarnation_id}")
        return read

    def registered(self, incarnation_id: IncarnationId) -> tuple[Relation, ...]:
        """Return the registered relation classes."""
        rows = self.session.rows(sql.REGISTERED, id_incarnation_id=incarnation_id)
        return tuple(Relation(row.schema_name, row.relation_name) for row in rows)

    def registered_before(self, incarnation: Incarnation) -> tuple[Relation, ...]:
        """Return the relation classes of the database's other lives."""
        rows = self.session.rows(
            sql.REGISTERED_BEFORE,
            id_incarnation_id=incarnation.incarnation_id,
            id_service_id=incarnation.service.service_id,
            id_database_name=incarnation.database,
        )
        return tuple(Relation(row.schema_name, row.relation_name) for row in rows)

    def add_slot(self, slot: Slot) -> None:
        """Insert a slot that nobody owns."""
        values = {
            "slot_id": slot.slot_id,
            "incarnation_id": slot.incarnation_id,
            "schema_name": slot.relation.schema,
            "relation_name": slot.relation.name,
            "owner_id": slot.owner_id,
            "epoch": slot.epoch,
        }
        self.session.add(sql.ADD_SLOT, [values])

    def slots(self, ids: Collection[SlotId], lock: Lock) -> tuple[Slot, ...]:
        """Return slots in id order."""
        return tuple(_slot(row) for row in self.session.rows_of(sql.SLOT_ROWS[lock], ids))

    def slots_owned_by(self, occurrence_id: OccurrenceId) -> tuple[SlotId, ...]:
        """Return the ids of the slots that the occurrence owns, in order."""
        return tuple(SlotId(row.slot_id) for row in self.session.rows(sql.SLOTS_OWNED, id_owner_id=occurrence_id))

    def move_slot(self, before: Slot, after: Slot) -> None:
        """Change owner and epoch."""
        unmoved(before, after, (before.slot_id, before.relation) == (after.slot_id, after.relation))
        self.session.move(
            sql.MOVE_SLOT,
            id_slot_id=before.slot_id,
            was_owner_id=before.owner_id,
            was_epoch=before.epoch,
            to_owner_id=after.owner_id,
            to_epoch=after.epoch,
        )

    def claims(self, slot_ids: Collection[SlotId]) -> tuple[Claim, ...]:
        """Return the claims on these slots."""
        return tuple(_claim(row) for row in self.session.rows_of(sql.CLAIMS, slot_ids))

    def claims_of(self, occurrence_id: OccurrenceId) -> tuple[Claim, ...]:
        """Return the occurrence's claims."""
        return tuple(_claim(row) for row in self.session.rows(sql.CLAIMS_OF, id_occurrence_id=occurrence_id))

    def add_claim(self, claim: Claim) -> None:
        """Insert a claim."""
        self.session.add(sql.ADD_CLAIM, [{"slot_id": claim.slot_id, "occurrence_id": claim.occurrence_id}])

    def drop_claims(self, occurrence_id: OccurrenceId) -> None:
        """Delete the occurrence's claims."""
        self.session.write(sql.DROP_CLAIMS, id_occurrence_id=occurrence_id)


def _slot(row: Row[Any]) -> Slot:
    return Slot(
        slot_id=SlotId(row.slot_id),
        incarnation_id=IncarnationId(row.incarnation_id),
        relation=Relation(row.schema_name, row.relation_name),
        owner_id=row.owner_id,
        epoch=row.epoch,
    )


def _claim(row: Row[Any]) -> Claim:
    return Claim(SlotId(row.slot_id), OccurrenceId(row.occurrence_id))
