"""Something that is done at a later moment unless it is called off before: one thread for all of a process.

For bounds on calls into drivers, which wait for a server without a limit of their own. Such a bound is set around
every call and nearly always called off, so it must not cost a thread's start.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable


class Alarm:
    """One action at one moment, as ``set_alarm`` returned it."""

    def __init__(self, clock: _Clock, at: float, action: Callable[[], None]) -> None:
        """Be done by ``clock`` when its monotonic time is ``at``."""
        self.at = at
        self.action = action
        self._clock = clock

    def call_off(self) -> None:
        """Make sure that the action is not done from now on: one that is being done is waited for."""
        self._clock.call_off(self)


class _Clock:
    """The alarms that are set, and the thread, begun with the first of them."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked child there is no thread, and a lock may be held by nobody."""
        self._changed = threading.Condition()
        self._set: list[Alarm] = []
        self._ringing: Alarm | None = None
        self._sleeps_until = math.inf
        self._thread: threading.Thread | None = None

    def set(self, seconds: float, action: Callable[[], None]) -> Alarm:
        alarm = Alarm(self, time.monotonic() + seconds, action)
        with self._changed:
            self._set.append(alarm)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="dpone alarms", daemon=True)
                self._thread.start()
            elif alarm.at < self._sleeps_until:
                self._changed.notify_all()
        return alarm

    def call_off(self, alarm: Alarm) -> None:
        with self._changed:
            # The thread is not woken for this: it sees so when it wakes by itself.
            if alarm in self._set:
                self._set.remove(alarm)
            self._changed.wait_for(lambda: self._ringing is not alarm)

    def _run(self) -> None:
        while True:
            alarm = self._await_one()
            try:
                alarm.action()
            finally:
                self._rung()

    def _await_one(self) -> Alarm:
        with self._changed:
            while True:
                first = min(self._set, key=lambda one: one.at, default=None)
                left = math.inf if first is None else first.at - time.monotonic()
                if first is not None and left <= 0:
                    self._set.remove(first)
                    self._ringing = first
                    return first
                self._sleeps_until = time.monotonic() + left
                self._changed.wait(None if first is None else min(left, threading.TIMEOUT_MAX))

    def _rung(self) -> None:
        with self._changed:
            self._ringing = None
            self._changed.notify_all()


_CLOCK = _Clock()
os.register_at_fork(after_in_child=_CLOCK.forget)


def set_alarm(seconds: float, action: Callable[[], None]) -> Alarm:
    """Do ``action`` in ``seconds`` from now, in a thread of its own kind, unless the alarm is called off.

    An action is short, waits for nobody, calls no alarm off and raises nothing: the next one waits for it.
    """
    return _CLOCK.set(seconds, action)
