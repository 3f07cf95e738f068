"""How often something is looked at while it is waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpone_provider.application.ports.time import Clock, Deadline

LATER: Final = 10
"""A change is seen later by at most one part in so many of what was waited for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One wait: looks often at first and, the longer it lasts, the more rarely.

    Its pauses grow with what was waited so far, from ``shortest`` to ``longest`` seconds, so that many who wait long
    don't keep the ledger busy.
    """

    clock: Clock
    began: float
    shortest: float
    longest: float

    @classmethod
    def begin(cls, clock: Clock, shortest: float, longest: float) -> Poll:
        """Return a wait that begins now."""
        return cls(clock=clock, began=clock.monotonic(), shortest=shortest, longest=longest)

    def pause(self, deadline: Deadline) -> None:
        """Let time pass until the next look, but not beyond the deadline."""
        waited = self.clock.monotonic() - self.began
        self.clock.wait(min(max(self.shortest, waited / LATER), self.longest, deadline.remaining()))
