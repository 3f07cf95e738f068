"""Airflow runs, attempts with their slots and services, and the events of their nodes."""

from __future__ import annotations

from sqlalchemy import (
    BindParameter,
    Integer,
    Label,
    String,
    bindparam,
    cast,
    false,
    literal_column,
    null,
    select,
    true,
    update,
)

from dpone_provider.adapters.ledger.locks import Statement, lockable, read, read_together
from dpone_provider.adapters.ledger.statements.build import add, add_if_absent, among, is_id, move
from dpone_provider.adapters.ledger.tables import (
    AIRFLOW_RUN,
    ATTEMPT,
    ATTEMPT_READ,
    ATTEMPT_SERVICE,
    ATTEMPT_SLOT,
    NODE_EVENT,
)
from dpone_provider.domain.attempt import LIVE, AttemptState

_LIVE = ATTEMPT.c.state.in_(sorted(LIVE))
_NEWEST_FIRST = ATTEMPT.c.ledger_sequence.desc()
_AT_MOST: BindParameter[int] = bindparam("at_most", type_=Integer())


def _part(name: str) -> Label[str]:
    """Return which part of an attempt a row is."""
    return literal_column(f"'{name}'", String()).label("part")


RUN_OCCURRENCE = read(
    "read run's occurrence",
    select(AIRFLOW_RUN.c.occurrence_id).where(is_id(AIRFLOW_RUN.c.environment), is_id(AIRFLOW_RUN.c.run_key)),
)
ADD_RUN = add_if_absent(AIRFLOW_RUN, "one_run_one_occurrence")

ATTEMPT_ROW = lockable(
    "read attempt", select(ATTEMPT).where(is_id(ATTEMPT.c.attempt_id)), ATTEMPT, "one_execution (attempt_id)"
)
_NO_SERVICE = cast(null(), ATTEMPT_SERVICE.c.service_id.type).label("service_id")
_NO_SLOT = cast(null(), ATTEMPT_SLOT.c.slot_id.type).label("slot_id")
_NO_EPOCH = cast(null(), ATTEMPT_SLOT.c.epoch.type).label("epoch")
PARTS_OF = read_together(
    "read attempts' services and slots",
    select(ATTEMPT_SERVICE.c.attempt_id, _part("service"), ATTEMPT_SERVICE.c.service_id, _NO_SLOT, _NO_EPOCH).where(
        among(ATTEMPT_SERVICE.c.attempt_id)
    ),
    select(ATTEMPT_SLOT.c.attempt_id, _part("write"), _NO_SERVICE, ATTEMPT_SLOT.c.slot_id, ATTEMPT_SLOT.c.epoch).where(
        among(ATTEMPT_SLOT.c.attempt_id)
    ),
    select(ATTEMPT_READ.c.attempt_id, _part("read"), _NO_SERVICE, ATTEMPT_READ.c.slot_id, _NO_EPOCH).where(
        among(ATTEMPT_READ.c.attempt_id)
    ),
    order=("service_id", "slot_id"),
)
ADD_ATTEMPT = add(ATTEMPT)
ADD_SERVICE = add(ATTEMPT_SERVICE)
ADD_WRITE = add(ATTEMPT_SLOT)
ADD_READ = add(ATTEMPT_READ)
MOVE_ATTEMPT = move(ATTEMPT, ["attempt_id"], ["state"])
FREE_WRITES = Statement(
    "free written slots",
    update(ATTEMPT_SLOT).where(is_id(ATTEMPT_SLOT.c.attempt_id), ATTEMPT_SLOT.c.live == true()).values(live=false()),
)
FREE_READS = Statement(
    "free read slots",
    update(ATTEMPT_READ)
    .where(is_id(ATTEMPT_READ.c.attempt_id), ATTEMPT_READ.c.running == true())
    .values(running=false()),
)

LIVE_OF = read(
    "read live attempts", select(ATTEMPT).where(is_id(ATTEMPT.c.occurrence_id), _LIVE).order_by(_NEWEST_FIRST)
)
NEWEST = read("read attempts", select(ATTEMPT).order_by(_NEWEST_FIRST).limit(_AT_MOST))
NEWEST_OF = read(
    "read an environment's attempts",
    select(ATTEMPT).where(is_id(ATTEMPT.c.environment)).order_by(_NEWEST_FIRST).limit(_AT_MOST),
)
UNRESOLVED = read("read unresolved attempts", select(ATTEMPT).where(_LIVE).order_by(_NEWEST_FIRST).limit(_AT_MOST))
UNRESOLVED_OF = read(
    "read an environment's unresolved attempts",
    select(ATTEMPT).where(is_id(ATTEMPT.c.environment), _LIVE).order_by(_NEWEST_FIRST).limit(_AT_MOST),
)
TRIES = read(
    "read tries of task",
    select(ATTEMPT).where(is_id(ATTEMPT.c.environment), is_id(ATTEMPT.c.task_key)).order_by(ATTEMPT.c.try_number),
)
LIVE_WRITERS = read(
    "read live writers",
    select(ATTEMPT)
    .where(
        ATTEMPT.c.attempt_id.in_(
            select(ATTEMPT_SLOT.c.attempt_id)
            .where(among(ATTEMPT_SLOT.c.slot_id), ATTEMPT_SLOT.c.live == true())
            .with_hint(ATTEMPT_SLOT, "WITH (READCOMMITTEDLOCK)", "mssql")
        )
    )
    .order_by(ATTEMPT.c.ledger_sequence),
)
RUNNING_READERS = read(
    "read running readers",
    select(ATTEMPT)
    .where(
        ATTEMPT.c.state == AttemptState.RUNNING.value,
        ATTEMPT.c.attempt_id.in_(
            select(ATTEMPT_READ.c.attempt_id)
            .where(among(ATTEMPT_READ.c.slot_id), ATTEMPT_READ.c.running == true())
            .with_hint(ATTEMPT_READ, "WITH (READCOMMITTEDLOCK)", "mssql")
        ),
    )
    .order_by(ATTEMPT.c.ledger_sequence),
)

ADD_NODE_EVENT = add(NODE_EVENT)
NODE_EVENTS = read(
    "read node events",
    select(NODE_EVENT).where(is_id(NODE_EVENT.c.attempt_id)).order_by(NODE_EVENT.c.entered),
)
