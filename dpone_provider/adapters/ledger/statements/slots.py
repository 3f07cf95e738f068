"""Incarnations, slots and claims."""

from __future__ import annotations

from sqlalchemy import delete, select

from dpone_provider.adapters.ledger.locks import Statement, lockable, read
from dpone_provider.adapters.ledger.statements.build import add, add_if_absent, among, is_id, move, param
from dpone_provider.adapters.ledger.tables import INCARNATION, LEDGER_SEQUENCE, SLOT, SLOT_CLAIM

NEXT_SEQUENCE = Statement("take sequence number", select(LEDGER_SEQUENCE.next_value()))

INCARNATION_ROW = lockable(
    "read incarnation",
    select(INCARNATION).where(is_id(INCARNATION.c.incarnation_id)),
    INCARNATION,
    "incarnation_pkey (incarnation_id)",
)
ADD_INCARNATION = add_if_absent(INCARNATION, "incarnation_pkey")

REGISTERED = read(
    "read registered relations",
    select(SLOT.c.schema_name, SLOT.c.relation_name)
    .where(is_id(SLOT.c.incarnation_id))
    .order_by(SLOT.c.schema_name, SLOT.c.relation_name),
)
REGISTERED_BEFORE = read(
    "read relations registered before",
    select(SLOT.c.schema_name, SLOT.c.relation_name)
    .where(
        SLOT.c.incarnation_id.in_(
            select(INCARNATION.c.incarnation_id)
            .where(
                is_id(INCARNATION.c.service_id),
                is_id(INCARNATION.c.database_name),
                INCARNATION.c.incarnation_id != param("id", INCARNATION.c.incarnation_id),
            )
            .with_hint(INCARNATION, "WITH (READCOMMITTEDLOCK)", "mssql")
        )
    )
    .distinct()
    .order_by(SLOT.c.schema_name, SLOT.c.relation_name),
)
SLOT_ROWS = lockable(
    "read slots",
    select(SLOT).where(among(SLOT.c.slot_id)).order_by(SLOT.c.slot_id),
    SLOT,
    "slot_pkey (slot_id)",
)
SLOTS_OWNED = read("read slots owned", select(SLOT.c.slot_id).where(is_id(SLOT.c.owner_id)).order_by(SLOT.c.slot_id))
ADD_SLOT = add(SLOT)
MOVE_SLOT = move(SLOT, ["slot_id"], ["owner_id", "epoch"])

CLAIMS = read("read claims", select(SLOT_CLAIM).where(among(SLOT_CLAIM.c.slot_id)).order_by(SLOT_CLAIM.c.slot_id))
CLAIMS_OF = read(
    "read occurrence's claims",
    select(SLOT_CLAIM).where(is_id(SLOT_CLAIM.c.occurrence_id)).order_by(SLOT_CLAIM.c.slot_id),
)
ADD_CLAIM = add(SLOT_CLAIM)
DROP_CLAIMS = Statement("drop claims", delete(SLOT_CLAIM).where(is_id(SLOT_CLAIM.c.occurrence_id)))
