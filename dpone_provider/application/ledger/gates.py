"""The transactions of a gate: journal, ready, deliver, bar, closing, closed.

JOURNALED, READY and DELIVERED are written under the attempt row's lock, and only while it is RUNNING. CLOSING takes the
gate row alone: a transfer that hangs inside its target transaction keeps the attempt row share-locked.
"""

from __future__ import annotations

from collections.abc import Callable

from dpone_provider.application.ports.ledger import LedgerTransaction, Lock
from dpone_provider.domain import gate as gates
from dpone_provider.domain.attempt import Attempt, Proof, ProofKind, require_running
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, Digest, Principal, ServiceId, digest_of
from dpone_provider.domain.outcomes import Failed, Refused, Unknown, refuse, unwind

Create = Callable[[object], Failed | Unknown | None]
"""Creates the login inside the transaction whose handle it is given; what it returns but None rolls back."""


def journal(tx: LedgerTransaction, attempt_id: AttemptId, principal: Principal) -> Gate | Refused:
    """Nothing → JOURNALED."""
    stopped = require_running(required_attempt(tx, attempt_id, Lock.UPDATE))
    if stopped is not None:
        return stopped
    existing = tx.gate(attempt_id, principal.service_id, Lock.NONE)
    burial = tx.burial(principal.service_id)
    decided = gates.journal(attempt_id, principal, existing=existing, burial=burial)
    if isinstance(decided, Gate):
        tx.add_gate(decided)
    return decided


def ready(
    tx: LedgerTransaction, attempt_id: AttemptId, service_id: ServiceId, create: Create
) -> Gate | Refused | Failed | Unknown:
    """JOURNALED → READY, with the login created in the same transaction where the engine allows it."""
    stopped = require_running(required_attempt(tx, attempt_id, Lock.UPDATE))
    if stopped is not None:
        return stopped
    gate = required_gate(tx, attempt_id, service_id, Lock.UPDATE)
    decided = gates.ready(gate)
    if isinstance(decided, Refused):
        return decided
    made = create(tx.handle)
    if made is not None:
        return made
    tx.move_gate(gate, decided)
    return decided


def deliver(tx: LedgerTransaction, attempt_id: AttemptId, service_id: ServiceId) -> Gate | Refused:
    """Mark the secret as delivered, before it leaves the controller."""
    stopped = require_running(required_attempt(tx, attempt_id, Lock.UPDATE))
    if stopped is not None:
        return stopped
    gate = required_gate(tx, attempt_id, service_id, Lock.UPDATE)
    return _moved(tx, gate, gates.deliver(gate))


def bar(tx: LedgerTransaction, attempt_id: AttemptId, principal: Principal, evidence: bytes) -> Gate | Refused:
    """Nothing → CLOSED: this attempt never issued on this service, and never will."""
    required_attempt(tx, attempt_id, Lock.UPDATE)
    existing = tx.gate(attempt_id, principal.service_id, Lock.NONE)
    if existing is not None:
        return existing
    decided = gates.bar(attempt_id, principal, existing=None, sequence=tx.next_sequence(), evidence=digest_of(evidence))
    if isinstance(decided, Gate):
        tx.add_gate(decided)
        _prove_closed(tx, decided, evidence)
    return decided


def closing(tx: LedgerTransaction, attempt_id: AttemptId, service_id: ServiceId) -> Gate | Refused:
    """JOURNALED | READY → CLOSING; one that is CLOSING or CLOSED already stays as it is."""
    gate = required_gate(tx, attempt_id, service_id, Lock.UPDATE)
    if gate.state in (GateState.CLOSING, GateState.CLOSED):
        return gate
    return _moved(tx, gate, gates.closing(gate))


def closed(
    tx: LedgerTransaction, attempt_id: AttemptId, service_id: ServiceId, *, quiescent: bool, evidence: bytes
) -> Gate | Refused:
    """CLOSING → CLOSED, with the observation as evidence."""
    gate = required_gate(tx, attempt_id, service_id, Lock.UPDATE)
    if gate.state is GateState.CLOSED:
        return gate
    decided = gates.close(gate, quiescent=quiescent, sequence=tx.next_sequence(), evidence=digest_of(evidence))
    if isinstance(decided, Gate):
        tx.move_gate(gate, decided)
        _prove_closed(tx, decided, evidence)
    return decided


def required_attempt(tx: LedgerTransaction, attempt_id: AttemptId, lock: Lock) -> Attempt:
    """Return the attempt.

    Raises:
        DponeError: Refused ``no_such_attempt``.
    """
    found = tx.attempt(attempt_id, lock)
    if found is None:
        unwind(
            refuse(
                "no_such_attempt",
                f"attempt {attempt_id}",
                found="no such row in the ledger",
                allowed="an attempt of this ledger",
                next_command="dpone attempt list",
            )
        )
    return found


def required_gate(tx: LedgerTransaction, attempt_id: AttemptId, service_id: ServiceId, lock: Lock) -> Gate:
    """Return the gate.

    Raises:
        DponeError: Refused ``no_such_gate``.
    """
    found = tx.gate(attempt_id, service_id, lock)
    if found is None:
        unwind(
            refuse(
                "no_such_gate",
                f"gate of attempt {attempt_id} on service {service_id}",
                found="no such row in the ledger",
                allowed="a gate that was journaled",
                next_command=f"dpone attempt show {attempt_id}",
            )
        )
    return found


def _moved(tx: LedgerTransaction, before: Gate, after: Gate | Refused) -> Gate | Refused:
    if isinstance(after, Gate):
        tx.move_gate(before, after)
    return after


def _prove_closed(tx: LedgerTransaction, gate: Gate, evidence: bytes) -> None:
    if gate.closed_sequence is not None:
        proof = Proof(
            attempt_id=gate.attempt_id,
            kind=ProofKind.GATES_CLOSED,
            evidence_digest=Digest(digest_of(evidence)),
            names_gates=(gate.principal.gate_name,),
            ledger_sequence=gate.closed_sequence,
        )
        tx.add_proof(proof, evidence)
