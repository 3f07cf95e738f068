"""A loopback port in front of a SQL Server: it holds a login still at one of its steps, or loses answers.

A message is whatever one ``recv`` gives: of a login these are its steps, as each waits for the answer to the last.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from dpone_provider.adapters.mssql.session import MssqlServer

_BYTES = 65536
_PATIENCE = 60.0


class Relay:
    """Passes one connection after the other on to a server, until it is told otherwise."""

    def __init__(self, host: str, port: int) -> None:
        """Listen on loopback; the server is at ``host`` and ``port``."""
        self._to = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._hold_before: int | None = None
        self._deaf = False
        self._open: list[socket.socket] = []
        self.holding = threading.Event()
        """A message is held."""
        self._may_go = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def hold_before(self, message: int) -> None:
        """Hold the client's so-manyth message of each connection from now on, counted from 1, until ``go_on``."""
        self._hold_before = message

    def go_on(self) -> None:
        """Pass on what is held, and hold nothing more."""
        self._hold_before = None
        self._may_go.set()

    def lose_answers(self) -> None:
        """From now on pass what is asked, and end the connection when the server answers."""
        self._deaf = True

    def close(self) -> None:
        """End everything."""
        self._may_go.set()
        for one in (self._listener, *self._open):
            _hang_up(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._to)
                self._open += [near, far]
                threading.Thread(target=self._ask, args=(near, far), daemon=True).start()
                threading.Thread(target=self._answer, args=(near, far), daemon=True).start()

    def _ask(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            sent = 0
            while data := near.recv(_BYTES):
                sent += 1
                if sent == self._hold_before:
                    self.holding.set()
                    self._may_go.wait(_PATIENCE)
                far.sendall(data)
        _hang_up(far)

    def _answer(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while data := far.recv(_BYTES):
                if self._deaf:
                    break
                near.sendall(data)
        _hang_up(near)


@contextmanager
def relay_to(server: MssqlServer) -> Iterator[tuple[Relay, MssqlServer]]:
    """Put a relay in front of a server; give it, and the server as it is reached through it."""
    relay = Relay(server.endpoint.host, server.endpoint.port)
    try:
        yield relay, replace(server, endpoint=replace(server.endpoint, host="127.0.0.1", port=relay.port))
    finally:
        relay.close()


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        one.close()
