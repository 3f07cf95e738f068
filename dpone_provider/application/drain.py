"""Draining an occurrence: it takes no new work, and what runs ends or is ended through the front door."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpone_provider.application.front_door import FrontDoor, OutcomeObserver
from dpone_provider.application.ledger.calls import require
from dpone_provider.application.polling import Poll
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.process import TaskInstances
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.identity import OccurrenceId
from dpone_provider.domain.outcomes import Busy, DponeError, Refused, Unknown, busy, refuse

POLL_SECONDS = 0.25, 2.0
"""The shortest and the longest pause between two looks."""
ASK_SECONDS = 2.0
"""How often Airflow is asked whether what is waited for is dead."""
ObserverOf = Callable[[Attempt], OutcomeObserver]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Waits until nothing of an occurrence lives. ``closing`` seconds are given to each front door that it takes."""

    ledger: Ledger
    front_door: FrontDoor
    observer_of: ObserverOf
    task_instances: TaskInstances
    clock: Clock
    closing: float = 60.0

    def wait(self, occurrence_id: OccurrenceId, deadline: Deadline, told: Callable[[str], None]) -> None:
        """Return when no attempt of the occurrence is RUNNING or COMMIT_UNKNOWN; every change of their number is told.

        Raises:
            DponeError: Busy with the list at the deadline, Refused for an attempt in COMMIT_UNKNOWN.
        """
        reasons: dict[str, str] = {}
        waiting = 0
        poll = Poll.begin(self.clock, *POLL_SECONDS)
        ask_at = self.clock.monotonic()
        while live := self.live(occurrence_id):
            self._refuse_unknown(live)
            if ask_at <= self.clock.monotonic() or deadline.passed():
                for attempt in live:
                    reasons[attempt.attempt_id] = self._end_if_dead(attempt, deadline)
                ask_at = self.clock.monotonic() + ASK_SECONDS
                live = self.live(occurrence_id)
            if live and deadline.passed():
                self._refuse_unknown(live)
                raise DponeError(_timed_out(occurrence_id, live, reasons))
            if live:
                if len(live) != waiting:
                    told(f"waiting for {len(live)} attempts of occurrence {occurrence_id}")
                waiting = len(live)
                poll.pause(deadline)

    def live(self, occurrence_id: OccurrenceId) -> tuple[Attempt, ...]:
        """Return the live attempts of an occurrence."""
        deadline = Deadline.after(self.clock, self.closing)
        return require(self.ledger, "read", lambda tx: tx.live_attempts(occurrence_id), deadline)

    def _end_if_dead(self, attempt: Attempt, until: Deadline) -> str:
        alive = self.task_instances.alive(attempt.binding.airflow)
        if isinstance(alive, Unknown):
            return f"Airflow could not be asked ({alive.problem.found})"
        if alive:
            return "Airflow says that its task is alive"
        try:
            deadline = Deadline.after(self.clock, min(self.closing, until.remaining()))
            self.front_door.take(attempt.attempt_id, self.observer_of(attempt), deadline)
        except DponeError as error:
            return str(error.failure.problem)
        return "ended"

    def _refuse_unknown(self, live: tuple[Attempt, ...]) -> None:
        for attempt in live:
            if attempt.state is AttemptState.COMMIT_UNKNOWN:
                raise DponeError(unresolved_attempt(attempt))


def unresolved_attempt(attempt: Attempt) -> Refused:
    """Return the refusal that an attempt in COMMIT_UNKNOWN is for whoever wants its slots."""
    return refuse(
        "attempt_commit_unknown",
        str(attempt),
        found="COMMIT_UNKNOWN: its slots stay its own until somebody settles it",
        allowed="attempts with a known outcome",
        next_command=f"dpone attempt reconcile {attempt.attempt_id}",
    )


def _timed_out(occurrence_id: OccurrenceId, live: tuple[Attempt, ...], reasons: dict[str, str]) -> Busy:
    listed = "; ".join(f"{attempt}: {reasons.get(attempt.attempt_id, 'alive')}" for attempt in live)
    return busy(
        "drain_timed_out",
        f"occurrence {occurrence_id}",
        holder=listed,
        allowed="no RUNNING or COMMIT_UNKNOWN attempt before --drain-timeout",
        next_command="run the same cache-sync again (it continues), with a longer --drain-timeout, or `dpone recover`",
    )
