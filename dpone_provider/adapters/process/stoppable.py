"""A `ChildRunner` whose children another thread can stop, all at once and for good."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dpone_provider.application.ports.process import ChildCommand, ChildProcess, ChildRunner
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import fail, unwind


class StoppableChildren:
    """Starts children as ``children`` does, until it is stopped."""

    def __init__(self, children: ChildRunner) -> None:
        """Start nothing yet."""
        self._children = children
        self._lock = threading.Lock()
        self._running: list[ChildProcess] = []
        self._stopped = False

    @contextmanager
    def start(self, command: ChildCommand, deadline: Deadline) -> Iterator[ChildProcess]:
        """Start the child; leaving the block stops it.

        Raises:
            DponeError: as the other runner; failed when it was stopped before.
        """
        self._require_going(command)
        with self._children.start(command, deadline) as child:
            with self._lock:
                self._running.append(child)
            try:
                # Whoever stopped it between the two looks did not see this child.
                self._require_going(command)
                yield child
            finally:
                with self._lock:
                    self._running.remove(child)

    def stop(self, grace: float) -> None:
        """Stop every child that runs, as `ChildProcess.stop`, and start none any more."""
        with self._lock:
            self._stopped = True
            running = tuple(self._running)
        for child in running:
            child.stop(grace)

    def _require_going(self, command: ChildCommand) -> None:
        with self._lock:
            stopped = self._stopped
        if stopped:
            unwind(
                fail(
                    "child_not_wanted",
                    f"child process {command.argv[0]}",
                    found="a command that is ending",
                    allowed="a command that goes on",
                    next_command="run the command again",
                )
            )
