"""The transaction that buries a service lost for good.

It takes the authority's lock first, exclusively: no other transaction of the ledger is open beside it.
"""

from __future__ import annotations

from collections.abc import Callable

from dpone_provider.application.ports.ledger import LedgerTransaction, Lock
from dpone_provider.domain import gate as gates
from dpone_provider.domain import publication as publications
from dpone_provider.domain.attempt import Attempt, AttemptState, Proof, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import GateName, Principal, digest_of, principal_name
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.readmission import Burial

EvidenceOf = Callable[[Attempt, tuple[GateName, ...], AttemptState], bytes]
"""Makes the proof document of a judgement from the attempt, the gates that it names and the outcome."""


def bury(tx: LedgerTransaction, burial: Burial, evidence_of: EvidenceOf) -> tuple[Attempt, ...] | Refused:
    """Record that a service is gone for good; return the RUNNING attempts that write it, oldest first.

    Its gates are CLOSED and its publications UNKNOWN by this judgement. Burying it again finds what a crash left.
    """
    tx.lock_authority()
    return bury_all(tx, burial, evidence_of)


def bury_all(tx: LedgerTransaction, burial: Burial, evidence_of: EvidenceOf) -> tuple[Attempt, ...] | Refused:
    """Do so inside a transaction that holds the authority's lock."""
    standing = tx.burial(burial.service_id)
    if standing is None:
        tx.add_burial(burial)
        standing = burial
    live = tx.live_attempts_on(burial.service_id)
    locked = [tx.attempt(one, Lock.UPDATE) for one in sorted(each.attempt_id for each in live)]
    by_id = {one.attempt_id: one for one in locked if one is not None}
    for gate in tx.open_gates_on(burial.service_id):
        closed = _close(tx, gate, by_id[gate.attempt_id], standing, evidence_of)
        if isinstance(closed, Refused):
            return closed
    running = [one for one in reversed(live) if one.state is AttemptState.RUNNING]
    for attempt in running:
        if tx.gate(attempt.attempt_id, burial.service_id, Lock.NONE) is None:
            _bar(tx, attempt, standing, evidence_of)
    for publication in tx.unresolved_on(burial.service_id):
        doubted = publications.doubt(publication, opened=None, burial=standing)
        if isinstance(doubted, Refused):
            return doubted
        if doubted != publication:
            tx.move_publication(publication, doubted)
    return tuple(running)


def _close(
    tx: LedgerTransaction, gate: Gate, attempt: Attempt, burial: Burial, evidence_of: EvidenceOf
) -> Gate | Refused:
    locked = tx.gate(gate.attempt_id, gate.service_id, Lock.UPDATE) or gate
    if locked.state is not GateState.CLOSING:
        closing = gates.closing(locked)
        if isinstance(closing, Refused):
            return closing
        tx.move_gate(locked, closing)
        locked = closing
    evidence = evidence_of(attempt, (gate.principal.gate_name,), AttemptState.RUNNING)
    decided = gates.bury(locked, burial=burial, sequence=tx.next_sequence(), evidence=digest_of(evidence))
    if isinstance(decided, Gate):
        tx.move_gate(locked, decided)
        _prove(tx, decided, evidence)
    return decided


def _bar(tx: LedgerTransaction, attempt: Attempt, burial: Burial, evidence_of: EvidenceOf) -> None:
    name = principal_name(attempt.attempt_id)
    principal = Principal(service_id=burial.service_id, name=name, sid=name)
    evidence = evidence_of(attempt, (principal.gate_name,), AttemptState.RUNNING)
    barred = gates.bar(
        attempt.attempt_id, principal, existing=None, sequence=tx.next_sequence(), evidence=digest_of(evidence)
    )
    if isinstance(barred, Gate):
        tx.add_gate(barred)
        _prove(tx, barred, evidence)


def _prove(tx: LedgerTransaction, gate: Gate, evidence: bytes) -> None:
    proof = Proof(
        attempt_id=gate.attempt_id,
        kind=ProofKind.GATES_CLOSED,
        evidence_digest=digest_of(evidence),
        names_gates=(gate.principal.gate_name,),
        ledger_sequence=gate.closed_sequence or 0,
    )
    tx.add_proof(proof, evidence)
