"""Many attempts admitted, issued and closed at once: each step of the protocol, in one ledger transaction for all.

The scripts are the product's; what differs is only how many of them share a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dpone_provider.adapters.postgres.gate import PostgresGate
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.evidence import proof_document, sessions_observed
from dpone_provider.application.ledger import admission, gates, sealing
from dpone_provider.application.ledger.admission import Admitted
from dpone_provider.application.ledger.calls import require, settled
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import Attempt, ProofKind
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptBinding, Principal
from dpone_provider.domain.outcomes import Failed, Failure, Unknown
from dpone_provider.domain.secret import Secret
from tests.conformance.postgres_ledger import PostgresLedger
from tests.races.estate import ENVIRONMENT, PLAN, verdict_of
from tests.waiting import wait_until

T = TypeVar("T")
Script = Callable[[LedgerTransaction], T | Failure]


@dataclass(frozen=True, slots=True)
class Issued:
    """An attempt's login, READY and delivered."""

    attempt: Attempt
    gate: Gate
    credential: Credential

    @property
    def principal(self) -> Principal:
        """Who logs in."""
        return self.gate.principal


@dataclass(frozen=True, slots=True)
class Controller:
    """The controller's hands of one thread: its ledger, its gate, and one deadline for everything."""

    ledger: PostgresLedger
    gate: PostgresGate
    deadline: Deadline

    def at_once(self, name: str, scripts: Iterable[Script[T]]) -> list[T]:
        """Run scripts in one transaction; each must succeed."""
        todo = list(scripts)
        return require(self.ledger, name, lambda tx: [settled(script(tx)) for script in todo], self.deadline)

    def admit(self, bindings: Sequence[AttemptBinding]) -> list[Attempt]:
        """Admit attempts."""
        outcomes = self.at_once("admit", [_admission(one) for one in bindings])
        assert all(isinstance(one, Admitted) for one in outcomes), outcomes
        return [one.attempt for one in outcomes if isinstance(one, Admitted)]

    def issue(self, attempts: Sequence[Attempt]) -> list[Issued]:
        """Journal, create with READY, deliver: three transactions."""
        principals = [settled(self.gate.propose(one.attempt_id, ())) for one in attempts]
        self.at_once("journal", [_journaling(*each) for each in zip(attempts, principals, strict=True)])
        made: list[Secret] = []
        self.at_once("ready", [self._readying(*each, made) for each in zip(attempts, principals, strict=True)])
        delivered = self.at_once("deliver", [self._delivering(one) for one in attempts])
        return [
            Issued(attempt, gate, Credential(gate.principal.name, secret))
            for attempt, gate, secret in zip(attempts, delivered, made, strict=True)
        ]

    def close(self, logins: Sequence[Issued]) -> list[Gate]:
        """CLOSING for all; then disable each and observe all until nothing of any is left; then CLOSED for all."""
        self.at_once("closing", [self._closing(one) for one in logins])
        for one in logins:
            settled(self.gate.disable(one.principal, self.deadline))
        observed = self._quiescent([one.principal for one in logins])
        closed = self.at_once("closed", [self._closed(*each) for each in zip(logins, observed, strict=True)])
        assert {one.state for one in closed} == {GateState.CLOSED}
        return closed

    def seal(self, logins: Sequence[Issued], closed: Sequence[Gate]) -> list[Attempt]:
        """Seal all, as who executed nothing."""
        verdicts = [verdict_of(one.attempt.attempt_id, 0, [gate]) for one, gate in zip(logins, closed, strict=True)]
        return self.at_once("seal", [_sealing(*each) for each in zip(logins, verdicts, strict=True)])

    def _quiescent(self, principals: Sequence[Principal]) -> list[SessionObservation]:
        """Poll each; poll again who was not quiescent when all others were polled: what was under way has gone on."""
        seen: dict[str, SessionObservation] = {}

        def quiet() -> bool:
            for principal in (one for one in principals if one.name not in seen):
                observation = settled(self.gate.observe(principal))
                if observation.sessions:
                    settled(self.gate.end_sessions(principal))
                if observation.quiescent:
                    seen[principal.name] = observation
            return len(seen) == len(principals)

        wait_until(quiet, what="quiescence of every login")
        return [seen[one.name] for one in principals]

    def _readying(self, attempt: Attempt, principal: Principal, made: list[Secret]) -> Script[Gate]:
        def create(handle: object) -> Failed | Unknown | None:
            secret = self.gate.create(principal, PLAN, handle)
            if not isinstance(secret, Secret):
                return secret
            made.append(secret)
            return None

        return lambda tx: gates.ready(tx, attempt.attempt_id, principal.service_id, create)

    def _delivering(self, attempt: Attempt) -> Script[Gate]:
        return lambda tx: gates.deliver(tx, attempt.attempt_id, self.gate.service_id)

    def _closing(self, login: Issued) -> Script[Gate]:
        return lambda tx: gates.closing(tx, login.attempt.attempt_id, self.gate.service_id)

    def _closed(self, login: Issued, seen: SessionObservation) -> Script[Gate]:
        evidence = proof_document(
            ProofKind.GATES_CLOSED,
            login.attempt.attempt_id,
            sessions_observed(seen),
            names_gates=(login.principal.gate_name,),
            at=SystemClock().utc_now(),
        )
        attempt_id, quiescent = login.attempt.attempt_id, seen.quiescent
        return lambda tx: gates.closed(tx, attempt_id, self.gate.service_id, quiescent=quiescent, evidence=evidence)


def _admission(binding: AttemptBinding) -> Script[admission.AdmissionOutcome]:
    return lambda tx: admission.admit(tx, ENVIRONMENT, binding)


def _journaling(attempt: Attempt, principal: Principal) -> Script[Gate]:
    return lambda tx: gates.journal(tx, attempt.attempt_id, principal)


def _sealing(login: Issued, verdict: Verdict) -> Script[Attempt]:
    return lambda tx: sealing.seal(tx, login.attempt.attempt_id, verdict)
