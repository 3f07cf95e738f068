"""Ends a connection whose server does not answer in time.

psycopg waits for a server without a limit of its own. Server-side time-outs are set on every session and normally end
a statement first; this is for a server that is stopped, or a network that swallows packets.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self

from dpone_provider.alarms import set_alarm

GRACE_SECONDS = 0.5
"""Left to the server's own time-outs, which give a better answer."""


class Watchdog:
    """While open, shuts down the socket behind a file descriptor after some seconds."""

    def __init__(self, file_descriptor: int, seconds: float) -> None:
        """Watch a socket's descriptor; it is duplicated, so that a number which is reused is never hit."""
        self._socket = socket.socket(fileno=os.dup(file_descriptor))
        self._seconds = seconds + GRACE_SECONDS

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._alarm = set_alarm(self._seconds, self._bite)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._alarm.call_off()
        self._socket.close()

    def _bite(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
