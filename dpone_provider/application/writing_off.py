"""``control forget`` and ``control bury``: what a copy believes about targets, and a lost service, written off.

Neither asks the services in question: a copy must not touch them, and a lost one does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dpone_provider.application.evidence import proof_document
from dpone_provider.application.front_door import FrontDoor
from dpone_provider.application.ledger import burial as burials
from dpone_provider.application.ledger import readmission as scripts
from dpone_provider.application.ledger import sealing
from dpone_provider.application.ledger.calls import may_have_changed, require
from dpone_provider.application.ledger.readmission import Settled
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.time import Clock, Deadline, Entropy
from dpone_provider.application.readmission import judged, reason_of
from dpone_provider.application.standing import LedgerStanding
from dpone_provider.documents.attempt_proof import Judgement
from dpone_provider.domain.attempt import Attempt, AttemptState, ProofKind
from dpone_provider.domain.identity import GateName, ServiceId
from dpone_provider.domain.outcomes import DponeError, Refused, refuse
from dpone_provider.domain.publication import PublicationState
from dpone_provider.domain.readmission import Burial, Readmission, ReadmissionKind

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What a copy gave up. ``buried`` are the services that it can never touch again."""

    readmission: Readmission
    settled: Settled
    buried: tuple[ServiceId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetter:
    """Makes a copy of an authority forget. ``ledger`` is the one that lets a readmission in."""

    ledger: Ledger
    clock: Clock
    entropy: Entropy
    by: str
    seconds: float = 60.0

    def forget(self, standing: LedgerStanding, because: str) -> Forgotten:
        """Give up everything that the copy believes about targets; run again, it continues.

        Raises:
            DponeError: Refused for an authority of which nothing shows that it is a copy.
        """
        reason = reason_of(because, "forgetting of the authority")
        authority = standing.authority
        if not standing.went_back:
            raise DponeError(_no_copy(standing))
        wanted = Readmission(
            readmission_id=str(self.entropy.uuid()),
            kind=ReadmissionKind.FORGET,
            authority_id=str(self.entropy.uuid()),
            from_incarnation=authority.recorded,
            incarnation=authority.observed,
            because=reason,
            by=self.by,
        )
        seconds = Deadline.after(self.clock, self.seconds)
        opened = require(self.ledger, "forgetting begin", lambda tx: scripts.begin(tx, wanted), seconds)
        try:
            return self._forget(opened, authority.mark, seconds)
        except DponeError as error:
            raise DponeError(may_have_changed(error.failure, f"{opened} is open")) from error

    def _forget(self, opened: Readmission, mark: int, seconds: Deadline) -> Forgotten:
        def evidence(attempt: Attempt, names: tuple[GateName, ...], outcome: AttemptState) -> bytes:
            return judged(opened, attempt, names, outcome, self.clock)

        require(self.ledger, "forgetting above", lambda tx: scripts.go_above(tx, opened, mark), seconds)
        settled = require(self.ledger, "forgetting", lambda tx: scripts.forget(tx, opened, evidence), seconds)
        require(self.ledger, "forgetting end", lambda tx: scripts.end(tx, opened), seconds)
        buried = require(self.ledger, "read", lambda tx: tx.burials(), seconds)
        return Forgotten(readmission=opened, settled=settled, buried=tuple(sorted(one.service_id for one in buried)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Buried:
    """A burial, and the attempts that it left in COMMIT_UNKNOWN."""

    burial: Burial
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undertaker:
    """Buries services. ``answers`` tells whether one is still there, under its own id."""

    ledger: Ledger
    front_door: FrontDoor
    answers: Callable[[ServiceId], bool]
    clock: Clock
    by: str
    seconds: float = 60.0

    def bury(self, service_id: ServiceId, because: str, told: Told) -> Buried:
        """Write a service off for good; run again, it continues.

        Raises:
            DponeError: Refused for a service that the ledger does not know, or that answers.
        """
        burial = Burial(service_id=service_id, because=reason_of(because, f"service {service_id}"), by=self.by)
        deadline = Deadline.after(self.clock, self.seconds)
        known = require(self.ledger, "read", lambda tx: tx.services(), deadline)
        if service_id not in known:
            raise DponeError(_no_such_service(service_id, known))
        if self.answers(service_id):
            raise DponeError(_it_answers(service_id))
        evidence = partial(self._evidence, burial)
        running = require(self.ledger, "bury", lambda tx: burials.bury(tx, burial, evidence), deadline)
        told(f"service {service_id} is buried")
        try:
            return Buried(burial=burial, attempts=tuple(self._seal(one, burial, deadline) for one in running))
        except DponeError as error:
            raise DponeError(may_have_changed(error.failure, f"service {service_id} is buried")) from error

    def _seal(self, attempt: Attempt, burial: Burial, deadline: Deadline) -> Attempt:
        """RUNNING → COMMIT_UNKNOWN: what it wrote elsewhere is closed as ever, what it wrote there nobody can read."""
        record = self.front_door.close(self.front_door.record(attempt.attempt_id, deadline), deadline)
        names = tuple(gate.principal.gate_name for gate in record.gates)
        verdict = Verdict(
            outcome=AttemptState.COMMIT_UNKNOWN,
            evidence=self._evidence(burial, attempt, names, AttemptState.COMMIT_UNKNOWN),
            names_gates=names,
            publication=None if record.publication is None else PublicationState.UNKNOWN,
        )
        return require(self.ledger, "seal", lambda tx: sealing.seal(tx, attempt.attempt_id, verdict), deadline)

    def _evidence(self, burial: Burial, attempt: Attempt, names: tuple[GateName, ...], outcome: AttemptState) -> bytes:
        is_outcome = outcome is not AttemptState.RUNNING
        return proof_document(
            ProofKind.OUTCOME if is_outcome else ProofKind.GATES_CLOSED,
            attempt.attempt_id,
            {"judgement_of": "bury", "service_id": burial.service_id},
            names_gates=names,
            at=self.clock.utc_now(),
            outcome=outcome if is_outcome else None,
            judgement=Judgement(because=burial.because, by=burial.by),
        )


def _no_copy(standing: LedgerStanding) -> Refused:
    return refuse(
        "nothing_went_back",
        f"control authority {standing.authority.authority_id}",
        found="an authority that its server and every target know as it is",
        allowed="a copy: its server is another, or targets have seen a later ledger",
        next_command="nothing; if it shall be given up, retire its environments (dpone occurrence retire ID)",
    )


def _no_such_service(service_id: ServiceId, known: tuple[ServiceId, ...]) -> Refused:
    return refuse(
        "no_such_service",
        f"service {service_id}",
        found="no target and no gate of it in the ledger",
        allowed=", ".join(known) or "none",
        next_command="dpone control readmit lists the services of this machine's cache; it changes nothing",
    )


def _it_answers(service_id: ServiceId) -> Refused:
    return refuse(
        "service_answers",
        f"service {service_id}",
        found="the server itself, under this id",
        allowed="a service that is gone: burial looks at nothing and believes you",
        next_command="dpone recover, which closes its logins by looking",
    )
