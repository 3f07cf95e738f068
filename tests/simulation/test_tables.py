"""The simulated reader and publishers keep their ports' contracts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from dpone_provider.application.ports.tables import (
    NotPublished,
    Published,
    PublishJob,
    StagedContent,
    TablePublisher,
    TableReader,
    TargetBinding,
)
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import (
    EngineKind,
    OccurrenceId,
    Principal,
    Relation,
    SlotId,
    digest_of,
    stage_name,
    staged_name,
)
from dpone_provider.domain.publication import Publication, PublicationState
from dpone_provider.domain.schema.tables import Storage, Table
from dpone_provider.domain.secret import Secret
from tests.conformance.ledger_world import FLIGHTS, Steps, binding_of, occurrence_of, slot_of
from tests.conformance.publisher_suite import PublisherStage, PublisherSuite, Row
from tests.conformance.reader_suite import COLUMNS, ReaderStage, ReaderSuite
from tests.simulation.deployments import STAGING
from tests.simulation.publishers import SimulatedExchangePublisher, SimulatedSqlPublisher
from tests.simulation.server import SimulatedServer, StoredLogin, StoredTable
from tests.simulation.tables import SimulatedFencedPublisher, SimulatedReader, SimulatedStagingWriter, batch_of
from tests.simulation.world import World


@dataclass(slots=True)
class Readable:
    """One server with a reader, and one that is not there."""

    world: World
    reader: TableReader = field(init=False)
    unreachable: TableReader = field(init=False)
    made: int = 0

    def __post_init__(self) -> None:
        """Find both."""
        self.reader = SimulatedReader(self.world.shop, self.world.wire)
        silent = World().shop
        silent.reachable = False
        self.unreachable = SimulatedReader(silent, self.world.wire)

    def table(self, rows: int) -> Relation:
        """Make one."""
        self.made += 1
        name = Relation("public", f"table_{self.made}")
        content = [(each, None if each % 3 == 0 else f"n{each}") for each in range(1, rows + 1)]
        batches = [batch_of(COLUMNS, content)] if rows else []
        self.world.shop.tables[name] = StoredTable(self.world.shop.new_identity(), COLUMNS, batches)
        return name

    def change(self, relation: Relation) -> None:
        """Delete one, add two."""
        table = self.world.shop.tables[relation]
        table.batches = [*(batch.slice(1) for batch in table.batches), batch_of(COLUMNS, [(-1, "x"), (-2, "y")])]


class TestSimulatedReader(ReaderSuite):
    """The suite, in memory."""

    @pytest.fixture
    def stage(self) -> ReaderStage:
        """One server."""
        return Readable(World())


@dataclass(slots=True)
class Attempted:
    """One attempt of the ledger's small world, with its login let in by hand."""

    stage_: Publishing
    attempt: Attempt
    binding: TargetBinding | None = None
    staged: StagedContent | None = None

    @property
    def credential(self) -> Credential:
        """Its login."""
        return Credential(f"dpone_v3_{self.attempt.attempt_id[:8]}", Secret("secret"))

    @property
    def job(self) -> PublishJob:
        """Its refresh."""
        slot, epoch = self.attempt.writes[0]
        clickhouse = self.stage_.server.kind is EngineKind.CLICKHOUSE
        name = staged_name(slot, self.attempt.attempt_id) if clickhouse else stage_name(slot)
        return PublishJob(
            attempt_id=self.attempt.attempt_id,
            occurrence_id=OccurrenceId(self.attempt.binding.occurrence_id),
            slot_id=SlotId(slot),
            epoch=epoch,
            target=self.stage_.target,
            staged=Relation(STAGING if clickhouse else "stage", name),
            declared=self.stage_.declared,
        )

    def bind(self) -> None:
        """Bind, create what is staged."""
        binding = self.stage_.publisher.bind(self.job)
        assert isinstance(binding, TargetBinding), binding
        self.binding = binding
        assert self.stage_.publisher.create_staged(self.job, binding) is None

    def stage(self, *rows: Row) -> None:
        """Fill."""
        world, server = self.stage_.world, self.stage_.server
        writer = SimulatedStagingWriter(server, world.wire, self.credential, self.job)
        if rows:
            writer.write(batch_of(COLUMNS, rows))
        content = writer.finish(self.stage_.soon())
        assert isinstance(content, StagedContent), content
        self.staged = content

    def dispatch(self) -> None:
        """Send."""
        assert self.staged is not None
        stage = self.stage_
        if stage.server.kind is EngineKind.CLICKHOUSE:
            assert stage.publisher.dispatch(self.job, self.publication(), stage.soon()) is None
            return
        fenced = SimulatedFencedPublisher(stage.server, stage.world.wire, stage.world.ledger, self.credential)
        assert fenced.publish(self.job, self.staged, stage.soon()) is None

    def observe(self) -> Published | NotPublished:
        """Discard, look, end."""
        stage = self.stage_
        assert stage.publisher.discard_staged(self.job) is None
        shown = stage.publisher.observe(self.job, self.publication())
        assert isinstance(shown, Published | NotPublished), shown
        closed = stage.steps.closed(stage.steps.closing(self.gate))
        gates = {gate.principal.name: gate for gate in (closed, stage.steps.bar(self.attempt))}
        stage.steps.seal(self.attempt, AttemptState.FAILED, *gates.values())
        return shown

    @property
    def gate(self) -> Gate:
        """Its gate, as it was let in."""
        login, service_id = self.credential.user, self.stage_.server.service_id
        principal = Principal(service_id=service_id, name=login, sid=login)
        return Gate(attempt_id=self.attempt.attempt_id, principal=principal, state=GateState.READY)

    def publication(self) -> Publication:
        """Return the journal's row, dispatched."""
        assert self.binding is not None
        return Publication(
            attempt_id=self.attempt.attempt_id,
            slot_id=self.job.slot_id,
            service_id=self.stage_.server.service_id,
            epoch=self.job.epoch,
            verb=self.binding.verb,
            staged_identity=self.binding.staged_identity,
            target_identity=self.binding.target_identity,
            state=PublicationState.DISPATCHED,
            definition_digest=digest_of(b"definition"),
        )


@dataclass(slots=True)
class Publishing:
    """One target on one server, and a ledger in which its slot is owned."""

    world: World
    server: SimulatedServer
    publisher: TablePublisher
    target: Relation = FLIGHTS
    runs: int = 0
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        """Promote the small world's deployment."""
        self.steps = Steps(self.world.ledger)
        self.steps.promote(occurrence_of("first"))

    @property
    def declared(self) -> Table:
        """The target's definition."""
        storage = Storage(engine="MergeTree", order_by=("id",), partition_by=None)
        clickhouse = self.server.kind is EngineKind.CLICKHOUSE
        return Table(schema="stage", name="flights", columns=COLUMNS, storage=storage if clickhouse else None)

    def soon(self) -> Deadline:
        """Some seconds from now."""
        return Deadline.after(self.world.clock, 10.0)

    def attempt(self) -> Attempted:
        """Admit the next, and let its login in."""
        self.runs += 1
        attempt = self.steps.admit(binding_of(occurrence_of("first"), run=f"run {self.runs}"))
        made = Attempted(self, attempt)
        self.world.ledger.rows.gates[attempt.attempt_id, self.server.service_id] = made.gate
        login = made.credential.user
        self.server.logins[login] = StoredLogin(login, "secret", True, login, ())
        return made

    def rows(self) -> list[Row]:
        """Read the target, by id."""
        table = self.server.tables.get(self.target)
        found = [row for batch in table.batches for row in batch.to_pylist()] if table else []
        return sorted((row["id"], row["name"]) for row in found)

    def target_identity(self) -> str:
        """Tell the object."""
        return self.server.tables[self.target].identity

    def staged_names(self) -> list[str]:
        """List what stands staged."""
        prefix = f"dpone_{slot_of(self.target)[:16]}"
        return [name.name for name in self.server.tables if name.name.startswith(prefix)]


class TestSimulatedPublisher(PublisherSuite):
    """Both ways."""

    @pytest.fixture(params=["warehouse", "analytics"], ids=["sql", "clickhouse"])
    def stage(self, request: pytest.FixtureRequest) -> PublisherStage:
        """One target."""
        world = World()
        server = world.servers[request.param]
        made = SimulatedSqlPublisher if request.param == "warehouse" else SimulatedExchangePublisher
        return Publishing(world, server, made(server, world.wire))
