"""The worker: one snapshot, staged, checked, told; published when it is let go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from dpone_provider.application.ledger import admission
from dpone_provider.application.ledger.calls import require
from dpone_provider.application.load import Source, Worker
from dpone_provider.application.ports.tables import Bounds, PublishJob
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import AttemptId, OccurrenceId, Principal, Relation, SlotId
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, Unknown
from dpone_provider.domain.schema.tables import Column, Table
from dpone_provider.domain.secret import Secret
from tests.simulation.deployments import COLUMNS
from tests.simulation.outcomes import Kind, failure_of
from tests.simulation.server import SimulatedServer, StoredLogin, StoredTable
from tests.simulation.tables import (
    SimulatedFencedPublisher,
    SimulatedReader,
    SimulatedSnapshot,
    SimulatedStagingWriter,
    batch_of,
)
from tests.simulation.wire import Delay, Fault
from tests.simulation.world import ROWS, SOURCE_FLIGHTS, STAGE_FLIGHTS, World

CREDENTIAL = Credential("dpone_v3_worker", Secret("secret"))
MANY = Bounds(max_rows=1000, max_bytes=1_000_000, batch_rows=1)


@dataclass(slots=True)
class Told:
    """A channel to a controller that gives its word, or does not."""

    word: bool = True
    said: list[Mapping[str, object]] = field(default_factory=list)

    def say(self, event: Mapping[str, object]) -> None:
        """Hear."""
        self.said.append(event)

    def wait_to_be_let_go(self, deadline: Deadline) -> bool:
        """Give it."""
        return self.word


class LaxReader(SimulatedReader):
    """Delivers whatever there is."""

    @contextmanager
    def snapshot(
        self, relation: Relation, columns: Sequence[Column], key: Sequence[str], bounds: Bounds
    ) -> Iterator[SimulatedSnapshot]:
        """Open a snapshot without any limit."""
        unlimited = replace(bounds, max_rows=10**9, max_bytes=10**9)
        with SimulatedReader(self.server, self.wire).snapshot(relation, columns, key, unlimited) as opened:
            yield opened


@dataclass(slots=True)
class Stage:
    """A worker with its servers; the login of its attempt is let in."""

    world: World
    worker: Worker
    job: PublishJob
    channel: Told

    def run(self, bounds: Bounds = MANY, seconds: float = 100.0) -> None:
        """Run it."""
        source = Source(relation=SOURCE_FLIGHTS, columns=COLUMNS, key=("id",), bounds=bounds)
        self.worker.run(source, self.job, Deadline.after(self.world.clock, seconds))

    def fails(self, kind: type[Kind], reason: str, bounds: Bounds = MANY) -> None:
        """Run it; it must fail, with nothing published."""
        with pytest.raises(DponeError) as failed:
            self.run(bounds)
        failure_of(failed.value, kind, reason)
        assert STAGE_FLIGHTS not in self.world.warehouse.tables


def staged(world: World, server: SimulatedServer, lost: int = 0) -> Stage:
    """Return a worker into ``server``; the ledger knows its attempt, by hand."""
    occurrence = world.active()
    binding = world.binding(occurrence)
    slot = world.slot(STAGE_FLIGHTS)
    job = PublishJob(
        attempt_id=AttemptId(binding.attempt_id),
        occurrence_id=OccurrenceId(occurrence.occurrence_id),
        slot_id=SlotId(slot.slot_id),
        epoch=slot.epoch,
        target=STAGE_FLIGHTS,
        staged=Relation("stage", "dpone_staging"),
        declared=Table(schema="stage", name="flights", columns=COLUMNS, primary_key=("id",)),
    )
    _let_in(world, occurrence, binding.attempt_id, server)
    channel = Told()
    publisher = SimulatedFencedPublisher(world.warehouse, world.wire, world.ledger, CREDENTIAL)
    return Stage(
        world,
        Worker(
            reader=SimulatedReader(world.shop, world.wire, lost),
            writer=SimulatedStagingWriter(server, world.wire, CREDENTIAL, job),
            publisher=publisher if server is world.warehouse else None,
            channel=channel,
            clock=world.clock,
        ),
        job,
        channel,
    )


def _let_in(world: World, occurrence: Occurrence, attempt_id: AttemptId, server: SimulatedServer) -> None:
    binding = world.binding(occurrence)
    script = lambda tx: admission.admit(tx, "synthetic", binding)  # noqa: E731
    admitted = require(world.ledger, "admit", script, Deadline.after(world.clock, 1.0))
    assert isinstance(admitted, admission.Admitted)
    assert admitted.attempt.state is AttemptState.RUNNING
    principal = Principal(service_id=server.service_id, name=CREDENTIAL.user, sid="1")
    gate = Gate(attempt_id=attempt_id, principal=principal, state=GateState.READY)
    world.ledger.rows.gates[attempt_id, server.service_id] = gate
    server.logins[CREDENTIAL.user] = StoredLogin(CREDENTIAL.user, "secret", True, "1", ())


@pytest.fixture
def world() -> World:
    """A world."""
    return World()


@pytest.fixture
def stage(world: World) -> Stage:
    """A worker into the warehouse."""
    return staged(world, world.warehouse)


def test_it_stages_tells_and_publishes(stage: Stage) -> None:
    stage.run()
    assert [event["event"] for event in stage.channel.said] == ["staged", "published"]
    assert stage.channel.said[0]["rows"] == len(ROWS)
    assert len(stage.world.rows_at(stage.world.warehouse, STAGE_FLIGHTS)) == len(ROWS)


def test_it_does_not_publish_where_the_controller_does(world: World) -> None:
    stage = staged(world, world.analytics)
    world.analytics.tables[stage.job.staged] = StoredTable("uuid", COLUMNS)
    stage.run()
    assert [event["event"] for event in stage.channel.said] == ["staged"]


def test_it_does_not_publish_unless_it_is_let_go(stage: Stage) -> None:
    stage.channel.word = False
    stage.fails(Failed, "not_let_go")


def test_progress_is_told_now_and_then(stage: Stage) -> None:
    stage.world.strike("reader.batch", Delay(0.6), nth=None)
    stage.run()
    progress = [event for event in stage.channel.said if event["event"] == "progress"]
    assert [event["rows"] for event in progress] == [1, 2, 3]


def test_an_empty_source_stages_nothing_and_publishes_that(stage: Stage) -> None:
    stage.world.shop.tables[SOURCE_FLIGHTS].batches.clear()
    stage.run()
    assert stage.channel.said[0]["rows"] == 0
    assert stage.world.rows_at(stage.world.warehouse, STAGE_FLIGHTS) == []


def test_a_source_that_ends_early_publishes_nothing(world: World) -> None:
    """F18: the source says three rows, and delivers two."""
    staged(world, world.warehouse, lost=1).fails(Failed, "source_ended_early")


def test_a_source_that_breaks_publishes_nothing(stage: Stage) -> None:
    stage.world.strike("reader.batch", Fault.ERROR, nth=2)
    stage.fails(Failed, "source_broke")


def test_a_source_of_another_shape_is_refused(stage: Stage) -> None:
    stage.world.shop.tables.clear()
    stage.fails(Refused, "source_differs")


@pytest.mark.parametrize(
    "bounds",
    [Bounds(max_rows=2, max_bytes=1_000_000, batch_rows=1), Bounds(max_rows=1000, max_bytes=20, batch_rows=1)],
    ids=["rows", "bytes"],
)
def test_a_bound_that_is_passed_publishes_nothing(stage: Stage, bounds: Bounds) -> None:
    """Whether the reader sees to it, or the worker itself."""
    stage.fails(Failed, "bounds_passed", bounds)
    stage.worker = replace(stage.worker, reader=LaxReader(stage.world.shop, stage.world.wire))
    stage.fails(Failed, "bounds_passed", bounds)
    assert len(stage.world.warehouse.tables[stage.job.staged].batches) < len(ROWS) + 1


def test_a_deadline_that_is_passed_publishes_nothing(stage: Stage) -> None:
    stage.world.strike("reader.batch", Delay(101.0))
    stage.fails(Failed, "deadline_passed")


def test_a_staging_that_breaks_publishes_nothing(stage: Stage) -> None:
    stage.world.strike("staging.write", Fault.ERROR, nth=2)
    stage.fails(Failed, "staging_failed")


def test_a_staging_that_cannot_be_read_back_publishes_nothing(stage: Stage) -> None:
    stage.world.strike("staging.finish", Fault.ERROR)
    stage.fails(Failed, "staging_failed")


@pytest.mark.parametrize("change", ["a row more", "another value"])
def test_what_stands_staged_must_be_what_was_read(stage: Stage, change: str) -> None:
    def spoil() -> None:
        table = stage.world.warehouse.tables[stage.job.staged]
        if change == "a row more":
            table.batches.append(table.batches[0])
        else:
            table.batches[0] = batch_of(COLUMNS, [(1, "AA", 6)])

    stage.world.strike("staging.finish", do=spoil)
    stage.fails(Failed, "staged_content_differs")


def test_what_publishing_comes_to_is_raised(stage: Stage) -> None:
    stage.world.strike("target.commit", Fault.ERROR)
    stage.fails(Failed, "not_published")


def test_a_lost_commit_is_unknown(stage: Stage) -> None:
    stage.world.strike("target.commit", Fault.ANSWER_LOST)
    with pytest.raises(DponeError) as failed:
        stage.run()
    failure_of(failed.value, Unknown, "commit_answer_lost")
    assert "published" not in [event["event"] for event in stage.channel.said]
