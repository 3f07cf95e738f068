"""Watching one transaction against its deadline: who blocks it, and a server that does not answer at all."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from dpone_provider.application.ports.time import Deadline
from dpone_provider.sql_files import load

STATEMENTS = load(Path(__file__).with_name("ledger.sql"))
LOOK_BEFORE = 0.3
"""How long before the deadline the blockers are looked for, so that the wait is still going on."""
LOOK_EVERY = 0.05
CUT_AFTER = 2.0
"""How long after the deadline a server that has not even given up the lock wait is taken for silent."""


class Watch:
    """Runs beside one transaction. ``blockers`` says, in words, who last kept it waiting; empty when nobody did.

    A thread, because the driver is inside the waiting call. It sleeps unless the deadline comes near. When the server
    has not answered ``CUT_AFTER`` seconds after the deadline, it shuts the connection's socket, so that the driver's
    call ends.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        deadline: Deadline,
        look: Callable[[], psycopg.Connection[Any]],
    ) -> None:
        """Watch ``connection``; ``look`` opens another one to the same server."""
        self._pid = connection.info.backend_pid
        self._descriptor = connection.fileno()
        self._deadline = deadline
        self._look = look
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger watch", daemon=True)
        self.blockers = ""

    def __enter__(self) -> Watch:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching, before the connection is used for anything else."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        remaining = self._deadline.remaining()
        if self._over.wait(max(0.0, remaining - min(LOOK_BEFORE, remaining / 2))):
            return
        try:
            with self._look() as beside:
                while not self._over.wait(LOOK_EVERY) and self._patience() > 0:
                    self._note(beside)
        except psycopg.Error:
            # Nobody to ask; the wait itself goes on until it is answered or cut.
            self._over.wait(max(0.0, self._patience()))
        if not self._over.is_set():
            self._cut()

    def _patience(self) -> float:
        """Return the seconds left until the server is taken for silent."""
        return self._deadline.at + CUT_AFTER - self._deadline.clock.monotonic()

    def _note(self, beside: psycopg.Connection[Any]) -> None:
        rows = beside.execute(STATEMENTS["blockers"], {"pid": self._pid}).fetchall()
        if rows:
            self.blockers = "; ".join(in_words(*row) for row in rows)

    def _cut(self) -> None:
        with socket.fromfd(self._descriptor, socket.AF_INET, socket.SOCK_STREAM) as same:
            try:
                same.shutdown(socket.SHUT_RDWR)
            except OSError:
                # Closed already: the driver's call has ended.
                return


def in_words(pid: int, who: str, state: str, seconds: int) -> str:
    """Return a session as messages name it."""
    return f"{who} (pid {pid}, {state}, its transaction began {seconds} s ago)"
