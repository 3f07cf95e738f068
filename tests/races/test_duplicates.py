"""Deliveries of the same attempt, many at once: one executes, and each other is told that it is not the one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.attempt import AttemptReport, AttemptRunner
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AttemptBinding
from tests.races.estate import ENVIRONMENT, WORKLOADS, Entering, Estate, Reach, sealed
from tests.races.processes import CONTEXT, SECONDS, in_processes, shared

DELIVERIES = int(os.environ.get("DPONE_TEST_DELIVERIES", "2000"))
PROCESSES, THREADS, LATE = 2, 46, 4
EACH = PROCESSES * (THREADS + LATE)
"""Deliveries of one attempt: so many race, from threads of several processes, and some come when it is over."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one delivery was told: of which attempt, that it followed, how the attempt ended; what it had done."""

    attempt_id: str
    followed: bool
    state: AttemptState
    executed: int
    asked: int
    late: bool


def test_of_many_deliveries_one_executes(here: Estate) -> None:
    attempts = max(1, DELIVERIES // EACH)
    bindings = [here.binding(number % WORKLOADS) for number in range(attempts)]
    told = race(here.reach, bindings)
    ids = [binding.attempt_id for binding in bindings]
    assert len(told) == attempts * EACH
    assert {one.state for one in told} == {AttemptState.SUCCEEDED}

    winners = [one for one in told if not one.followed]
    assert Counter(one.attempt_id for one in winners) == Counter(ids)
    assert all(one.executed == 1 and not one.late for one in winners)
    assert all(one.executed == 0 for one in told if one.followed)
    executors = here.rows(
        "SELECT attempt_id, count(*) FROM public.executors WHERE attempt_id = ANY (%s) GROUP BY 1", ids
    )
    assert dict(executors) == dict.fromkeys(ids, 1)
    assert sealed(here, ids) == [("SUCCEEDED", "CLOSED", attempts)]
    # It was a race: others too were told that nobody had been admitted, and came to admission with that.
    assert sum(one.asked for one in told if one.followed) > attempts
    assert not any(one.asked for one in told if one.late)


class Turns:
    """One attempt after the other: everybody begins each at one moment, and who follows hears of its end at once."""

    def __init__(self) -> None:
        """Wait for every thread of every process."""
        self._begin = CONTEXT.Barrier(PROCESSES * THREADS, timeout=SECONDS)
        self._ended = CONTEXT.Value("i", 0)
        self._end = CONTEXT.Condition()

    def begin(self) -> None:
        """Wait for the others."""
        self._begin.wait()

    def ended(self, turn: int) -> None:
        """Say that the attempt of this turn has ended."""
        with self._end:
            self._ended.value = turn + 1
            self._end.notify_all()

    def wait(self, turn: int, seconds: float) -> None:
        """Wait for that."""
        with self._end:
            self._end.wait_for(lambda: self._ended.value > turn, seconds)


class TurnsClock(SystemClock):
    """The clock of who takes part in one turn: it polls again when the turn is over."""

    def __init__(self, turns: Turns, turn: int) -> None:
        """Be of one turn."""
        self._turns, self._turn = turns, turn

    def wait(self, seconds: float) -> None:
        """Wait for the turn's end, no longer than for ``seconds``."""
        self._turns.wait(self._turn, seconds)


def race(reach: Reach, bindings: Sequence[AttemptBinding]) -> list[Told]:
    """Deliver each attempt from every thread of every process at one moment, one attempt after the other."""
    parts = [(reach, bindings)] * PROCESSES
    return [one for part in in_processes(_deliver_all, Turns(), parts) for one in part]


def _deliver_all(reach: Reach, bindings: Sequence[AttemptBinding]) -> list[Told]:
    turns = shared()

    def take_part(_: int) -> list[Told]:
        ledger, told = reach.ledger(), []
        for turn, binding in enumerate(bindings):
            runner = reach.runner(ledger, TurnsClock(turns, turn))
            turns.begin()
            told.append(_deliver(runner, Entering(reach), binding))
            if not told[-1].followed:
                turns.ended(turn)
        return told

    with ThreadPoolExecutor(THREADS) as pool:
        told = [one for each in pool.map(take_part, range(THREADS)) for one in each]
    late = reach.runner(reach.ledger(), SystemClock())
    for binding in bindings:
        told += [replace(_deliver(late, Entering(reach), binding), late=True) for _ in range(LATE)]
    return told


def _deliver(runner: AttemptRunner, workload: Entering, binding: AttemptBinding) -> Told:
    report = runner.run(ENVIRONMENT, binding, workload)
    assert isinstance(report, AttemptReport), report
    done = workload.executed, workload.asked
    return Told(binding.attempt_id, report.followed, report.attempt.state, *done, late=False)
