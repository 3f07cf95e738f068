"""The two sides of a run: each a transaction on a connection of its own, stopped before every statement."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

Hook = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class At:
    """The side stands before this statement."""

    statement: str


@dataclass(frozen=True, slots=True)
class Done:
    """The side has ended, with what its work returned."""

    outcome: object


@dataclass(frozen=True, slots=True)
class Broken:
    """The side has ended with an exception."""

    error: Exception


Report = At | Done | Broken
PATIENCE = 60.0


class Side:
    """Runs ``work`` in a thread; it goes on only when it is let."""

    def __init__(self, work: Callable[[Hook], object]) -> None:
        """Start the thread; it stops before its first statement."""
        self.reports: queue.Queue[Report] = queue.Queue()
        self._may_go = threading.Semaphore(0)
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def let_go(self) -> None:
        """Let it send the statement before which it stands."""
        self._may_go.release()

    def join(self) -> None:
        """Wait until its thread has ended."""
        self._thread.join(PATIENCE)

    def _stop(self, statement: str) -> None:
        self.reports.put(At(statement))
        if not self._may_go.acquire(timeout=PATIENCE):
            raise TimeoutError(f"nobody let the side go on before: {statement}")

    def _run(self) -> None:
        try:
            outcome = self._work(self._stop)
        except Exception as error:  # noqa: BLE001  # whatever it is, the controller's thread reports it
            self.reports.put(Broken(error))
        else:
            self.reports.put(Done(outcome))
