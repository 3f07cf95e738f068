"""TCP proxies in front of PostgreSQL that cut connections at a chosen moment."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto
from types import TracebackType
from typing import Self

from dpone_provider.domain.connection import Endpoint

COMMIT = b"COMMIT\0"


class CutAt(Enum):
    """When the connection is cut."""

    BEFORE_COMMIT_LEAVES = auto()
    """COMMIT never reaches the server."""
    AFTER_COMMIT_ARRIVED = auto()
    """The server has answered COMMIT; the answer never reaches the client."""
    AFTER_BYTES = auto()
    """So many bytes of the server's have gone through."""


class CuttingProxy:
    """Listens on a port of its own; every connection through it is cut at the same moment."""

    def __init__(self, endpoint: Endpoint, *, cut_at: CutAt = CutAt.AFTER_BYTES, after_bytes: int = 0) -> None:
        """Listen at once."""
        self._behind = (endpoint.host, endpoint.port)
        self._cut_at = cut_at
        self._after_bytes = after_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = replace(endpoint, host="127.0.0.1", port=self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        """Begin to accept."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every connection, and close everything.

        Closing alone would not do: while a thread still waits for bytes of a socket, its connection stays open.
        """
        everything = (self._listener, *self._sockets)
        _hang_up(*everything)
        for one in everything:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._behind)
            self._sockets += [client, server]
            lost = threading.Event()
            for work in (self._to_server, self._to_client):
                threading.Thread(target=work, args=(client, server, lost), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        for data in _received(client):
            if COMMIT in data and self._cut_at is CutAt.BEFORE_COMMIT_LEAVES:
                break
            if COMMIT in data and self._cut_at is CutAt.AFTER_COMMIT_ARRIVED:
                lost.set()
            with suppress(OSError):
                server.sendall(data)
        _hang_up(client, server)

    def _to_client(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        passed = 0
        for data in _received(server):
            passed += len(data)
            if lost.is_set() or (self._cut_at is CutAt.AFTER_BYTES and passed > self._after_bytes):
                break
            with suppress(OSError):
                client.sendall(data)
        _hang_up(client, server)


def _received(one: socket.socket) -> Iterator[bytes]:
    with suppress(OSError):
        while data := one.recv(65536):
            yield data


def _hang_up(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
