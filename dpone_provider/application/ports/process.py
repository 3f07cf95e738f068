"""Running an attempt's work in a child process, and asking Airflow whether a task still lives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import AirflowTry
from dpone_provider.domain.outcomes import Unknown
from dpone_provider.domain.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCommand:
    """What to run.

    ``environment`` is the whole environment, nothing is inherited; ``secret_environment`` joins it and is never logged.
    ``standard_input`` is the first line sent to the child (JSON, may hold secrets); the pipe stays open for later
    answers. ``user`` is another uid to run under, or None; it is given ``directory`` with all in it. ``masked`` are
    secrets beyond the environment's that must not appear in the log, whatever the child prints.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    secret_environment: Mapping[str, Secret]
    standard_input: Secret | None
    directory: Path
    user: int | None = None
    masked: Sequence[Secret] = ()


class ChildProcess(Protocol):
    """A running child: own session and process group, killed with the parent, core dumps off."""

    def events(self) -> Iterator[Mapping[str, object]]:
        """Yield the JSON objects of its event pipe as they come; lines of its own output go to the log.

        Ends when the child has ended, so that ``exit_code`` is then known; an incomplete last line is dropped, and
        after a line that is no JSON object nothing more is read.
        """

    def answer(self, message: Mapping[str, object]) -> None:
        """Send one JSON line to the child's standard input; a child that is gone is not an error here."""

    def stop(self, grace: float) -> None:
        """SIGTERM to the group, after ``grace`` seconds SIGKILL; returns when the whole group is gone."""

    def exit_code(self) -> int | None:
        """Return the exit code (negative: the signal), or None while it runs."""


class ChildRunner(Protocol):
    """Starts children."""

    def start(self, command: ChildCommand, deadline: Deadline) -> AbstractContextManager[ChildProcess]:
        """Start the child; leaving the block stops it, whatever happened. Past the deadline it is stopped.

        Raises:
            DponeError: *failed*, the program could not be started; *refused*, another user was asked for without root.
        """


class TaskInstances(Protocol):
    """Airflow's own word on whether a task instance can still act."""

    def alive(self, tried: AirflowTry) -> bool | Unknown:
        """Tell whether the task instance (by its UUID) is queued, running or deferred, asked now.

        A task instance that Airflow no longer knows is dead. Unknown: Airflow cannot be asked.
        """
