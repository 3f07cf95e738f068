"""Waiting on a condition, with a deadline: the only place where a test may sleep."""

from __future__ import annotations

import time
from collections.abc import Callable, Sized
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], *, what: str, seconds: float = 30.0, every: float = 0.02) -> T:
    """Return the first true value of `condition`, which is called every `every` seconds.

    Raises:
        AssertionError: it was not true within `seconds`; the message says `what` was waited for.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}; last seen: {value!r}")
        time.sleep(every)
    return value


def wait_until_none(found: Callable[[], Sized], *, what: str, seconds: float = 30.0) -> None:
    """Return as soon as `found` gives nothing any more; what it gave last is in the message.

    Raises:
        AssertionError: there was still something after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while left := found():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}; still there: {left!r}")
        time.sleep(0.02)
