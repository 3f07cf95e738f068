"""Running one attempt: admit, issue, execute, close, observe, seal, in the order of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from dpone_provider.application.front_door import FrontDoor, OutcomeObserver
from dpone_provider.application.ledger import admission
from dpone_provider.application.ledger import gates as gate_scripts
from dpone_provider.application.ledger.admission import Admitted, AlreadyAdmitted, EarlierTryLives
from dpone_provider.application.ledger.calls import call, require, settled
from dpone_provider.application.ports.gate import GrantPlan, LoginGate
from dpone_provider.application.ports.ledger import Conflict, Ledger, LedgerTransaction, Lock
from dpone_provider.application.ports.process import TaskInstances
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import AttemptBinding, AttemptId, Principal, ServiceId
from dpone_provider.domain.outcomes import Busy, DponeError, Failed, Failure, Refused, Unknown, fail, unknown
from dpone_provider.domain.secret import Secret

POLL_SECONDS = 0.25
Metrics = Mapping[str, int | str]


@dataclass(frozen=True, slots=True)
class Executed:
    """What the child came to, for the message only: the outcome is what is observed afterwards."""

    problem: Failure | None
    metrics: Metrics


class Workload(Protocol):
    """The part of an attempt that differs from cell to cell."""

    def grants(self, attempt: Attempt) -> Mapping[ServiceId, GrantPlan]:
        """Return what the login on each written service may do."""

    def begin(self, attempt: Attempt, deadline: Deadline) -> Failure | None:
        """Before any login exists: bind the target, journal the intent, create what is staged."""

    def execute(self, attempt: Attempt, logins: Mapping[ServiceId, Credential], deadline: Deadline) -> Executed:
        """Run the child with the issued logins and nothing else, and return when its whole group is gone."""

    def observer(self, attempt: Attempt, executed: Executed | None) -> OutcomeObserver:
        """Return who looks after the gates are CLOSED; ``executed`` is None when another process ran the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTimes:
    """Seconds: how long a busy slot is waited for, the whole run, and the closing afterwards."""

    admission: float = 60.0
    execution: float = 3600.0
    closing: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """How an attempt ended. ``problem`` says why it did not succeed; ``followed`` that another process ran it."""

    attempt: Attempt
    metrics: Metrics
    problem: Failure | None
    followed: bool = False


ObserverOf = Callable[[Attempt], OutcomeObserver]
"""Makes the observer of any attempt of the environment from its own deployment: what taking a front door needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRunner:
    """Runs attempts of one environment."""

    ledger: Ledger
    gates: Mapping[ServiceId, LoginGate]
    front_door: FrontDoor
    observer_of: ObserverOf
    task_instances: TaskInstances
    clock: Clock
    times: AttemptTimes

    def run(self, environment: str, binding: AttemptBinding, workload: Workload) -> AttemptReport | Failure:
        """Run one attempt from admission to seal; a redelivered one follows the winner's row."""
        try:
            admitted = self._admit(environment, binding)
            if isinstance(admitted, AlreadyAdmitted):
                return self._follow(admitted.attempt)
            return self._run_admitted(admitted.attempt, workload)
        except DponeError as error:
            return error.failure

    def _admit(self, environment: str, binding: AttemptBinding) -> Admitted | AlreadyAdmitted:
        deadline = Deadline.after(self.clock, self.times.admission)
        while True:
            outcome = call(self.ledger, "admit", lambda tx: admission.admit(tx, environment, binding), deadline)
            match outcome:
                case Admitted() | AlreadyAdmitted():
                    return outcome
                case EarlierTryLives(earlier):
                    self._end(earlier)
                case Busy():
                    self._wait_or_give_up(outcome, binding, deadline)
                case Refused() | Failed() | Unknown():
                    raise DponeError(outcome)

    def _end(self, attempt: Attempt) -> Attempt:
        """Take the front door for another attempt; a COMMIT_UNKNOWN one stays what it is and is reported."""
        if attempt.state is AttemptState.COMMIT_UNKNOWN:
            raise DponeError(_unknown_earlier(attempt))
        deadline = Deadline.after(self.clock, self.times.closing)
        ended = self.front_door.take(attempt.attempt_id, self.observer_of(attempt), deadline)
        if ended.state is AttemptState.COMMIT_UNKNOWN:
            raise DponeError(_unknown_earlier(ended))
        return ended

    def _wait_or_give_up(self, outcome: Busy, binding: AttemptBinding, deadline: Deadline) -> None:
        if deadline.passed():
            raise DponeError(outcome)
        holder = self._dead_holder(binding)
        if holder is not None:
            self._end(holder)
            return
        self.clock.wait(min(POLL_SECONDS, deadline.remaining()))

    def _dead_holder(self, binding: AttemptBinding) -> Attempt | None:
        """Return a live attempt that stands in the way and whose task instance Airflow says is dead."""
        deadline = Deadline.after(self.clock, self.times.closing)
        live = require(self.ledger, "read", lambda tx: tx.live_attempts(binding.occurrence_id), deadline)
        for attempt in live:
            if attempt.state is AttemptState.RUNNING and self.task_instances.alive(attempt.binding.airflow) is False:
                return attempt
        return None

    def _follow(self, winner: Attempt) -> AttemptReport:
        """Wait for the winner's row to end, until this one's own deadline; then take the front door for it."""
        deadline = Deadline.after(self.clock, self.times.execution)
        attempt = winner
        while attempt.state is AttemptState.RUNNING:
            if deadline.passed():
                closing = Deadline.after(self.clock, self.times.closing)
                attempt = self.front_door.take(attempt.attempt_id, self.observer_of(attempt), closing)
                break
            self.clock.wait(POLL_SECONDS)
            attempt = self.front_door.record(attempt.attempt_id, deadline).attempt
        return AttemptReport(attempt=attempt, metrics={}, problem=_problem_of(attempt, None), followed=True)

    def _run_admitted(self, attempt: Attempt, workload: Workload) -> AttemptReport:
        execution = Deadline.after(self.clock, self.times.execution)
        executed: Executed | None = None
        try:
            executed = self._execute(attempt, workload, execution)
        finally:
            closing = Deadline.after(self.clock, self.times.closing)
            ended = self.front_door.take(attempt.attempt_id, workload.observer(attempt, executed), closing)
        return AttemptReport(
            attempt=ended, metrics=executed.metrics, problem=_problem_of(ended, executed.problem), followed=False
        )

    def _execute(self, attempt: Attempt, workload: Workload, deadline: Deadline) -> Executed:
        """Begin, issue, execute; a failure on the way is what was executed, so that closing always follows."""
        try:
            begun = workload.begin(attempt, deadline)
            if begun is not None:
                return Executed(begun, {})
            grants = workload.grants(attempt)
            logins = {one: self._issue(attempt, one, grants[one], deadline) for one in attempt.services}
            return workload.execute(attempt, logins, deadline)
        except DponeError as error:
            return Executed(error.failure, {})

    def _issue(self, attempt: Attempt, service_id: ServiceId, plan: GrantPlan, deadline: Deadline) -> Credential:
        """Journal, create, READY, read back, DELIVERED; return the login."""
        hand = self.gates[service_id]
        principal = self._journal(attempt.attempt_id, service_id, hand, deadline)
        made: list[Secret] = []

        def create(handle: object) -> Failed | Unknown | None:
            secret = hand.create(principal, plan, handle)
            if isinstance(secret, Secret):
                made.append(secret)
                return None
            return secret

        require(
            self.ledger,
            "ready",
            lambda tx: gate_scripts.ready(tx, attempt.attempt_id, service_id, create),
            deadline,
        )
        settled(hand.enable(principal))
        seen = settled(hand.read_back(principal))
        if not seen.exists or not seen.can_login:
            raise DponeError(_not_issued(principal, f"exists {seen.exists}, can log in {seen.can_login}"))
        require(self.ledger, "deliver", lambda tx: gate_scripts.deliver(tx, attempt.attempt_id, service_id), deadline)
        return Credential(principal.name, made[-1])

    def _journal(self, attempt_id: AttemptId, service_id: ServiceId, hand: LoginGate, deadline: Deadline) -> Principal:
        """Journal a login that was never used before; a name that another attempt took meanwhile is chosen anew."""
        while True:
            used = require(self.ledger, "read", lambda tx: tx.principals_used(service_id), deadline)
            principal = settled(hand.propose(attempt_id, used))
            outcome = self.ledger.run("journal", partial(_journal, attempt_id, principal), deadline)
            if not isinstance(outcome, Conflict):
                return settled(outcome).principal
            if deadline.passed() or require(
                self.ledger, "gate", lambda tx: tx.gate(attempt_id, service_id, Lock.NONE), deadline
            ):
                raise DponeError(_not_issued(principal, f"a conflict with {outcome.constraint}"))


def _journal(attempt_id: AttemptId, principal: Principal, tx: LedgerTransaction) -> Gate | Refused:
    return gate_scripts.journal(tx, attempt_id, principal)


def _not_issued(principal: Principal, found: str) -> Failed:
    return fail(
        "login_not_issued",
        f"login {principal.name} on service {principal.service_id}",
        found=found,
        allowed="a login that exists, can log in and was journaled by this attempt alone",
        next_command="nothing: the attempt is closed and fails; the next try issues anew",
    )


def _unknown_earlier(attempt: Attempt) -> Unknown:
    return unknown(
        "earlier_attempt_unknown",
        str(attempt),
        found="COMMIT_UNKNOWN: it keeps its slots until somebody settles it",
        allowed="an earlier attempt with a known outcome",
        next_command=f"dpone attempt reconcile {attempt.attempt_id}",
    )


def _problem_of(attempt: Attempt, executed: Failure | None) -> Failure | None:
    match attempt.state:
        case AttemptState.SUCCEEDED:
            return None
        case AttemptState.COMMIT_UNKNOWN:
            return _unknown_earlier(attempt)
        case AttemptState.FAILED | AttemptState.RUNNING:
            return executed or fail(
                "attempt_failed",
                str(attempt),
                found="the target shows that nothing of it was published",
                allowed="a published outcome",
                next_command=f"dpone attempt show {attempt.attempt_id}",
            )
