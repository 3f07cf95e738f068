"""The one place through which every port call goes: where it is told, and where it can go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple, Protocol, TypeVar

from tests.simulation.actors import Actors, Crash

T = TypeVar("T")
R = TypeVar("R")


class Call(NamedTuple):
    """One port call: ``ledger.seal``, ``gate.disable``. ``subject`` names what it is about."""

    port: str
    name: str
    subject: str = ""

    def __str__(self) -> str:
        """Return ``port.name``."""
        return f"{self.port}.{self.name}"


class Fault(Enum):
    """What can happen to a call."""

    CRASH = auto()
    """The caller's process ends before anything happened."""
    CRASH_AFTER = auto()
    """It ends after the effect, before it learns of it."""
    ERROR = auto()
    """Nothing happened, and the caller is told that there was no answer."""
    ANSWER_LOST = auto()
    """The effect happened, and the caller is told that there was no answer."""


@dataclass(frozen=True, slots=True)
class Delay:
    """The call takes this many seconds."""

    seconds: float


class Hook(Protocol):
    """Is asked before every call of every actor."""

    def __call__(self, actor: str, call: Call) -> Fault | Delay | None:
        """Return what happens to this call; it may also let others act first."""


@dataclass(slots=True)
class Wire:
    """Carries calls. ``log`` has every one of them, as (actor, call)."""

    actors: Actors
    hooks: list[Hook] = field(default_factory=list)
    after: list[Callable[[], None]] = field(default_factory=list)
    """Called after every step that is whole."""
    log: list[tuple[str, Call]] = field(default_factory=list)
    _steps: int = 0

    def in_one_step(self, body: Callable[[], T]) -> T:
        """Let nobody else move while ``body`` runs: what is called in it is part of one step."""
        self._steps += 1
        try:
            return body()
        finally:
            self._steps -= 1

    def send(self, call: Call, effect: Callable[[], T], broken: Callable[[Fault], R]) -> T | R:
        """Carry one call: its effect, or what ``broken`` makes of ERROR and ANSWER_LOST."""
        fault = self._before(call)
        match fault:
            case Fault.CRASH:
                self._crash()
            case Fault.ERROR:
                return broken(fault)
            case Delay(seconds) if not self._steps:
                self.actors.wait_until(self.actors.now + seconds)
            case _:
                pass
        result = effect()
        if not self._steps:
            for look in self.after:
                look()
        if fault is Fault.CRASH_AFTER:
            self._crash()
        return broken(fault) if fault is Fault.ANSWER_LOST else result

    def point(self, port: str, name: str, subject: str = "") -> None:
        """Pass a place that has no effect of its own.

        Raises:
            LostPoint: the fault there is an error.
        """

        def lost(fault: Fault) -> None:
            raise LostPoint(f"{port}.{name}: {fault.name}")

        self.send(Call(port, name, subject), lambda: None, lost)

    def calls(self, *actors: str) -> list[str]:
        """Return the names of the calls so far, of these actors only if any are given."""
        return [str(call) for actor, call in self.log if not actors or actor in actors]

    def _before(self, call: Call) -> Fault | Delay | None:
        actor = self.actors.current
        if actor in self.actors.dead:
            raise Crash(actor)
        if not self._steps:
            self.actors.pause()
        if actor in self.actors.dead:
            raise Crash(actor)
        self.log.append((actor, call))
        found: Fault | Delay | None = None
        for hook in tuple(self.hooks):
            if self._steps and isinstance(hook, (Nth, AtStep)) and hook.do is not None:
                continue  # nobody moves inside a step
            found = found or hook(actor, call)
        return found

    def _crash(self) -> None:
        actor = self.actors.current
        self.actors.dead.add(actor)
        raise Crash(actor)


class LostPoint(Exception):
    """A point that has no answer of its own was struck by an error."""


@dataclass(slots=True)
class Nth:
    """Does something at the ``nth`` call named ``call`` (all of them when None) of ``actor`` (anybody when None).

    ``do`` runs before the call, as whoever the test makes it; ``fault`` is what happens to the call.
    """

    call: str
    fault: Fault | Delay | None = None
    do: Callable[[], object] | None = None
    nth: int | None = 1
    actor: str | None = None
    met: int = 0

    def __call__(self, actor: str, call: Call) -> Fault | Delay | None:
        """Count, and strike."""
        if str(call) != self.call or self.actor not in (None, actor):
            return None
        self.met += 1
        if self.nth not in (None, self.met):
            return None
        if self.do is not None:
            self.do()
        return self.fault


@dataclass(slots=True)
class AtStep:
    """Does something before the ``number``-th call of ``actor``, whatever it is: for every place in turn."""

    number: int
    actor: str
    fault: Fault | Delay | None = None
    do: Callable[[], object] | None = None
    met: int = 0
    at: str | None = None

    def __call__(self, actor: str, call: Call) -> Fault | Delay | None:
        """Count, and strike once."""
        if actor != self.actor:
            return None
        self.met += 1
        if self.met != self.number:
            return None
        self.at = str(call)
        if self.do is not None:
            self.do()
        return self.fault
