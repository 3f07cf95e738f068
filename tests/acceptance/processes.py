"""Processes that do what a machine of ours does, to be killed and stopped.

They are forked from one process that has imported everything, so that each is there in some milliseconds. What they run
is the product's own: the workers that they start are processes like everywhere else.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.promotion import PromotionOrder, PromotionReport
from dpone_provider.assembly.runtime import runtime_of
from dpone_provider.assembly.settings import Settings
from dpone_provider.domain.identity import AirflowTry, Digest, OccurrenceId
from dpone_provider.domain.outcomes import Failure
from tests.acceptance.world import Airflow

_CONTEXT = multiprocessing.get_context("forkserver")
_PRELOADED = [__name__]
_CONTEXT.set_forkserver_preload(_PRELOADED)
WORKER = b"dpone_provider.worker"
SECONDS = 60.0


@dataclass(slots=True)
class Process:
    """One process. It begins to act when it is told to, so that a test can prepare what shall happen to it."""

    act: Callable[..., object]
    arguments: tuple[Any, ...]
    pid: int = 0
    _process: Any = None
    _line: Connection | None = field(default=None)

    def __post_init__(self) -> None:
        """Fork, and wait for the word to begin."""
        self._line, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_live, args=(theirs, self.act, self.arguments), daemon=True)
        self._process.start()
        theirs.close()
        self.pid = self._process.pid
        _STARTED.append(self)

    def begin(self) -> Process:
        """Begin to act."""
        assert self._line is not None
        self._line.send(None)
        return self

    def kill(self) -> None:
        """Kill it; what it had started loses its controller."""
        os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Stop it where it is."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def result(self) -> Any:
        """Wait for its end and return what it came to, None if it was killed."""
        assert self._line is not None
        found = None
        if self._line.poll(SECONDS):
            with suppress(EOFError):
                found = self._line.recv()
        self._process.join(SECONDS)
        assert self._process.exitcode is not None, "a process that did not end"
        return found

    @property
    def over(self) -> bool:
        """Tell whether it has said what it came to, or is gone."""
        assert self._line is not None
        return self._line.poll()

    def end(self) -> None:
        """Make sure that it is gone."""
        with suppress(ProcessLookupError):
            self.kill()
        self._process.join(SECONDS)

    def worker(self) -> int | None:
        """Return the id of its worker process, if it has one."""
        return next((pid for pid in descendants(self.pid) if WORKER in command_line(pid)), None)


def preload(module: str) -> None:
    """Have a module imported in the process that all are forked from; before the first is."""
    _PRELOADED.append(module)
    _CONTEXT.set_forkserver_preload(_PRELOADED)


def line_to(act: Callable[..., object]) -> Connection:
    """Start a process that acts at once on its end of a line; return the other end, whose end is to be its own."""
    line, theirs = _CONTEXT.Pipe()
    _CONTEXT.Process(target=act, args=(theirs,), daemon=True).start()
    theirs.close()
    return line


_STARTED: list[Process] = []


def end_all() -> None:
    """Make sure that none of them is left: one that is stopped would outlast the session."""
    while _STARTED:
        _STARTED.pop().end()


def _live(line: Connection, act: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    line.recv()
    line.send(act(*arguments))


def promote(settings: Settings, order: PromotionOrder) -> PromotionReport | Failure:
    """Be a cache-sync."""
    return runtime_of(settings, _silent, Airflow()).promote(order)


def run(
    settings: Settings, occurrence_id: OccurrenceId, deployment_id: Digest, workload_id: str, tried: AirflowTry
) -> AttemptReport | Failure:
    """Be a task of Airflow: the controller of one attempt."""
    return runtime_of(settings, _silent, Airflow()).run_workload(occurrence_id, deployment_id, workload_id, tried)


def _silent(line: str) -> None:
    """Tell nobody."""


def command_line(pid: int) -> bytes:
    """Return the command line of a process, empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes below one, nearest first."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        below = [child for one in waiting for child in parents.get(one, [])]
        yield from below
        waiting = below
