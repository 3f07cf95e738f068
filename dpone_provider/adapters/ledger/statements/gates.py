"""Gates and proofs."""

from __future__ import annotations

from sqlalchemy import select

from dpone_provider.adapters.ledger.locks import lockable, read
from dpone_provider.adapters.ledger.statements.build import add, among, is_id, move
from dpone_provider.adapters.ledger.tables import ATTEMPT_PROOF, ATTEMPT_PROOF_GATE, LOGIN_GATE, STRAY_GATE

GATE_ROW = lockable(
    "read gate",
    select(LOGIN_GATE).where(is_id(LOGIN_GATE.c.attempt_id), is_id(LOGIN_GATE.c.service_id)),
    LOGIN_GATE,
    "one_gate_per_attempt_and_service (attempt_id, service_id)",
)
GATES_OF = read(
    "read gates",
    select(LOGIN_GATE)
    .where(is_id(LOGIN_GATE.c.attempt_id))
    .order_by(LOGIN_GATE.c.principal_name, LOGIN_GATE.c.service_id),
)
NAMES_USED = read("read principals used", select(LOGIN_GATE.c.principal_name).where(is_id(LOGIN_GATE.c.service_id)))
GATE_OF_PRINCIPAL = read(
    "read gate of principal",
    select(LOGIN_GATE).where(is_id(LOGIN_GATE.c.service_id), is_id(LOGIN_GATE.c.principal_name)),
)
STRAY_NAMES = read("read strays", select(STRAY_GATE.c.principal_name).where(is_id(STRAY_GATE.c.service_id)))
ADD_GATE = add(LOGIN_GATE)
MOVE_GATE = move(
    LOGIN_GATE,
    ["service_id", "principal_name"],
    ["gate_state", "delivered", "closed_sequence", "evidence_digest"],
)

PROOFS_OF = read(
    "read proofs",
    select(*(column for column in ATTEMPT_PROOF.c if column.name not in ("evidence", "entered_at")))
    .where(is_id(ATTEMPT_PROOF.c.attempt_id))
    .order_by(ATTEMPT_PROOF.c.ledger_sequence),
)
PROOF_GATES = read(
    "read gates named by proofs",
    select(ATTEMPT_PROOF_GATE)
    .where(among(ATTEMPT_PROOF_GATE.c.ledger_sequence))
    .order_by(ATTEMPT_PROOF_GATE.c.ledger_sequence, ATTEMPT_PROOF_GATE.c.position),
)
EVIDENCE_OF = read(
    "read evidence",
    select(ATTEMPT_PROOF.c.evidence).where(is_id(ATTEMPT_PROOF.c.attempt_id)).order_by(ATTEMPT_PROOF.c.ledger_sequence),
)
ADD_PROOF = add(ATTEMPT_PROOF)
ADD_PROOF_GATE = add(ATTEMPT_PROOF_GATE)
