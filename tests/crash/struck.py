"""A process on the lab's engines that kills itself at a named point: the product's own, with every port watched.

It is forked from a process that has imported everything. Its worker, where the scene has one, is forked likewise, and
dies with it. What the process passes is written down, one name a line, before anything happens there.
"""

from __future__ import annotations

import dataclasses
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Line
from pathlib import Path
from typing import Any

from dpone_provider.adapters.clickhouse import catalog, gate, publisher, sql_users, staging, user_pool
from dpone_provider.adapters.clickhouse import reader as clickhouse_reader
from dpone_provider.adapters.postgres import catalog as postgres_catalog
from dpone_provider.adapters.postgres import gate as postgres_gate
from dpone_provider.adapters.postgres import publisher as postgres_publisher
from dpone_provider.adapters.postgres import reader, writer
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.attempt import AttemptReport, Workload
from dpone_provider.application.failure_codec import to_json
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.promotion import PromotionOrder, PromotionReport
from dpone_provider.assembly.gates import EnvironmentGates
from dpone_provider.assembly.runtime import Runtime, runtime_of
from dpone_provider.assembly.settings import Settings
from dpone_provider.assembly.worker_job import WorkerJob
from dpone_provider.assembly.workers import worker_of
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AirflowTry, AttemptId, Digest, OccurrenceId
from dpone_provider.domain.outcomes import DponeError, Failure
from dpone_provider.worker.__main__ import run as run_worker
from tests.acceptance import processes
from tests.acceptance.world import Airflow
from tests.crash.naming import Names

processes.preload(__name__)
PRELOADED = (catalog, gate, publisher, sql_users, staging, user_pool, clickhouse_reader)
PRELOADED += (postgres_catalog, postgres_gate, postgres_publisher, reader)
"""Imported so that a forked process has them: the product imports them when their engine is met."""
POINTS: Mapping[str, frozenset[str]] = {
    "airflow": frozenset({"alive"}),
    "cache": frozenset({"verify", "materialise", "pointer", "swap_pointer"}),
    "catalog": frozenset({"incarnation", "enrolment", "observe", "raise_mark", "take_receipt"}),
    "gate": frozenset({"create", "enable", "read_back", "disable", "observe", "end_sessions", "collect", "principals"}),
    "publisher": frozenset({"bind", "create_staged", "verify", "dispatch", "discard_staged", "observe"}),
    "reader": frozenset({"snapshot"}),
    "staging": frozenset({"write", "finish"}),
    "witness": frozenset({"allegiance", "traces", "drop_staged", "obey"}),
}
"""The ports' methods that are points, as on the simulator."""
TRANSACTIONAL = frozenset({"postgres"})
NO_ANSWER = frozenset({"verify", "dispatch"})
"""Methods that ask nothing of an SQL target: the worker's transaction did it all."""


@dataclasses.dataclass(slots=True)
class Strike:
    """Writes down each point that this process passes; at ``at`` it ends."""

    scene: str
    at: str
    passed: Path
    until: str = ""
    names: Names | None = None

    def __call__(self, port: str, call: str, about: str = "") -> None:
        """Pass a point, or die there."""
        if self.note(port, call, about):
            die()

    def note(self, port: str, call: str, about: str = "") -> bool:
        """Write a point down; tell whether it is the one."""
        if self.names is None:
            self.names = Names(self.scene, self.until)
        name = self.names.of(port, call, about)
        if name:
            with self.passed.open("a") as out:
                out.write(f"{name}\n")
        return bool(name) and name == self.at


def die() -> None:
    """End this process here: nothing of it runs any more."""
    os.kill(os.getpid(), signal.SIGKILL)


class Watched:
    """Any port, with its points."""

    def __init__(self, port: str, real: Any, strike: Strike, *, about: str = "", silent: frozenset[str] = frozenset()):
        """Watch ``real``; the methods in ``silent`` ask nothing of anybody."""
        self._port, self._real, self._strike, self._about = port, real, strike, about
        self._points = POINTS[port] - silent

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in self._points:
            return found

        def called(*arguments: Any, **more: Any) -> Any:
            self._strike(self._port, name, self._about)
            return found(*arguments, **more)

        return called


class WatchedLedger:
    """The ledger: a process that dies in one of its transactions dies with everything said and COMMIT not sent."""

    def __init__(self, real: Any, strike: Strike):
        """Watch ``real``."""
        self._real, self._strike = real, strike

    def run(self, name: str, script: Callable[[LedgerTransaction], Any], deadline: Deadline) -> Any:
        """Run a transaction."""
        if not self._strike.note("ledger", name):
            return self._real.run(name, script, deadline)

        def dying(transaction: LedgerTransaction) -> None:
            script(transaction)
            die()

        return self._real.run(name, dying, deadline)

    def authority(self) -> Any:
        """Ask who it is."""
        self._strike("ledger", "authority")
        return self._real.authority()

    def standing(self) -> Any:
        """Ask how it stands."""
        self._strike("ledger", "standing")
        return self._real.standing()

    def afresh(self) -> WatchedLedger:
        """Return the same ledger on a new connection."""
        return WatchedLedger(self._real.afresh(), self._strike)

    def regardless(self) -> WatchedLedger:
        """Return the same ledger for reading only."""
        return WatchedLedger(self._real.regardless(), self._strike)

    def readmitting(self) -> WatchedLedger:
        """Return the same ledger for a readmission."""
        return WatchedLedger(self._real.readmitting(), self._strike)

    def end_sleepers(self) -> Any:
        """End stopped controllers."""
        return self._real.end_sleepers()


class WatchedServices:
    """The services, each of their parts watched."""

    def __init__(self, real: Any, strike: Strike):
        """Watch ``real``."""
        self._real, self._strike = real, strike

    def catalog(self, connection: Connection) -> Any:
        """Return a catalog."""
        alias = connection.reference.partition(".")[0]
        return Watched("catalog", self._real.catalog(connection), self._strike, about=alias)

    def gate(self, connection: Connection) -> Any:
        """Return a gate."""
        return Watched("gate", self._real.gate(connection), self._strike)

    def publisher(self, connection: Connection) -> Any:
        """Return a publisher."""
        silent = NO_ANSWER if connection.kind.value in TRANSACTIONAL else frozenset()
        return Watched("publisher", self._real.publisher(connection), self._strike, silent=silent)

    def witness(self, connection: Connection) -> Any:
        """Return a witness."""
        return Watched("witness", self._real.witness(connection), self._strike)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class ForkedChildren:
    """``ChildRunner`` of one child: the worker's own code in a process that was forked for it, and dies with it."""

    def __init__(self, strike: Strike, line: Line):
        """Speak to the process at the other end of ``line``."""
        self._strike, self._line = strike, line

    @contextmanager
    def start(self, command: ChildCommand, deadline: Deadline) -> Iterator[ForkedChild]:
        """Give it its job; leaving the block is its end."""
        self._strike("child", "start")
        assert command.standard_input is not None
        ended = self._strike.names is not None and self._strike.names.ended
        names = Names(self._strike.scene, self._strike.until, ended=ended)
        self._line.send((command.standard_input.reveal(), dataclasses.replace(self._strike, names=names)))
        try:
            yield ForkedChild(self._line, self._strike)
        finally:
            self._line.close()


class ForkedChild:
    """``ChildProcess`` of a forked worker."""

    def __init__(self, line: Line, strike: Strike):
        """Speak to it through ``line``."""
        self._line, self._strike = line, strike
        self._code: int | None = None

    def events(self) -> Iterator[Mapping[str, object]]:
        """Yield what it says until it has ended."""
        try:
            while isinstance(event := self._line.recv(), dict):
                if event.get("event") != "progress":
                    self._strike("child", "event", str(event.get("event")))
                yield event
            self._code = event
        except (EOFError, ConnectionError):
            self._code = -signal.SIGKILL

    def answer(self, message: Mapping[str, object]) -> None:
        """Answer it."""
        self._strike("child", "answer")
        with suppress(OSError):
            self._line.send(message)

    def stop(self, grace: float) -> None:
        """Let it end."""
        self._line.close()

    def exit_code(self) -> int | None:
        """Return how it ended."""
        return self._code


class WatchedChildren:
    """``ChildRunner``: real children, what they say and are told watched."""

    def __init__(self, real: Any, strike: Strike):
        """Watch ``real``."""
        self._real, self._strike = real, strike

    @contextmanager
    def start(self, command: ChildCommand, deadline: Deadline) -> Iterator[WatchedChild]:
        """Start one."""
        self._strike("child", "start")
        with self._real.start(command, deadline) as child:
            yield WatchedChild(child, self._strike)


class WatchedChild:
    """``ChildProcess``, watched."""

    def __init__(self, real: Any, strike: Strike):
        """Watch ``real``."""
        self._real, self._strike = real, strike

    def events(self) -> Iterator[Mapping[str, object]]:
        """Yield what it says."""
        for event in self._real.events():
            self._strike("child", "event")
            yield event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class ForkedChannel:
    """A worker's line to its controller. It ends with it."""

    def __init__(self, line: Line):
        """Listen; the end of the line is the end of this process, as the guard sees to elsewhere."""
        self._line = line
        self._answers: queue.SimpleQueue[Mapping[str, object]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, event: Mapping[str, object]) -> None:
        """Tell the controller."""
        self._line.send(dict(event))

    def wait_to_be_let_go(self, deadline: Deadline) -> bool:
        """Wait for the word to dispatch."""
        with suppress(queue.Empty):
            return self._answers.get(timeout=deadline.remaining()).get("dispatch") is True
        return False

    def _listen(self) -> None:
        try:
            while True:
                self._answers.put(self._line.recv())
        except (EOFError, OSError):
            die()


def work(line: Line) -> None:
    """Be a worker: what ``python -m dpone_provider.worker`` does, with its ports watched; say the exit code last."""
    try:
        job_line, strike = line.recv()
    except EOFError:
        return
    channel, clock = ForkedChannel(line), SystemClock()
    job = WorkerJob.from_line(job_line)
    _watch_transaction(strike)
    real = worker_of(job, channel, clock)
    worker = dataclasses.replace(
        real, reader=Watched("reader", real.reader, strike), writer=Watched("staging", real.writer, strike)
    )
    code = 0
    try:
        run_worker(worker, job, Deadline.after(clock, job.seconds))
    except DponeError as error:
        channel.say({"event": "failed", **to_json(error.failure)})
        code = 1
    line.send(code)


def _watch_transaction(strike: Strike) -> None:
    """Two points lie inside the worker's one transaction, which no port shows."""
    for holder, name, call in (
        (writer.PostgresTransaction, "replace_content", "replace"),
        (writer, "_commit", "commit"),
    ):
        setattr(holder, name, _passing(strike, call, getattr(holder, name)))


def _passing(strike: Strike, call: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``real``, which strikes first; a function, so that it can be a method too."""

    def passing(*arguments: Any) -> Any:
        strike("target", call)
        return real(*arguments)

    return passing


# ─── what a struck process is asked to do ───────────────────────────────────────────────────────────────────────────


def struck_runtime(settings: Settings, strike: Strike) -> Runtime:
    """Return the runtime of a process, every port watched."""
    real = runtime_of(settings, lambda line: None, Airflow())
    services = WatchedServices(real.services, strike)
    return dataclasses.replace(
        real,
        ledger=WatchedLedger(real.ledger, strike),
        cache=Watched("cache", real.cache, strike),
        services=services,
        task_instances=Watched("airflow", real.task_instances, strike),
        gates=EnvironmentGates(real.cache, settings.environment, services),  # type: ignore[arg-type]
    )


def promote(settings: Settings, strike: Strike, order: PromotionOrder) -> PromotionReport | Failure:
    """Be a cache-sync."""
    return struck_runtime(settings, strike).promote(order)


def run(
    settings: Settings,
    strike: Strike,
    occurrence_id: OccurrenceId,
    deployment_id: Digest,
    workload_id: str,
    tried: AirflowTry,
    line: Line | None,
) -> AttemptReport | Failure:
    """Be a task of Airflow; its worker is at the other end of ``line``, dbt is a child like any other."""

    def watched(workload: Any) -> Workload:
        real = workload.children
        children = WatchedChildren(real, strike) if line is None else ForkedChildren(strike, line)
        return dataclasses.replace(workload, children=children)  # type: ignore[no-any-return]

    runtime = struck_runtime(settings, strike)
    return runtime.run_workload(occurrence_id, deployment_id, workload_id, tried, as_=watched)


def withdraw(settings: Settings, strike: Strike, occurrence_id: OccurrenceId) -> object:
    """Be ``dpone occurrence withdraw``."""
    return struck_runtime(settings, strike).coordinator.withdraw(occurrence_id)


def abandon(settings: Settings, strike: Strike, occurrence_id: OccurrenceId) -> object:
    """Be ``dpone occurrence abandon``."""
    return struck_runtime(settings, strike).abandon(occurrence_id, 10.0)


def retire(settings: Settings, strike: Strike, occurrence_id: OccurrenceId) -> object:
    """Be ``dpone occurrence retire``."""
    return struck_runtime(settings, strike).retire(occurrence_id, 10.0)


def recover(settings: Settings, strike: Strike) -> object:
    """Be ``dpone recover``."""
    return struck_runtime(settings, strike).recover_dead()


def recover_on_word(settings: Settings, strike: Strike, attempt_id: AttemptId) -> object:
    """Be ``dpone recover --attempt``."""
    return struck_runtime(settings, strike).recover_on_word(attempt_id)


def reconcile(settings: Settings, strike: Strike, attempt_id: AttemptId) -> object:
    """Be ``dpone attempt reconcile``."""
    return struck_runtime(settings, strike).reconcile_attempt(attempt_id)


def judge(settings: Settings, strike: Strike, attempt_id: AttemptId) -> object:
    """Be ``dpone attempt reconcile --as failed``."""
    runtime = struck_runtime(settings, strike)
    return runtime.judge_attempt(attempt_id, AttemptState.FAILED, because="looked at it", by="operator")
