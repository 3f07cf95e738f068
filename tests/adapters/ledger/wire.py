"""A loopback port between a client and a server that can be cut, or go silent, when the test says so."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Wire:
    """Passes every connection to ``port`` on to the server, until it is told otherwise."""

    def __init__(self, host: str, port: int) -> None:
        """Listen on a free port; the server is at ``host`` and ``port``."""
        self._target = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._no_questions = threading.Event()
        self._no_answers = threading.Event()
        self._last: bytes | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection at once, and accept no other."""
        self._listener.close()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def drop_answers(self) -> None:
        """Let questions reach the server, and nothing come back."""
        self._no_answers.set()

    def drop_all(self) -> None:
        """Pass nothing on any more, in either direction, without ending anything."""
        self._no_questions.set()
        self._no_answers.set()

    def drop_all_from(self, part: bytes) -> None:
        """Pass nothing on any more as soon as a question has these bytes."""
        self._last = part

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._ends += [near, far]
                for source, target, drop in ((near, far, self._no_questions), (far, near, self._no_answers)):
                    threading.Thread(target=self._pass_on, args=(source, target, drop), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, drop: threading.Event) -> None:
        with source, suppress(OSError):
            while data := source.recv(65536):
                if self._last is not None and self._last in data:
                    self.drop_all()
                if not drop.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
