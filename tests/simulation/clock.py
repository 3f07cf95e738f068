"""A clock that moves when somebody waits, and entropy that a seed gives again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from dpone_provider.domain.secret import Secret
from tests.simulation.actors import Actors

SECRET = "CANARY"
"""What every secret of a simulated world begins with."""
BEGAN = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SimulatedClock:
    """``Clock`` over the actors' time."""

    actors: Actors

    def monotonic(self) -> float:
        """Return the simulated seconds."""
        return self.actors.now

    def utc_now(self) -> datetime:
        """Return the simulated wall clock."""
        return BEGAN + timedelta(seconds=self.actors.now)

    def wait(self, seconds: float) -> None:
        """Let time pass: the others move meanwhile."""
        if seconds > 0:
            self.actors.wait_until(self.actors.now + seconds)


@dataclass(frozen=True, slots=True)
class SeededEntropy:
    """``Entropy`` from a seed."""

    source: random.Random = field(default_factory=lambda: random.Random(20261129))

    def uuid(self) -> UUID:
        """Return the next UUID of the seed."""
        return UUID(int=self.source.getrandbits(128), version=4)

    def secret(self) -> Secret:
        """Return the next secret of the seed, which a canary search can find."""
        return Secret(f"{SECRET}{self.source.getrandbits(256):064x}")
