"""Clock and entropy: the two inputs that no pure code may take by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from dpone_provider.domain.secret import Secret


class Clock(Protocol):
    """One process's clocks. Total. No decision compares two machines' clocks."""

    def monotonic(self) -> float:
        """Return seconds on this process's monotonic clock: the only input of deadlines."""

    def utc_now(self) -> datetime:
        """Return the wall clock in UTC, for documents that a person reads; nothing is decided by it."""

    def wait(self, seconds: float) -> None:
        """Let ``seconds`` pass before a poll is repeated."""


class Entropy(Protocol):
    """New ids and secrets. Total; a simulation gives a seeded one."""

    def uuid(self) -> UUID:
        """Return a UUID that was never returned before."""

    def secret(self) -> Secret:
        """Return a new password of at least 256 bits, of letters and digits only."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """One deadline that covers a whole operation, waiting for locks included."""

    clock: Clock
    at: float

    @classmethod
    def after(cls, clock: Clock, seconds: float) -> Deadline:
        """Return the deadline ``seconds`` from now."""
        return cls(clock, clock.monotonic() + seconds)

    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, self.at - self.clock.monotonic())

    def passed(self) -> bool:
        """Tell whether nothing is left."""
        return self.remaining() == 0.0
