"""Environments, occurrences, their requests and receipts, their workloads."""

from __future__ import annotations

from sqlalchemy import select

from dpone_provider.adapters.ledger.locks import lockable, read
from dpone_provider.adapters.ledger.statements.build import add, is_id, move
from dpone_provider.adapters.ledger.tables import (
    ENVIRONMENT,
    OCCURRENCE,
    RECEIPT,
    RECEIPT_SLOT,
    WORKLOAD,
    WORKLOAD_SERVICE,
    WORKLOAD_SLOT,
)
from dpone_provider.domain.occurrence import PENDING

_RECORD = [column for column in OCCURRENCE.c if column.name not in ("request", "requested_at")]

ENVIRONMENT_ROW = lockable(
    "read environment", select(ENVIRONMENT).where(is_id(ENVIRONMENT.c.name)), ENVIRONMENT, "environment_pkey (name)"
)
ADD_ENVIRONMENT = add(ENVIRONMENT)
MOVE_ENVIRONMENT = move(ENVIRONMENT, ["name"], ["holder_id", "generation"])

OCCURRENCE_ROW = lockable(
    "read occurrence",
    select(*_RECORD).where(is_id(OCCURRENCE.c.occurrence_id)),
    OCCURRENCE,
    "occurrence_pkey (occurrence_id)",
)
PENDING_OF = read(
    "read pending occurrence",
    select(*_RECORD).where(is_id(OCCURRENCE.c.environment), OCCURRENCE.c.state.in_(sorted(PENDING))),
)
ALL = read("read all occurrences", select(*_RECORD).order_by(OCCURRENCE.c.ledger_sequence.desc()))
ALL_OF = read(
    "read an environment's occurrences",
    select(*_RECORD).where(is_id(OCCURRENCE.c.environment)).order_by(OCCURRENCE.c.ledger_sequence.desc()),
)
ADD_OCCURRENCE = add(OCCURRENCE)
MOVE_OCCURRENCE = move(OCCURRENCE, ["occurrence_id"], ["state", "generation"])
REQUEST = read("read request", select(OCCURRENCE.c.request).where(is_id(OCCURRENCE.c.occurrence_id)))

RECEIPT_OF = read("read receipt", select(RECEIPT).where(is_id(RECEIPT.c.occurrence_id)))
RECEIPT_SLOTS = read(
    "read receipt's epochs",
    select(RECEIPT_SLOT).where(is_id(RECEIPT_SLOT.c.occurrence_id)).order_by(RECEIPT_SLOT.c.slot_id),
)
ADD_RECEIPT = add(RECEIPT)
ADD_RECEIPT_SLOT = add(RECEIPT_SLOT)

WORKLOAD_ROW = read(
    "read workload", select(WORKLOAD).where(is_id(WORKLOAD.c.occurrence_id), is_id(WORKLOAD.c.workload_id))
)
WORKLOAD_SERVICES = read(
    "read workload's services",
    select(WORKLOAD_SERVICE)
    .where(is_id(WORKLOAD_SERVICE.c.occurrence_id), is_id(WORKLOAD_SERVICE.c.workload_id))
    .order_by(WORKLOAD_SERVICE.c.service_id),
)
WORKLOAD_SLOTS = read(
    "read workload's slots",
    select(WORKLOAD_SLOT)
    .where(is_id(WORKLOAD_SLOT.c.occurrence_id), is_id(WORKLOAD_SLOT.c.workload_id))
    .order_by(WORKLOAD_SLOT.c.slot_id),
)
ADD_WORKLOAD = add(WORKLOAD)
ADD_WORKLOAD_SERVICE = add(WORKLOAD_SERVICE)
ADD_WORKLOAD_SLOT = add(WORKLOAD_SLOT)
