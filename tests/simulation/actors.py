"""Actors on one thread: each runs until it waits for something, or until the policy takes its turn away.

An actor stands for a process: a controller, its child, a promoter, an operator. The code that a test itself runs is one
too; when it waits, the others move. Nothing here knows what a step is: the wire calls ``pause`` at each port call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

import greenlet  # type: ignore[import-untyped]

MAIN = "main"
_current: ContextVar[str] = ContextVar("_current", default=MAIN)


class Crash(BaseException):
    """The process of an actor ends here: nothing of it runs any more, whatever `finally` says."""


class Stuck(AssertionError):
    """Somebody waits for what nobody will ever do."""


class Policy(Protocol):
    """Chooses whose turn it is."""

    def choose(self, ready: Sequence[Actor]) -> Actor:
        """Return one of ``ready``, which is not empty."""

    def takes_turn_away(self) -> bool:
        """Tell whether the running actor has to stop at this step, so that somebody else may be chosen."""


class RunUntilItWaits:
    """The policy of unit tests: nobody is interrupted, and the first that can go on does."""

    def choose(self, ready: Sequence[Actor]) -> Actor:
        """Return the first."""
        return ready[0]

    def takes_turn_away(self) -> bool:
        """Never."""
        return False


@dataclass(slots=True, eq=False)
class Actor:
    """One process. ``error`` is what it ended with, None when it returned ``result``."""

    name: str
    thread: greenlet.greenlet
    waits_for: Callable[[], bool] | None = None
    wakes_at: float | None = None
    result: object = None
    error: BaseException | None = None
    ended: bool = False
    """Whether nothing of it runs any more."""


@dataclass(slots=True)
class Actors:
    """Every actor of one world, and its time in seconds. Time passes only when nobody can go on without it."""

    policy: Policy = field(default_factory=RunUntilItWaits)
    now: float = 1000.0
    known: list[Actor] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    _hub: greenlet.greenlet = field(default_factory=greenlet.getcurrent)
    _living: list[Actor] = field(default_factory=list)
    """Those of ``known`` that have not ended, in their order."""
    _running: Actor | None = None

    @property
    def current(self) -> str:
        """The name of whoever runs now."""
        return _current.get()

    @contextmanager
    def acting(self, name: str) -> Iterator[None]:
        """Let the caller go under another name within the block: another process, run to its end right here."""
        token = _current.set(name)
        try:
            yield
        finally:
            _current.reset(token)

    def spawn(self, name: str, body: Callable[[], object]) -> Actor:
        """Add an actor; it begins when somebody waits, or when it is chosen."""

        def run() -> None:
            _current.set(name)
            try:
                actor.result = body()
            except (Crash, greenlet.GreenletExit) as error:
                actor.error = error
            except Exception as error:  # noqa: BLE001 - whatever a process ends with is its own end, never the test's
                actor.error = error
            finally:
                self._ended(actor)

        actor = Actor(name, greenlet.greenlet(run, parent=self._hub))
        self.known.append(actor)
        self._living.append(actor)
        return actor

    def pause(self) -> None:
        """Stop at a step if the policy says so."""
        if self._running is not None and self.policy.takes_turn_away():
            self._hub.switch()

    def wait_for(self, condition: Callable[[], bool], until: float | None = None) -> None:
        """Return when ``condition`` holds, or when the time ``until`` has come.

        Raises:
            Stuck: neither can happen.
        """
        own = self._running
        if own is None:
            self._drive(condition, until)
            return
        if not condition():
            own.waits_for, own.wakes_at = condition, until
            self._hub.switch()
            own.waits_for = own.wakes_at = None

    def wait_until(self, at: float) -> None:
        """Return when that time has come."""
        self.wait_for(_never, at)

    def run_all(self) -> None:
        """Let everybody run to the end."""
        self._drive(lambda: not self._living, None)

    def end(self, actor: Actor) -> None:
        """Kill an actor: it runs nothing but the closing of what it holds open."""
        self.dead.add(actor.name)
        if not actor.ended:
            actor.thread.parent = greenlet.getcurrent()
            running, self._running = self._running, actor
            try:
                actor.thread.throw(greenlet.GreenletExit)
            finally:
                self._running = running
            if not actor.ended:
                # It had not begun: nothing of it ran, and nothing will.
                self._ended(actor)

    def _ended(self, actor: Actor) -> None:
        actor.ended = True
        self._living = [one for one in self._living if one is not actor]

    def _drive(self, condition: Callable[[], bool], until: float | None) -> None:
        while not condition():
            if until is not None and until <= self.now:
                return
            living, now = self._living, self.now
            ready = [
                actor
                for actor in living
                if actor.waits_for is None
                or (actor.wakes_at is not None and actor.wakes_at <= now)
                or actor.waits_for()
            ]
            if ready:
                self._running = self.policy.choose(ready)
                self._running.thread.switch()
                self._running = None
                continue
            times = [actor.wakes_at for actor in living if actor.wakes_at is not None]
            if until is not None:
                times.append(until)
            if not times:
                raise Stuck(f"nobody can go on: {', '.join(one.name for one in living)}")
            self.now = max(self.now, min(times))


def _never() -> bool:
    return False
