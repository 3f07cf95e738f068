"""A publication in a process of its own, which is killed before or after one of its statements, as a worker may be."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dpone_provider.adapters.mssql.parameters import Parameters
from dpone_provider.adapters.mssql.session import KeptSession, MssqlServer, Row, Session
from dpone_provider.adapters.mssql.writer import MssqlFencedPublisher, Way
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.tables import PublishJob, StagedContent, TargetBinding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.secret import Secret

STATEMENTS = ("begin", "lock", "fence", "definitions", "effects", "delete", "insert", "fence", "receipt", "COMMIT")
"""What a refresh of a table that stands sends by the way ``insert``, in order."""
SECONDS = 60.0
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__])


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The moment: before or after the so-manyth statement, counted from 0."""

    statement: int
    after: bool

    @property
    def committed(self) -> bool:
        """Whether COMMIT was answered by then."""
        return self.after and STATEMENTS[self.statement] == "COMMIT"

    def __str__(self) -> str:
        """Name it."""
        return f"{'after' if self.after else 'before'} {STATEMENTS[self.statement]} ({self.statement})"


KILLS = [Kill(statement=place, after=after) for place in range(len(STATEMENTS)) for after in (False, True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What the worker is told: as plain as goes from one process to another."""

    endpoint: Endpoint
    user: str
    password: str
    job: PublishJob
    binding: TargetBinding
    staged: StagedContent
    control_database: str
    way: Way = Way.INSERT

    def killed(self, kill: Kill) -> None:
        """Publish in another process, which is killed at that moment; return when it is gone."""
        process = _CONTEXT.Process(target=_publish, args=(self, kill), daemon=True)
        process.start()
        process.join(SECONDS)
        code = process.exitcode
        if code is None:
            process.kill()
        assert code == -signal.SIGKILL, f"the worker ended with {code}, where it was to be killed {kill}"


class _Dying(Session):
    """A session whose process kills itself."""

    kill: Kill
    sent = 0

    def results(self, statement: str, parameters: Parameters | None = None) -> list[list[Row]]:
        """Run a batch."""
        mine, self.sent = self.sent == self.kill.statement, self.sent + 1
        if mine and not self.kill.after:
            os.kill(os.getpid(), signal.SIGKILL)
        found = super().results(statement, parameters)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        return found


@dataclass(frozen=True, slots=True)
class _DyingAt:
    server: MssqlServer
    kill: Kill

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return self.server.endpoint

    @contextmanager
    def session(self, purpose: str, seconds: float) -> Iterator[Session]:
        """Open one."""
        with self.server.session(purpose, seconds) as own:
            dying = _Dying(own._raw, own._errors)
            dying.kill = self.kill
            yield dying

    def kept(self, purpose: str) -> KeptSession:
        """Return one that is kept."""
        return self.server.kept(purpose)

    def borrowed(self, handle: object) -> Session | None:
        """Return a borrowed one."""
        return self.server.borrowed(handle)


def _publish(told: Publication, kill: Kill) -> None:
    server = MssqlServer(told.endpoint, Credential(told.user, Secret(told.password)))
    publisher = MssqlFencedPublisher(
        _DyingAt(server, kill), told.binding, control_database=told.control_database, way=told.way
    )
    publisher.publish(told.job, told.staged, Deadline.after(SystemClock(), SECONDS))
