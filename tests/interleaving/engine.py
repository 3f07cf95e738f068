"""Stepping two transactions through one order, with blocking read from the server."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.interleaving.actors import PATIENCE, At, Done, Hook, Report, Side
from tests.interleaving.footprints import Blocking, Order
from tests.interleaving.works import Sent

LOOK_AFTER = 0.004
"""A statement that has not ended after so long may be blocked: then the server is asked."""
SIDES = ("A", "B")


class Work(Protocol):
    """One side's transaction; it calls the hook before every statement."""

    def __call__(self, hook: Hook) -> object:
        """Run to the end and return the outcome."""

    def pid(self) -> int:
        """Return the process of the server that serves the transaction; known once its first statement was reached."""
        ...

    def sent(self) -> Sequence[Sent]:
        """Return what it sent, stop by stop."""
        ...


class Monitor(Protocol):
    """Asks the server who keeps whom waiting."""

    def blocks(self, waiting: int, other: int) -> bool:
        """Tell whether the session ``waiting`` waits for a lock that the session ``other`` holds, now."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a run: what a side did. ``waits`` tells that it was blocked by the other one."""

    side: str
    text: str
    waits: bool = False


@dataclass(slots=True)
class Run:
    """What happened in one order."""

    lines: list[Line] = field(default_factory=list)
    outcomes: dict[str, object] = field(default_factory=dict)
    steps: list[bool] = field(default_factory=list)
    deadlocks: int = 0


class Stepper:
    """Steps one pair through one order."""

    def __init__(self, first: Work, second: Work, monitor: Monitor, blocking: Blocking) -> None:
        """Start both sides; ``monitor`` asks the server who blocks whom; ``blocking`` learns from it."""
        self._works = {"A": first, "B": second}
        self._sides = {"A": Side(first), "B": Side(second)}
        self._monitor = monitor
        self._blocking = blocking
        self._at: dict[str, Report] = {}
        self._counts = {"A": 0, "B": 0}
        self._blocked: set[str] = set()
        self.run = Run()

    def through(self, order: Order) -> Run:
        """Follow ``order`` as far as locks and the sides themselves allow; then let both end."""
        for name in SIDES:
            self._at[name] = self._sides[name].reports.get(timeout=PATIENCE)
        wishes = list(order)
        while any(self._is_open(name) for name in SIDES):
            wish = "A" if wishes and wishes.pop(0) else "B"
            free = [name for name in (wish, _other(wish)) if self._is_open(name) and name not in self._blocked]
            if free:
                self._step(free[0])
            else:
                self._wait_out_the_deadlock()
        for name in SIDES:
            self._sides[name].join()
            end = self._at[name]
            self.run.outcomes[name] = end.outcome if isinstance(end, Done) else end
        return self.run

    def _is_open(self, name: str) -> bool:
        return isinstance(self._at[name], At)

    def _step(self, name: str) -> None:
        """Let one side send one statement, and see whether that frees the other."""
        stands = self._at[name]
        assert isinstance(stands, At), (name, stands, self.run)
        self.run.lines.append(Line(name, stands.statement))
        self._sides[name].let_go()
        if not self._settle(name):
            (self._blocking.first if name == "A" else self._blocking.second).add((self._counts["A"], self._counts["B"]))
            self.run.lines[-1] = Line(name, stands.statement, waits=True)
            self._blocked.add(name)
        elif _other(name) in self._blocked and self._settle(_other(name)):
            self._freed(_other(name), "goes on")

    def _freed(self, name: str, how: str) -> None:
        self._blocked.discard(name)
        self.run.lines.append(Line(name, how))

    def _settle(self, name: str) -> bool:
        """Wait until the side stands again, or has ended; False when the server says that the other one blocks it."""
        for _ in range(round(PATIENCE / LOOK_AFTER)):
            if self._reported(name):
                return True
            if self._is_blocked(name):
                return False
        raise AssertionError(f"{name} neither ended nor is it blocked: {self.run}")

    def _wait_out_the_deadlock(self) -> None:
        """Both wait for each other: the server ends one of the two transactions, and the other one goes on."""
        self.run.deadlocks += len(self._blocked) == len(SIDES)
        for _ in range(round(PATIENCE / LOOK_AFTER)):
            for name in SIDES:
                if self._reported(name):
                    self._freed(name, "goes on after a deadlock")
                    return
        raise AssertionError(f"the server did not end a deadlock: {self.run}")

    def _reported(self, name: str) -> bool:
        try:
            self._at[name] = self._sides[name].reports.get(timeout=LOOK_AFTER)
        except queue.Empty:
            return False
        self._counts[name] += 1
        self.run.steps.append(name == "A")
        return True

    def _is_blocked(self, name: str) -> bool:
        return self._monitor.blocks(self._works[name].pid(), self._works[_other(name)].pid())


def _other(name: str) -> str:
    return "B" if name == "A" else "A"
