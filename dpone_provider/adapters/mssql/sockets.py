"""The sockets that a driver keeps to itself: found when it opens them, shut down when a server does not answer.

A query time-out of the driver is a message to the server, and waits for the server's acknowledgement. This is for one
that is stopped, or a network that swallows packets.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from dpone_provider.adapters.mssql.errors import AnswerLost
from dpone_provider.alarms import set_alarm

GRACE_SECONDS: Final = 2.0
"""Left to the driver's own time-out, in whole seconds, which gives a better answer."""
_OPENING: Final = threading.Lock()
_DESCRIPTORS: Final = Path("/proc/self/fd")


def require_listener(host: str, port: int, seconds: float) -> None:
    """Require that somebody listens there: the driver goes on trying until its time is up, however plain the refusal.

    Raises:
        AnswerLost: nobody does, or the name has no address.
    """
    failure: AnswerLost
    try:
        socket.create_connection((host, port), timeout=max(1.0, seconds)).close()
        return
    except OSError as error:
        failure = AnswerLost(f"nobody listens at {host}:{port}: {error}")
    raise failure


class Sockets:
    """Duplicates of the sockets that one connection has opened, to be closed with it."""

    def __init__(self) -> None:
        """Hold none yet."""
        self._held: list[socket.socket] = []

    @classmethod
    @contextmanager
    def opened_to(cls, port: int) -> Iterator[Self]:
        """Watch what the block opens to a port; one block at a time in a process, so that none takes another's."""
        found = cls()
        with _OPENING:
            before = _descriptors()
            yield found
            opened = {number for number, _ in _descriptors() - before}
            found._held = [one for one in map(_duplicate, opened) if one is not None]
            for one in [one for one in found._held if _peer_port(one) != port]:
                found._held.remove(one)
                one.close()

    def shut(self) -> None:
        """Shut them down, so that whoever waits on them ends."""
        for one in self._held:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def __len__(self) -> int:
        """Count them."""
        return len(self._held)

    def close(self) -> None:
        """Close the duplicates: while one is open, the server still sees the session."""
        held, self._held = self._held, []
        for one in held:
            one.close()


class Watchdog:
    """While open, shuts down a connection's sockets after some seconds."""

    def __init__(self, sockets: Sockets, seconds: float) -> None:
        """Watch for ``seconds`` and the grace."""
        self._sockets = sockets
        self._seconds = seconds + GRACE_SECONDS

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._alarm = set_alarm(self._seconds, self._sockets.shut)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching."""
        self._alarm.call_off()


def _descriptors() -> set[tuple[int, str]]:
    """Return every open number with what it is: another thread may close one, and the driver then gets its number."""
    found = set()
    for one in _DESCRIPTORS.iterdir() if _DESCRIPTORS.is_dir() else ():
        with suppress(OSError):
            found.add((int(one.name), os.readlink(one)))
    return found


def _duplicate(descriptor: int) -> socket.socket | None:
    try:
        copy = os.dup(descriptor)
    except OSError:
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return None


def _peer_port(one: socket.socket) -> int | None:
    try:
        name = one.getpeername()
    except OSError:
        return None
    return name[1] if isinstance(name, tuple) else None
