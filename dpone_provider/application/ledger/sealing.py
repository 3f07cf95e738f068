"""The transactions that end an attempt: seal and reconcile, each settling its publication in the same transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpone_provider.application.ledger.gates import required_attempt
from dpone_provider.application.ledger.publications import settled
from dpone_provider.application.ports.ledger import LedgerTransaction, Lock, NodeEvent
from dpone_provider.domain import attempt as attempts
from dpone_provider.domain.attempt import Attempt, AttemptState, Proof, ProofKind
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import AttemptId, GateName, digest_of
from dpone_provider.domain.outcomes import Failure, Refused
from dpone_provider.domain.publication import PublicationState


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was observed of an attempt after its gates were CLOSED.

    ``evidence`` is the proof document's canonical bytes; ``names_gates`` the gates whose closing it followed.
    ``publication`` is the outcome for its publication, None where the workload has none. ``because`` is for the message
    only: what kept it from succeeding, as far as the observer knows.
    """

    outcome: AttemptState
    evidence: bytes
    names_gates: tuple[GateName, ...]
    publication: PublicationState | None = None
    staged_object_gone: bool = False
    because: Failure | None = None


Decision = Callable[[Attempt, tuple[Gate, ...], Proof], Attempt | Refused]


def seal(tx: LedgerTransaction, attempt_id: AttemptId, verdict: Verdict) -> Attempt | Refused:
    """RUNNING → an end state. An attempt that has ended already is returned as it stands."""
    attempt = required_attempt(tx, attempt_id, Lock.UPDATE)
    if attempt.state is not AttemptState.RUNNING:
        return attempt
    return _end(
        tx, attempt, verdict, lambda one, gates, proof: attempts.seal(one, verdict.outcome, gates=gates, proof=proof)
    )


def reconcile(tx: LedgerTransaction, attempt_id: AttemptId, verdict: Verdict) -> Attempt | Refused:
    """COMMIT_UNKNOWN → SUCCEEDED | FAILED, by evidence or by an operator's recorded judgement.

    An attempt that has come to this very outcome is returned as it stands.
    """
    attempt = required_attempt(tx, attempt_id, Lock.UPDATE)
    if attempt.state is verdict.outcome and attempt.state is not AttemptState.COMMIT_UNKNOWN:
        return attempt
    return _end(
        tx,
        attempt,
        verdict,
        lambda one, gates, proof: attempts.reconcile(one, verdict.outcome, gates=gates, proof=proof),
    )


def record_node(tx: LedgerTransaction, event: NodeEvent) -> Refused | None:
    """Enter a dbt node's event while the attempt is RUNNING."""
    stopped = attempts.require_running(required_attempt(tx, event.attempt_id, Lock.SHARE))
    if stopped is None:
        tx.add_node_event(event)
    return stopped


def _end(tx: LedgerTransaction, attempt: Attempt, verdict: Verdict, decide: Decision) -> Attempt | Refused:
    proof = Proof(
        attempt_id=attempt.attempt_id,
        kind=ProofKind.OUTCOME,
        evidence_digest=digest_of(verdict.evidence),
        names_gates=verdict.names_gates,
        ledger_sequence=tx.next_sequence(),
    )
    decided = decide(attempt, tx.gates(attempt.attempt_id), proof)
    if isinstance(decided, Refused):
        return decided
    tx.add_proof(proof, verdict.evidence)
    if verdict.publication is not None:
        publication = settled(
            tx, attempt.attempt_id, verdict.publication, staged_object_gone=verdict.staged_object_gone
        )
        if isinstance(publication, Refused):
            return publication
    tx.move_attempt(attempt, decided)
    return decided
