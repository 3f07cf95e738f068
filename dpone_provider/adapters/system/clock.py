"""The machine's clocks behind the `Clock` port."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """This process's monotonic clock (CLOCK_MONOTONIC: it stands still while the machine sleeps) and the wall clock."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic()

    def utc_now(self) -> datetime:
        """Return the wall clock as an aware UTC instant."""
        return datetime.now(UTC)

    def wait(self, seconds: float) -> None:
        """Sleep for ``seconds``; nothing below zero is an error."""
        time.sleep(max(0.0, seconds))
