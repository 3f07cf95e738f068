"""How long the parts of an attempt may take. Apart from what uses it: a worker reads settings, and runs no attempt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTimes:
    """Seconds: how long a busy slot is waited for, the whole run, the closing afterwards; one ledger transaction."""

    admission: float = 60.0
    execution: float = 3600.0
    closing: float = 60.0
    ledger: float = 30.0

    @property
    def patience(self) -> float:
        """How long ``recover`` and the drain wait for a lock before they look for stopped controllers."""
        return self.ledger / 6

    @property
    def sleep(self) -> float:
        """How long a controller has said nothing inside a ledger transaction that is taken for stopped."""
        return self.ledger / 3
