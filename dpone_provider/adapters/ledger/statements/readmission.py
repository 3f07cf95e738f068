"""Readmissions, what they entered, and burials."""

from __future__ import annotations

from sqlalchemy import func, select, update

from dpone_provider.adapters.ledger.locks import Statement, read
from dpone_provider.adapters.ledger.statements.build import add, among, is_id, param
from dpone_provider.adapters.ledger.tables import (
    ATTEMPT,
    ATTEMPT_SERVICE,
    AUTHORITY,
    BURIAL,
    EPOCH_FLOOR,
    GENERATION_FLOOR,
    INCARNATION,
    LOGIN_GATE,
    PUBLICATION,
    READMISSION,
    READMISSION_END,
    SPENT_ATTEMPT,
    STRAY_GATE,
)
from dpone_provider.domain.attempt import LIVE
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.publication import SETTLED

READMISSIONS = read("read readmissions", select(READMISSION).order_by(READMISSION.c.ledger_sequence.desc()))
ENDS = read("read readmissions' ends", select(READMISSION_END.c.readmission_id))
ADD_READMISSION = add(READMISSION)
END_READMISSION = add(READMISSION_END)
MOVE_AUTHORITY = Statement(
    "move authority",
    update(AUTHORITY)
    .where(AUTHORITY.c.one_row == 1)
    .values(
        authority_id=param("to", AUTHORITY.c.authority_id),
        incarnation=param("to", AUTHORITY.c.incarnation),
    ),
)

EPOCH_FLOORS = read(
    "read epoch floors",
    select(EPOCH_FLOOR.c.slot_id, func.max(EPOCH_FLOOR.c.epoch).label("epoch"))
    .where(among(EPOCH_FLOOR.c.slot_id))
    .group_by(EPOCH_FLOOR.c.slot_id),
)
ADD_EPOCH_FLOOR = add(EPOCH_FLOOR)
GENERATION_FLOORS = read(
    "read generation floors",
    select(GENERATION_FLOOR.c.generation).where(is_id(GENERATION_FLOOR.c.environment)),
)
ADD_GENERATION_FLOOR = add(GENERATION_FLOOR)

SPENT_AMONG = read("read spent attempts", select(SPENT_ATTEMPT.c.attempt_id).where(among(SPENT_ATTEMPT.c.attempt_id)))
SPENT = read("read spent attempt", select(SPENT_ATTEMPT.c.attempt_id).where(is_id(SPENT_ATTEMPT.c.attempt_id)))
ADD_SPENT = add(SPENT_ATTEMPT)
KNOWN = read("read known attempts", select(ATTEMPT.c.attempt_id).where(among(ATTEMPT.c.attempt_id)))
ADD_STRAY = add(STRAY_GATE)

BURIAL_ROW = read("read burial", select(BURIAL).where(is_id(BURIAL.c.service_id)))
BURIALS = read("read burials", select(BURIAL).order_by(BURIAL.c.ledger_sequence))
ADD_BURIAL = add(BURIAL)
SERVICES_OF_TARGETS = read("read services of targets", select(INCARNATION.c.service_id).distinct())
SERVICES_OF_GATES = read("read services of gates", select(LOGIN_GATE.c.service_id).distinct())
OPEN_GATES_ON = read(
    "read service's open gates",
    select(LOGIN_GATE)
    .where(is_id(LOGIN_GATE.c.service_id), LOGIN_GATE.c.gate_state != GateState.CLOSED.value)
    .order_by(LOGIN_GATE.c.principal_name),
)
LIVE_ON = read(
    "read service's live attempts",
    select(ATTEMPT)
    .where(
        ATTEMPT.c.attempt_id.in_(
            select(ATTEMPT_SERVICE.c.attempt_id)
            .where(is_id(ATTEMPT_SERVICE.c.service_id))
            .with_hint(ATTEMPT_SERVICE, "WITH (READCOMMITTEDLOCK)", "mssql")
        ),
        ATTEMPT.c.state.in_(sorted(LIVE)),
    )
    .order_by(ATTEMPT.c.ledger_sequence.desc()),
)
UNRESOLVED_ON = read(
    "read service's unresolved publications",
    select(PUBLICATION)
    .where(is_id(PUBLICATION.c.service_id), PUBLICATION.c.state.not_in(sorted(SETTLED)))
    .order_by(PUBLICATION.c.attempt_id),
)
