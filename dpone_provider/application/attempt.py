"""Running one attempt: admit, issue, execute, close, observe, seal, in the order of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from dpone_provider.application.front_door import AttemptRecord, FrontDoor, OutcomeObserver
from dpone_provider.application.ledger import admission
from dpone_provider.application.ledger import gates as gate_scripts
from dpone_provider.application.ledger.admission import Admitted, AlreadyAdmitted, EarlierTryLives, Unadmitted
from dpone_provider.application.ledger.calls import call, may_have_changed, require, settled
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.polling import Poll
from dpone_provider.application.ports.gate import GrantPlan, LoginGate
from dpone_provider.application.ports.ledger import Conflict, Ledger, LedgerTransaction, Lock
from dpone_provider.application.ports.process import TaskInstances
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.application.times import AttemptTimes
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import AttemptBinding, AttemptId, Principal, ServiceId
from dpone_provider.domain.outcomes import (
    Busy,
    DponeError,
    Failed,
    Failure,
    Refused,
    Unknown,
    fail,
    type_of_failure,
    unknown,
)
from dpone_provider.domain.secret import Secret

POLL_SECONDS = 0.25, 2.0
"""The shortest and the longest pause between two looks at what stands in the way."""
FOLLOW_SECONDS = 1.0, 5.0
"""The same while a winner is followed."""
ASK_SECONDS = 2.0
"""How often Airflow is asked, while waiting, whether a holder is dead."""
NAME_ONCE = "principal_name_once_per_service"
"""The law that a name which was ever used on a service is not journaled again."""
_Seen = Admitted | AlreadyAdmitted | EarlierTryLives | Unadmitted
Metrics = Mapping[str, int | str]


@dataclass(frozen=True, slots=True)
class Executed:
    """What the child came to, for the message only: the outcome is what is observed afterwards."""

    problem: Failure | None
    metrics: Metrics


class Workload(Protocol):
    """The part of an attempt that differs from cell to cell."""

    def require_unchanged(self, deadline: Deadline) -> None:
        """Before admission: read the target's incarnation, enrolment and gate again (I13).

        Raises:
            DponeError: Refused when one is not as pinned, Unknown when it cannot be read.
        """

    def grants(self, attempt: Attempt) -> Mapping[ServiceId, GrantPlan]:
        """Return what the login on each written service may do."""

    def begin(self, attempt: Attempt, deadline: Deadline) -> Failure | None:
        """Before any login exists: bind the target, journal the intent, create what is staged."""

    def execute(self, attempt: Attempt, logins: Mapping[ServiceId, Credential], deadline: Deadline) -> Executed:
        """Run the child with the issued logins and nothing else, and return when its whole group is gone."""

    def observer(self, attempt: Attempt, executed: Executed | None) -> OutcomeObserver:
        """Return who looks after the gates are CLOSED; ``executed`` is None when another process ran the attempt."""


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
        reached: list[Attempt] = []
        try:
            admitted = self._admit(environment, binding, workload, reached)
            if isinstance(admitted, AlreadyAdmitted):
                return self._follow(admitted.attempt)
            reached.append(admitted.attempt)
            return self._run_admitted(admitted.attempt, workload)
        except DponeError as error:
            if not reached:
                return error.failure
            return may_have_changed(error.failure, f"by then it had come to {', '.join(map(str, reached))}")

    def _admit(
        self, environment: str, binding: AttemptBinding, workload: Workload, reached: list[Attempt]
    ) -> Admitted | AlreadyAdmitted:
        """Take the front door for an earlier try, before any refusal; compare the target; then admit.

        Whose front door was taken is added to ``reached``.
        """
        deadline = Deadline.after(self.clock, self.times.admission)
        script: Callable[[LedgerTransaction, str, AttemptBinding], _Seen | Failure] = admission.look
        ask_at = self.clock.monotonic()
        poll = Poll.begin(self.clock, *POLL_SECONDS)
        while True:
            outcome = call(self.ledger, "admit", partial(_apply, script, environment, binding), deadline)
            match outcome:
                case Admitted() | AlreadyAdmitted():
                    return outcome
                case EarlierTryLives(earlier):
                    held = self._end_earlier(earlier)
                    reached.append(earlier)
                    if held is not None:
                        _wait_or_give_up(held, poll, deadline)
                case Unadmitted():
                    workload.require_unchanged(deadline)
                    script = admission.admit
                case Busy():
                    ask = ask_at <= self.clock.monotonic()
                    if ask and self._end_dead_holder(binding, reached):
                        continue
                    ask_at = self.clock.monotonic() + ASK_SECONDS if ask else ask_at
                    _wait_or_give_up(outcome, poll, deadline)
                case Refused() | Failed() | Unknown():
                    raise DponeError(outcome)

    def _end_earlier(self, earlier: Attempt) -> Busy | None:
        """Take the front door for an earlier try; return why it has to be waited for, if it could not be ended.

        Raises:
            DponeError: Refused; it is COMMIT_UNKNOWN, or this machine cannot end it.
        """
        if earlier.state is AttemptState.COMMIT_UNKNOWN:
            raise DponeError(_unknown_earlier(earlier))
        try:
            ended = self._end(earlier)
        except DponeError as error:
            if isinstance(error.failure, Refused):
                raise
            return admission.earlier_try_lives(earlier, error.failure.problem)
        if ended.state is AttemptState.COMMIT_UNKNOWN:
            raise DponeError(_unknown_earlier(ended))
        return None

    def _end_dead_holder(self, binding: AttemptBinding, reached: list[Attempt]) -> bool:
        """End one attempt that stands in the way and whose task instance Airflow says is dead; tell whether one was.

        One that cannot be ended is waited for like one that lives. Whose front door was taken is added to ``reached``.
        """
        deadline = Deadline.after(self.clock, self.times.closing)
        holders = call(self.ledger, "read", lambda tx: admission.holders(tx, binding), deadline)
        if isinstance(holders, type_of_failure):
            return False
        for holder in holders:
            if holder.state is AttemptState.RUNNING and self.task_instances.alive(holder.binding.airflow) is False:
                reached.append(holder)
                with suppress(DponeError):
                    self._end(holder)
                    return True
        return False

    def _end(self, attempt: Attempt) -> Attempt:
        deadline = Deadline.after(self.clock, self.times.closing)
        return self.front_door.take(attempt.attempt_id, self.observer_of(attempt), deadline)

    def _follow(self, winner: Attempt) -> AttemptReport:
        """Wait for the winner's row to end, until this one's own deadline; then take the front door for it."""
        deadline = Deadline.after(self.clock, self.times.execution)
        poll = Poll.begin(self.clock, *FOLLOW_SECONDS)
        attempt = winner
        while attempt.state is AttemptState.RUNNING:
            if deadline.passed():
                attempt = self._end(attempt)
                break
            poll.pause(deadline)
            # A ledger that does not answer for a while is no reason to end the winner, or to report its failure.
            with suppress(DponeError):
                attempt = self.front_door.record(attempt.attempt_id, deadline).attempt
        return AttemptReport(attempt=attempt, metrics={}, problem=_problem_of(attempt, None, None), followed=True)

    def _run_admitted(self, attempt: Attempt, workload: Workload) -> AttemptReport:
        execution = Deadline.after(self.clock, self.times.execution)
        executed: Executed | None = None
        try:
            executed = self._execute(attempt, workload, execution)
        finally:
            if executed is None:
                # An interrupt, or a fault of the program: it passes on, whatever closing says.
                with suppress(DponeError):
                    self._leave(attempt, workload.observer(attempt, None))
        observer = _Keeping(workload.observer(attempt, executed))
        ended = self._leave(attempt, observer)
        because = None if observer.verdict is None else observer.verdict.because
        problem = _problem_of(ended, executed.problem, because)
        return AttemptReport(attempt=ended, metrics=executed.metrics, problem=problem)

    def _leave(self, attempt: Attempt, observer: OutcomeObserver) -> Attempt:
        deadline = Deadline.after(self.clock, self.times.closing)
        return self.front_door.take(attempt.attempt_id, observer, deadline)

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
        hand = self.front_door.hand_on(service_id)
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
        """Journal a login that was never used before. Which were is read only where the ledger says that this one was:
        they are all that there ever were on the service."""
        used: frozenset[str] = frozenset()
        while True:
            principal = settled(hand.propose(attempt_id, used))
            outcome = self._journaled(attempt_id, principal, deadline)
            if isinstance(outcome, Gate):
                return outcome.principal
            if deadline.passed() or require(
                self.ledger, "gate", lambda tx: tx.gate(attempt_id, service_id, Lock.NONE), deadline
            ):
                raise DponeError(_not_issued(principal, f"a conflict with {outcome.constraint}"))
            used = require(self.ledger, "read", lambda tx: tx.principals_used(service_id), deadline)

    def _journaled(self, attempt_id: AttemptId, principal: Principal, deadline: Deadline) -> Gate | Conflict:
        try:
            outcome = self.ledger.run("journal", partial(_journal, attempt_id, principal), deadline)
        except DponeError as error:
            if error.failure.problem.reason == NAME_ONCE:
                # Of a login from before the ledger went back, of which it keeps the name only.
                return Conflict(NAME_ONCE)
            raise
        return outcome if isinstance(outcome, Conflict) else settled(outcome)


@dataclass(slots=True)
class _Keeping:
    """Observes, and keeps what was seen for the message."""

    observer: OutcomeObserver
    verdict: Verdict | None = None

    def observe(self, record: AttemptRecord, deadline: Deadline) -> Verdict:
        self.verdict = self.observer.observe(record, deadline)
        return self.verdict


def _wait_or_give_up(held: Busy, poll: Poll, deadline: Deadline) -> None:
    if deadline.passed():
        raise DponeError(held)
    poll.pause(deadline)


def _apply(
    script: Callable[[LedgerTransaction, str, AttemptBinding], _Seen | Failure],
    environment: str,
    binding: AttemptBinding,
    tx: LedgerTransaction,
) -> _Seen | Failure:
    return script(tx, environment, binding)


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


def _unknown_earlier(earlier: Attempt) -> Refused:
    task = earlier.binding.airflow
    return admission.unknown_holder(f"task {task.task_id} of run {task.run_id}", earlier)


def _problem_of(attempt: Attempt, executed: Failure | None, because: Failure | None) -> Failure | None:
    """Return what an attempt's end is to its caller; ``executed`` and ``because`` tell why, as far as is known."""
    why = executed or because
    match attempt.state:
        case AttemptState.SUCCEEDED:
            return None
        case AttemptState.COMMIT_UNKNOWN:
            return _own_unknown(attempt, because or executed)
        case AttemptState.FAILED | AttemptState.RUNNING:
            match why:
                case None:
                    return _failed(attempt)
                case Refused() | Failed():
                    return why
                case Busy() | Unknown():
                    # The target shows that nothing of it happened: another try may follow at once.
                    return Failed(why.problem)


def _failed(attempt: Attempt) -> Failed:
    return fail(
        "attempt_failed",
        str(attempt),
        found="the target shows that nothing of it was published",
        allowed="a published outcome",
        next_command=f"dpone attempt show {attempt.attempt_id}",
    )


def _own_unknown(attempt: Attempt, why: Failure | None) -> Unknown:
    return unknown(
        "commit_unknown",
        str(attempt),
        found=f"no proof of either outcome ({why.problem})" if why else "no proof of either outcome",
        allowed="an outcome that the target, or dbt's own events, prove",
        next_command=f"dpone attempt reconcile {attempt.attempt_id} (it keeps its slots until then)",
    )
