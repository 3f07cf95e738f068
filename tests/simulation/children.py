"""Children that run a program on an actor of their own, and the programs of a worker and of dbt."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpone_provider.application.failure_codec import to_json
from dpone_provider.application.load import Source, Worker
from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.application.ports.time import Deadline
from dpone_provider.assembly.worker_job import WorkerJob
from dpone_provider.domain.connection import Endpoint
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import DponeError, Failed, fail
from tests.simulation.actors import Actor, Actors
from tests.simulation.clock import SimulatedClock
from tests.simulation.ledger import SimulatedLedger
from tests.simulation.server import SimulatedServer
from tests.simulation.tables import SimulatedFencedPublisher, SimulatedReader, SimulatedStagingWriter
from tests.simulation.wire import Call, Fault, Wire

KILLED = -9
STOPPED = -15
Event = Mapping[str, object]
ServerAt = Callable[[Endpoint], SimulatedServer]


@dataclass(slots=True, eq=False)
class SimulatedChild:
    """``ChildProcess`` to its controller; to its program the two pipes."""

    command: ChildCommand
    deadline: Deadline
    actors: Actors
    wire: Wire
    said: deque[Event] = field(default_factory=deque)
    answers: deque[Event] = field(default_factory=deque)
    code: int | None = None
    actor: Actor | None = None

    # the controller's side

    def events(self) -> Iterator[Event]:
        """Yield what the program says, until it has ended or its time is up."""
        while True:
            self.actors.wait_for(lambda: bool(self.said) or self.code is not None, self.deadline.at)
            if not self.said and self.code is None:
                self.stop(0.0)
            if not self.said:
                return
            event = self.said.popleft()
            if self.wire.send(Call("child", "event", str(event.get("event"))), lambda: False, lambda _: True):
                # As after a line that is no event: the pipe is not read any further, and the end is waited for.
                self.actors.wait_for(lambda: self.code is not None, self.deadline.at)
                self.stop(0.0)
                return
            yield event

    def answer(self, message: Event) -> None:
        """Answer the program."""
        self.wire.send(Call("child", "answer"), lambda: self.answers.append(message), lambda _: None)

    def stop(self, grace: float) -> None:
        """Kill the program."""
        if self.code is None and self.actor is not None:
            self.code = STOPPED
            self.actors.end(self.actor)

    def exit_code(self) -> int | None:
        """Return how it ended."""
        return self.code

    # the program's side

    def say(self, event: Event) -> None:
        """Tell the controller."""
        self.said.append(event)

    def wait_to_be_let_go(self, deadline: Deadline) -> bool:
        """Wait for the word to dispatch."""
        self.actors.wait_for(lambda: bool(self.answers), deadline.at)
        return bool(self.answers) and self.answers.popleft().get("dispatch") is True


def _not_started(command: ChildCommand, fault: Fault) -> Failed:
    return fail(
        "child_not_started",
        f"child process {command.argv[0]}",
        found=fault.name,
        allowed="a program that can be executed",
        next_command="make env",
    )


Program = Callable[[SimulatedChild], int]


@dataclass(slots=True)
class SimulatedChildren:
    """``ChildRunner``. ``program`` runs in each child; its return value is the exit code."""

    actors: Actors
    wire: Wire
    program: Program
    started: list[SimulatedChild] = field(default_factory=list)

    @contextmanager
    def start(self, command: ChildCommand, deadline: Deadline) -> Iterator[SimulatedChild]:
        """Start a child; leaving the block kills it."""

        def broken(fault: Fault) -> None:
            raise DponeError(_not_started(command, fault))

        child = SimulatedChild(command, deadline, self.actors, self.wire)
        self.wire.send(Call("child", "start"), lambda: None, broken)
        self.started.append(child)
        name = f"child {len(self.started)}"
        child.actor = self.actors.spawn(name, lambda: self._run(child))
        try:
            yield child
        finally:
            child.stop(0.0)

    def _run(self, child: SimulatedChild) -> None:
        code = KILLED
        try:
            code = self.program(child)
        except DponeError as error:
            child.say({"event": "failed", **to_json(error.failure)})
            code = 1
        finally:
            if child.code is None:
                child.code = code


@dataclass(frozen=True, slots=True)
class WorkerProgram:
    """What ``python -m dpone_provider.worker`` does, over simulated servers: the application's own worker."""

    wire: Wire
    clock: SimulatedClock
    ledger: SimulatedLedger
    server_at: ServerAt

    def __call__(self, child: SimulatedChild) -> int:
        """Run the job on standard input."""
        line = child.command.standard_input
        assert line is not None
        job = WorkerJob.from_line(line.reveal())
        source, target = self.server_at(job.source.endpoint), self.server_at(job.target.endpoint)
        publisher = None
        if target.kind is not EngineKind.CLICKHOUSE:
            publisher = SimulatedFencedPublisher(target, self.wire, self.ledger, job.target.credential)
        worker = Worker(
            reader=SimulatedReader(source, self.wire),
            writer=SimulatedStagingWriter(target, self.wire, job.target.credential, job.job),
            publisher=publisher,
            channel=child,
            clock=self.clock,
        )
        pack = job.pack
        wanted = Source(
            relation=pack.source.relation,
            columns=tuple(column.column for column in pack.columns),
            key=pack.key,
            bounds=Bounds(
                max_rows=pack.bounds.max_rows, max_bytes=pack.bounds.max_bytes, batch_rows=pack.bounds.batch_rows
            ),
        )
        worker.run(wanted, job.job, Deadline.after(self.clock, job.seconds))
        return 0
