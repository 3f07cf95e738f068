from __future__ import annotations

from datetime import UTC, timedelta

from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.time import Deadline


def test_waiting_moves_the_monotonic_clock_by_at_least_as_much() -> None:
    clock = SystemClock()
    before = clock.monotonic()
    clock.wait(0.01)
    assert clock.monotonic() - before >= 0.01


def test_a_negative_wait_is_no_wait() -> None:
    SystemClock().wait(-1.0)


def test_the_wall_clock_is_aware_and_in_utc() -> None:
    now = SystemClock().utc_now()
    assert now.tzinfo is UTC
    assert now.utcoffset() == timedelta(0)


def test_a_deadline_of_zero_seconds_has_passed() -> None:
    assert Deadline.after(SystemClock(), 0.0).passed()
    assert not Deadline.after(SystemClock(), 60.0).passed()
