"""Recovery: the front door for attempts that are dead, and the reconciliation of unknown ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from dpone_provider.application.evidence import canonical_text, proof_document
from dpone_provider.application.front_door import AttemptRecord, FrontDoor, OutcomeObserver
from dpone_provider.application.ledger import sealing
from dpone_provider.application.ledger.calls import require
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.process import TaskInstances
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.documents.attempt_proof import Judgement
from dpone_provider.domain.attempt import Attempt, AttemptState, ProofKind
from dpone_provider.domain.identity import AttemptId, GateName
from dpone_provider.domain.outcomes import DponeError, Failure, Refused, Unknown, refuse, unknown
from dpone_provider.domain.publication import PublicationState

ObserverOf = Callable[[Attempt], OutcomeObserver]
READ_SECONDS = 30.0
MANY = 10_000
MAX_REASON = 1000


class Recovered(StrEnum):
    """What recovery did with one attempt."""

    ENDED = "ended"
    ALIVE = "left alone: its task is alive"
    CANNOT_ASK = "left alone: Airflow could not be asked"
    UNKNOWN = "needs `dpone attempt reconcile`"
    FAILED = "could not be ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredAttempt:
    """One attempt with what became of it; ``problem`` says why it is still there."""

    attempt: Attempt
    did: Recovered
    problem: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Ends attempts that nobody else will end. Never by age: by Airflow's word, or by the operator's."""

    ledger: Ledger
    front_door: FrontDoor
    observer_of: ObserverOf
    task_instances: TaskInstances
    clock: Clock
    closing: float = 60.0

    def recover_dead(self, environment: str | None) -> tuple[RecoveredAttempt, ...]:
        """Take the front door for every live attempt whose task instance Airflow says is dead; collect stray logins."""
        live = require(
            self.ledger,
            "read",
            lambda tx: tx.attempts(environment=environment, unresolved_only=True, limit=MANY),
            self._deadline(),
        )
        recovered = tuple(self._recover(attempt) for attempt in reversed(live))
        with suppress(DponeError):
            # Nothing depends on it: a login of a CLOSED gate lets nobody in.
            self.front_door.sweep(self._deadline())
        return recovered

    def recover_on_word(self, attempt_id: AttemptId) -> RecoveredAttempt:
        """Take the front door for one attempt because an operator says that it is dead. A mistake costs work only."""
        record = self.front_door.record(attempt_id, self._deadline())
        return self._end(record.attempt)

    def _recover(self, attempt: Attempt) -> RecoveredAttempt:
        if attempt.state is AttemptState.COMMIT_UNKNOWN:
            return RecoveredAttempt(attempt=attempt, did=Recovered.UNKNOWN)
        alive = self.task_instances.alive(attempt.binding.airflow)
        if isinstance(alive, Unknown):
            return RecoveredAttempt(attempt=attempt, did=Recovered.CANNOT_ASK, problem=alive)
        if alive:
            return RecoveredAttempt(attempt=attempt, did=Recovered.ALIVE)
        return self._end(attempt)

    def _end(self, attempt: Attempt) -> RecoveredAttempt:
        deadline = Deadline.after(self.clock, self.closing)
        try:
            ended = self.front_door.take(attempt.attempt_id, self.observer_of(attempt), deadline)
        except DponeError as error:
            return RecoveredAttempt(attempt=attempt, did=Recovered.FAILED, problem=error.failure)
        did = Recovered.UNKNOWN if ended.state is AttemptState.COMMIT_UNKNOWN else Recovered.ENDED
        return RecoveredAttempt(attempt=ended, did=did)

    def look(self, attempt_id: AttemptId) -> Verdict:
        """Observe an attempt in COMMIT_UNKNOWN again and return what the evidence shows now; nothing is sealed.

        Raises:
            DponeError: Refused when it is not in COMMIT_UNKNOWN.
        """
        record = self._unknown_record(attempt_id)
        return self.observer_of(record.attempt).observe(record, Deadline.after(self.clock, self.closing))

    def reconcile(self, attempt_id: AttemptId) -> Attempt:
        """COMMIT_UNKNOWN → what the evidence shows now.

        Raises:
            DponeError: Unknown when the evidence still shows nothing.
        """
        seen = self.look(attempt_id)
        if seen.outcome is AttemptState.COMMIT_UNKNOWN:
            raise DponeError(_no_evidence(attempt_id, seen))
        return self._settle(attempt_id, seen)

    def judge(self, attempt_id: AttemptId, outcome: AttemptState, *, because: str, by: str) -> Attempt:
        """COMMIT_UNKNOWN → SUCCEEDED | FAILED by an operator's recorded judgement, with what the evidence showed.

        Raises:
            DponeError: Refused when it is not in COMMIT_UNKNOWN, or there is no reason of at most 1,000 characters.
        """
        reason = canonical_text(because.strip())
        if not 0 < len(reason) <= MAX_REASON:
            raise DponeError(_no_reason(attempt_id, len(reason)))
        record = self._unknown_record(attempt_id)
        names = tuple(gate.principal.gate_name for gate in record.gates)
        evidence = proof_document(
            ProofKind.OUTCOME,
            attempt_id,
            {"evidence_showed": self._shows(record)},
            names_gates=names,
            at=self.clock.utc_now(),
            outcome=outcome,
            judgement=Judgement(because=reason, by=canonical_text(by)),
        )
        return self._settle(attempt_id, _as_judged(record, outcome, evidence, names))

    def _shows(self, record: AttemptRecord) -> str:
        """Return in words what the evidence shows now: a judgement is for when it cannot be looked at, too."""
        try:
            seen = self.observer_of(record.attempt).observe(record, Deadline.after(self.clock, self.closing))
        except DponeError as error:
            return f"nothing: {error.failure.problem}"
        return str(seen.outcome)

    def _settle(self, attempt_id: AttemptId, verdict: Verdict) -> Attempt:
        return require(
            self.ledger, "reconcile", lambda tx: sealing.reconcile(tx, attempt_id, verdict), self._deadline()
        )

    def _unknown_record(self, attempt_id: AttemptId) -> AttemptRecord:
        record = self.front_door.record(attempt_id, self._deadline())
        if record.attempt.state is not AttemptState.COMMIT_UNKNOWN:
            raise DponeError(
                refuse(
                    "attempt_is_unknown",
                    str(record.attempt),
                    found=record.attempt.state,
                    allowed="COMMIT_UNKNOWN",
                    next_command=f"dpone attempt show {attempt_id}"
                    + ("; `dpone recover` for a dead one" if record.attempt.state is AttemptState.RUNNING else ""),
                )
            )
        return record

    def _deadline(self) -> Deadline:
        return Deadline.after(self.clock, READ_SECONDS)


def _as_judged(record: AttemptRecord, outcome: AttemptState, evidence: bytes, names: tuple[GateName, ...]) -> Verdict:
    succeeded = outcome is AttemptState.SUCCEEDED
    publication = PublicationState.PUBLISHED if succeeded else PublicationState.NOT_PUBLISHED
    return Verdict(
        outcome=outcome,
        evidence=evidence,
        names_gates=names,
        publication=None if record.publication is None else publication,
        staged_object_gone=not succeeded,
    )


def _no_reason(attempt_id: AttemptId, length: int) -> Refused:
    return refuse(
        "judgement_without_reason",
        f"attempt {attempt_id}",
        found=f"a reason of {length} characters",
        allowed=f"1 to {MAX_REASON} characters that say why you judge so",
        next_command=f"dpone attempt reconcile {attempt_id} --as succeeded|failed --because TEXT",
    )


def _no_evidence(attempt_id: AttemptId, seen: Verdict) -> Unknown:
    return unknown(
        "no_evidence",
        f"attempt {attempt_id}",
        found=f"no proof of either outcome ({seen.because.problem})" if seen.because else "no proof of either outcome",
        allowed="evidence on the target that shows either outcome",
        next_command="restore the target's reachability and run it again; or judge:"
        f" `dpone attempt reconcile {attempt_id} --as succeeded|failed --because TEXT`",
    )
