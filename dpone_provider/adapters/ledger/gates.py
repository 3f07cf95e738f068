"""Gates and proofs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from dpone_provider.adapters.ledger.session import Session, unmoved
from dpone_provider.adapters.ledger.statements import gates as sql
from dpone_provider.application.ports.ledger import Lock
from dpone_provider.domain.attempt import Proof, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, Digest, GateName, Principal, ServiceId


class GateRows:
    """The part of ``LedgerTransaction`` that is about gates and proofs."""

    session: Session

    def gate(self, attempt_id: AttemptId, service_id: ServiceId, lock: Lock) -> Gate | None:
        """Return the attempt's gate on the service."""
        row = self.session.row(sql.GATE_ROW[lock], id_attempt_id=attempt_id, id_service_id=service_id)
        return None if row is None else gate_of_row(row)

    def gates(self, attempt_id: AttemptId) -> tuple[Gate, ...]:
        """Return the attempt's gates by principal name."""
        return tuple(gate_of_row(row) for row in self.session.rows(sql.GATES_OF, id_attempt_id=attempt_id))

    def principals_used(self, service_id: ServiceId) -> frozenset[str]:
        """Return every principal name ever journaled on the service, and its strays."""
        used = self.session.rows(sql.NAMES_USED, id_service_id=service_id)
        strays = self.session.rows(sql.STRAY_NAMES, id_service_id=service_id)
        return frozenset(row.principal_name for row in (*used, *strays))

    def gate_of_principal(self, service_id: ServiceId, name: str) -> Gate | None:
        """Return the gate that the principal's name belongs to."""
        row = self.session.row(sql.GATE_OF_PRINCIPAL, id_service_id=service_id, id_principal_name=name)
        return None if row is None else gate_of_row(row)

    def add_gate(self, gate: Gate) -> None:
        """Insert a gate, JOURNALED or barred."""
        values = {
            "service_id": gate.service_id,
            "principal_name": gate.principal.name,
            "sid": gate.principal.sid,
            "attempt_id": gate.attempt_id,
            "gate_state": gate.state.value,
            "delivered": gate.delivered,
            "barred": gate.barred,
            "closed_sequence": gate.closed_sequence,
            "evidence_digest": gate.evidence_digest,
        }
        self.session.add(sql.ADD_GATE, [values])

    def move_gate(self, before: Gate, after: Gate) -> None:
        """Change state, delivery and the evidence of closing."""
        moved = replace(
            before,
            state=after.state,
            delivered=after.delivered,
            closed_sequence=after.closed_sequence,
            evidence_digest=after.evidence_digest,
        )
        unmoved(before, after, moved == after)
        self.session.move(
            sql.MOVE_GATE,
            id_service_id=before.service_id,
            id_principal_name=before.principal.name,
            was_gate_state=before.state.value,
            was_delivered=before.delivered,
            was_closed_sequence=before.closed_sequence,
            was_evidence_digest=before.evidence_digest,
            to_gate_state=after.state.value,
            to_delivered=after.delivered,
            to_closed_sequence=after.closed_sequence,
            to_evidence_digest=after.evidence_digest,
        )

    def add_proof(self, proof: Proof, evidence: bytes) -> None:
        """Insert a proof with its evidence."""
        values = {
            "ledger_sequence": proof.ledger_sequence,
            "attempt_id": proof.attempt_id,
            "kind": proof.kind.value,
            "evidence_digest": proof.evidence_digest,
            "evidence": evidence,
        }
        self.session.add(sql.ADD_PROOF, [values])
        named = [
            {
                "ledger_sequence": proof.ledger_sequence,
                "position": position,
                "service_id": name.service_id,
                "principal_name": name.principal,
            }
            for position, name in enumerate(proof.names_gates)
        ]
        self.session.add(sql.ADD_PROOF_GATE, named)

    def proofs(self, attempt_id: AttemptId) -> tuple[Proof, ...]:
        """Return the attempt's proofs in ledger order."""
        rows = self.session.rows(sql.PROOFS_OF, id_attempt_id=attempt_id)
        named: dict[int, list[GateName]] = defaultdict(list)
        for part in self.session.rows_of(sql.PROOF_GATES, [row.ledger_sequence for row in rows]):
            named[part.ledger_sequence].append(GateName(ServiceId(part.service_id), part.principal_name))
        return tuple(
            Proof(
                attempt_id=AttemptId(row.attempt_id),
                kind=ProofKind(row.kind),
                evidence_digest=Digest(row.evidence_digest),
                names_gates=tuple(named[row.ledger_sequence]),
                ledger_sequence=row.ledger_sequence,
            )
            for row in rows
        )

    def evidence(self, attempt_id: AttemptId) -> tuple[bytes, ...]:
        """Return the evidence documents of the attempt's proofs, in ledger order."""
        return tuple(bytes(row.evidence) for row in self.session.rows(sql.EVIDENCE_OF, id_attempt_id=attempt_id))


def gate_of_row(row: Row[Any]) -> Gate:
    """Return the gate of a row of ``login_gate``."""
    return Gate(
        attempt_id=AttemptId(row.attempt_id),
        principal=Principal(service_id=ServiceId(row.service_id), name=row.principal_name, sid=row.sid),
        state=GateState(row.gate_state),
        delivered=row.delivered,
        barred=row.barred,
        closed_sequence=row.closed_sequence,
        evidence_digest=None if row.evidence_digest is None else Digest(row.evidence_digest),
    )
