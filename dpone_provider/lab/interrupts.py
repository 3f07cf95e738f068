"""Keep Ctrl-C out of the moment in which a process is started, but not yet ours to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

ASKING: Final = (signal.SIGINT, signal.SIGTERM)
Handler = Callable[[int, FrameType | None], object] | int


class HeldBack:
    """Signals that ask to end are held back from now until ``release``, which delivers the first that came.

    An exception out of a signal handler may be raised between the fork and the return of ``Popen``: the child then
    lives and nobody knows of it. Outside the main thread no handler runs, and this does nothing.
    """

    def __init__(self) -> None:
        """Hold them back."""
        self._arrived: list[int] = []
        self._handlers: dict[signal.Signals, Handler] = {}
        if threading.current_thread() is threading.main_thread():
            for number in ASKING:
                if (handler := signal.getsignal(number)) is not None:
                    self._handlers[number] = handler
                    signal.signal(number, lambda arrived, _: self._arrived.append(arrived))

    def release(self) -> None:
        """Let them through again; raises what the first that came would have raised. Doing it twice is fine."""
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if self._arrived:
            first, self._arrived = self._arrived[0], []
            signal.raise_signal(first)
