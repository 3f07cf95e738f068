"""A whole world: three services, a ledger, machines with caches, Airflow, and the application's use cases over them.

``shop`` is a source. ``warehouse`` is an SQL engine on the ledger's own instance, ``analytics`` a ClickHouse. Unless a
test says otherwise there are two transfers into the warehouse, a dbt workload in it, and a transfer from it to
analytics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from uuid import NAMESPACE_DNS, UUID, uuid5

import pyarrow as pa

from dpone_provider.application.activation import CompositionActivationCoordinator
from dpone_provider.application.admission import Admitter
from dpone_provider.application.attempt import AttemptReport, AttemptRunner, Workload
from dpone_provider.application.drain import Drain
from dpone_provider.application.front_door import FrontDoor, OutcomeObserver
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.credentials import ResolvedReference
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.tables import TablePublisher
from dpone_provider.application.promotion import Promotion, PromotionOrder, PromotionReport
from dpone_provider.application.recovery import Recovery
from dpone_provider.application.times import AttemptTimes
from dpone_provider.assembly.workloads import WorkloadMaker
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    EngineKind,
    OccurrenceId,
    Relation,
    Service,
    ServiceId,
)
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Failure, Refused, refuse
from dpone_provider.domain.publication import Publication
from dpone_provider.domain.secret import Secret
from dpone_provider.domain.slot import Slot
from tests.simulation.actors import Actors
from tests.simulation.airflow import SimulatedAirflow
from tests.simulation.cache import SimulatedCache
from tests.simulation.catalog import SimulatedCatalog
from tests.simulation.children import SimulatedChild, SimulatedChildren, WorkerProgram
from tests.simulation.clock import SeededEntropy, SimulatedClock
from tests.simulation.dbt import DBT, DbtProgram, SimulatedDbt
from tests.simulation.deployments import COLUMNS, DbtWork, Transfer, Work, build
from tests.simulation.gate import SimulatedGate
from tests.simulation.ledger import SimulatedLedger
from tests.simulation.publishers import SimulatedExchangePublisher, SimulatedSqlPublisher
from tests.simulation.server import Enrolled, SimulatedServer, StoredTable
from tests.simulation.tables import SimulatedReader, batch_of
from tests.simulation.wire import AtStep, Delay, Fault, Nth, Wire
from tests.simulation.witness import SimulatedWitness

ENVIRONMENT = "synthetic"
SOURCE_FLIGHTS, SOURCE_PLANES = Relation("public", "flights"), Relation("public", "planes")
STAGE_FLIGHTS, STAGE_PLANES = Relation("stage", "flights"), Relation("stage", "planes")
MART_DAILY, MART_LOG = Relation("mart", "daily"), Relation("mart", "log")
SERVING_DAILY = Relation("serving", "daily")

FLIGHTS = Transfer(id="ordinary.flights", source=("shop", SOURCE_FLIGHTS), target=("warehouse", STAGE_FLIGHTS))
PLANES = Transfer(id="ordinary.planes", source=("shop", SOURCE_PLANES), target=("warehouse", STAGE_PLANES))
MARTS = DbtWork(
    id="native.flights.marts",
    models={"model.flights.daily": (MART_DAILY, True), "model.flights.log": (MART_LOG, False)},
    tests=("test.flights.daily",),
    reads=(STAGE_FLIGHTS,),
)
DAILY = Transfer(
    id="generated.flights.marts.daily",
    source=("warehouse", MART_DAILY),
    target=("analytics", SERVING_DAILY),
    generated_by=MARTS.id,
)
PRIVATE = Path("/tmp/attempt")
WORKS: tuple[Work, ...] = (FLIGHTS, PLANES, MARTS, DAILY)
ROWS = ((1, "AA", 5), (2, "UA", None), (3, "DL", -2))


_BUILT: dict[str, Parent] = {}
"""Deployments never change: those that were built once are used again."""


@lru_cache(maxsize=16)
def service(kind: EngineKind, name: str) -> Service:
    """Return the service that stands for ``name``."""
    return Service(kind, ServiceId(str(uuid5(NAMESPACE_DNS, name))))


@lru_cache(maxsize=1)
def _seed() -> pa.RecordBatch:
    return batch_of(COLUMNS, ROWS)


def seeded_servers(ledger: SimulatedLedger) -> dict[str, SimulatedServer]:
    """Return the three servers by alias, with rows in the source."""
    shop = SimulatedServer(
        service=service(EngineKind.POSTGRES, "shop"), database="shop", facts=(("oid", "1"), ("system", "1"))
    )
    for relation in (SOURCE_FLIGHTS, SOURCE_PLANES):
        shop.tables[relation] = StoredTable(shop.new_identity(), COLUMNS, [_seed()])
    warehouse = SimulatedServer(
        service=service(EngineKind.POSTGRES, "warehouse"),
        database="warehouse",
        facts=(("oid", "2"), ("system", "2")),
        enrolled=Enrolled(managed_schemas=("mart", "stage"), gate_digest="sha256:gate"),
        ledger=ledger,
    )
    analytics = SimulatedServer(
        service=service(EngineKind.CLICKHOUSE, "analytics"),
        database="serving",
        facts=(("database_uuid", "3"), ("server_uuid", "3")),
        enrolled=Enrolled(managed_schemas=("serving",)),
    )
    return {"shop": shop, "warehouse": warehouse, "analytics": analytics}


@dataclass(slots=True)
class World:
    """Everything, with the use cases wired as the product wires them."""

    actors: Actors = field(default_factory=Actors)
    grace: float = 1.0
    times: AttemptTimes = field(default_factory=AttemptTimes)
    pool: tuple[str, ...] = ()
    wire: Wire = field(init=False)
    clock: SimulatedClock = field(init=False)
    entropy: SeededEntropy = field(init=False)
    ledger: SimulatedLedger = field(init=False)
    servers: dict[str, SimulatedServer] = field(init=False)
    gates: dict[ServiceId, LoginGate] = field(init=False)
    cache: SimulatedCache = field(init=False)
    """This machine's."""
    caches: list[SimulatedCache] = field(default_factory=list)
    """Every machine's, this one's first."""
    airflow: SimulatedAirflow = field(init=False)
    dbt: SimulatedDbt = field(init=False)
    dbt_program: DbtProgram = field(init=False)
    worker_program: WorkerProgram = field(init=False)
    children: SimulatedChildren = field(init=False)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the world."""
        self.wire = Wire(self.actors)
        self.clock = SimulatedClock(self.actors)
        self.entropy = SeededEntropy()
        self.ledger = SimulatedLedger(self.wire)
        self.servers = seeded_servers(self.ledger)
        self.ledger.says.mark = lambda: 0 if self.warehouse.enrolled is None else self.warehouse.enrolled.mark
        self.gates = {
            server.service_id: SimulatedGate(
                server, self.wire, self.entropy, self.pool if server.kind is EngineKind.CLICKHOUSE else ()
            )
            for server in self.servers.values()
            if server.enrolled is not None
        }
        self.cache = self.another_cache()
        self.airflow = SimulatedAirflow(self.wire)
        self.dbt = SimulatedDbt()
        self.dbt_program = DbtProgram(self.wire, self.dbt, self.server_at, columns=COLUMNS, rows=ROWS)
        self.dbt_program.builds = {node: relation for node, (relation, _) in MARTS.models.items()}
        self.worker_program = WorkerProgram(self.wire, self.clock, self.ledger, self.server_at)
        self.children = SimulatedChildren(self.actors, self.wire, self._program)

    # who is where

    @property
    def warehouse(self) -> SimulatedServer:
        """The SQL target."""
        return self.servers["warehouse"]

    @property
    def analytics(self) -> SimulatedServer:
        """The ClickHouse target."""
        return self.servers["analytics"]

    @property
    def shop(self) -> SimulatedServer:
        """The source."""
        return self.servers["shop"]

    def server_at(self, endpoint: Endpoint) -> SimulatedServer:
        """Return the server of an endpoint."""
        return self.servers[endpoint.host.removesuffix(".test")]

    def server_of(self, connection: Connection) -> SimulatedServer:
        """Return the server of a registry entry."""
        return self.server_at(connection.address)

    # ports that are made

    def catalog(self, connection: Connection) -> SimulatedCatalog:
        """Return the catalog of a connection."""
        return SimulatedCatalog(self.server_of(connection), self.wire)

    def witness(self, connection: Connection) -> SimulatedWitness:
        """Return the witness of a connection's database."""
        return SimulatedWitness(self.server_of(connection), self.wire)

    def gate(self, connection: Connection) -> LoginGate:
        """Return the gate of a connection's service."""
        return self.gates[connection.service.service_id]

    def publisher(self, connection: Connection) -> TablePublisher:
        """Return the publisher into a connection's database."""
        server = self.server_of(connection)
        clickhouse = server.kind is EngineKind.CLICKHOUSE
        made = SimulatedExchangePublisher if clickhouse else SimulatedSqlPublisher
        return made(server, self.wire)

    def reader(self, connection: Connection) -> SimulatedReader:
        """Return a reader of a connection's database."""
        return SimulatedReader(self.server_of(connection), self.wire)

    def resolve(self, reference: str) -> ResolvedReference | Refused:
        """Resolve ``env:ALIAS`` and ``env:ALIAS_READER``."""
        alias = reference.removeprefix("env:").removesuffix("_READER").lower()
        server = self.servers.get(alias)
        if server is None:
            return refuse("no_such_reference", reference, found="nothing", allowed="a reference", next_command="none")
        return ResolvedReference(
            kind=server.kind,
            host=f"{alias}.test",
            port=1,
            database=server.database,
            credential=Credential("reader", Secret("CANARYreader")),
        )

    # use cases

    @property
    def front_door(self) -> FrontDoor:
        """The front door."""
        return FrontDoor(ledger=self.ledger, gates=self.gates, clock=self.clock, grace=self.grace)

    @property
    def drain(self) -> Drain:
        """The drain."""
        return Drain(
            ledger=self.ledger,
            front_door=self.front_door,
            observer_of=self.observer_of,
            task_instances=self.airflow,
            clock=self.clock,
            closing=self.times.closing,
        )

    @property
    def recovery(self) -> Recovery:
        """The recovery."""
        return Recovery(
            ledger=self.ledger,
            front_door=self.front_door,
            observer_of=self.observer_of,
            task_instances=self.airflow,
            clock=self.clock,
            closing=self.times.closing,
        )

    @property
    def runner(self) -> AttemptRunner:
        """The runner of attempts."""
        return AttemptRunner(
            ledger=self.ledger,
            gates=self.gates,
            front_door=self.front_door,
            observer_of=self.observer_of,
            task_instances=self.airflow,
            clock=self.clock,
            times=self.times,
        )

    @property
    def coordinator(self) -> CompositionActivationCoordinator:
        """The coordinator."""
        return CompositionActivationCoordinator(
            ledger=self.ledger, services=self, drain=self.drain, clock=self.clock, entropy=self.entropy
        )

    @property
    def admitter(self) -> Admitter:
        """Physical admission."""
        return Admitter(ledger=self.ledger, services=self)

    def workload(self, parent: Parent, workload_id: str) -> Workload:
        """Return a workload, made as the product makes it."""
        maker = WorkloadMaker(
            ledger=self.ledger,
            services=self,
            credentials=self,
            children=self.children,
            dbt=self.dbt,
            seconds=self.times.execution,
            child_user=None,
            told=self.told.append,
        )
        return maker.make(parent, workload_id, PRIVATE)

    def observer_of(self, attempt: Attempt) -> OutcomeObserver:
        """Return who decides an attempt, from its own deployment in the cache."""
        occurrence = self.ledger.rows.occurrences[attempt.binding.occurrence_id]
        parent = self.cache.held[occurrence.environment, occurrence.deployment_id]
        return self.workload(parent, attempt.binding.workload_id).observer(attempt, None)

    # what happens

    def another_cache(self) -> SimulatedCache:
        """Return the empty cache of another machine."""
        self.caches.append(SimulatedCache(self.wire))
        return self.caches[-1]

    def parent(self, works: Sequence[Work] = WORKS, *, environment: str = ENVIRONMENT, name: str = "flights") -> Parent:
        """Build a deployment and lay it on disk."""
        pinned = [(alias, server.facts, server.enrolled) for alias, server in self.servers.items()]
        key = repr((works, environment, name, pinned))
        if key not in _BUILT:
            _BUILT[key] = build(works, self.servers, environment=environment, name=name)
        self.cache.lay(_BUILT[key])
        return _BUILT[key]

    def order(self, parent: Parent, **changes: object) -> PromotionOrder:
        """Return the order to promote a deployment."""
        values: dict[str, object] = {
            "source": self.cache.lay(parent),
            "deployment_id": parent.deployment_id,
            "environment": parent.environment,
            "expect_current": None,
            "drain_timeout": 60.0,
            "promoted_by": None,
        }
        return PromotionOrder(**(values | changes))  # type: ignore[arg-type]

    def promotion(self, cache: SimulatedCache | None = None) -> Promotion:
        """Return the promotion into a machine's cache."""
        return Promotion(
            cache=cache or self.cache,
            admitter=self.admitter,
            coordinator=self.coordinator,
            clock=self.clock,
            ledger_login="dpone_controller",
        )

    def promote(
        self, parent: Parent, *, cache: SimulatedCache | None = None, actor: str = "promoter", **changes: object
    ) -> PromotionReport | Failure:
        """Run one promotion as ``actor``."""
        if cache is not None:
            cache.lay(parent)
        with self.actors.acting(actor):
            return self.promotion(cache).run(self.order(parent, **changes), self.told.append)

    def active(self, parent: Parent | None = None) -> Occurrence:
        """Promote a deployment (everything, if none is given) and return its ACTIVE occurrence."""
        report = self.promote(parent or self.parent())
        assert isinstance(report, PromotionReport), report
        found = self.ledger.rows.occurrences[OccurrenceId(str(report.occurrence_id))]
        assert found.state is OccurrenceState.ACTIVE
        return found

    def binding(
        self,
        occurrence: Occurrence,
        work: Work = FLIGHTS,
        *,
        run: str = "run 1",
        try_number: int = 1,
        instance: str = "",
    ) -> AttemptBinding:
        """Return the binding of one try; its task instance is alive."""
        parent = self.cache.held[occurrence.environment, occurrence.deployment_id]
        key = f"{work.id} {run} {try_number} {instance}"
        tried = AirflowTry(
            dag_id=f"flights.{work.id}",
            run_id=run,
            task_id=work.id,
            map_index=-1,
            try_number=try_number,
            task_instance_id=UUID(str(uuid5(NAMESPACE_DNS, key))),
        )
        return AttemptBinding(
            occurrence_id=occurrence.occurrence_id,
            constituent=parent.constituent_of(work.id),
            workload_id=work.id,
            pack_digest=parent.packs[work.id].digest,
            plan_digest=parent.task_of(work.id).plan_digest,
            airflow=self.airflow.begin(tried),
        )

    def run(self, binding: AttemptBinding, *, actor: str = "controller") -> AttemptReport | Failure:
        """Run one attempt as ``actor``, from its occurrence's deployment."""
        occurrence = self.ledger.rows.occurrences[binding.occurrence_id]
        parent = self.cache.held[occurrence.environment, occurrence.deployment_id]
        with self.actors.acting(actor):
            workload = self.workload(parent, binding.workload_id)
            return self.runner.run(occurrence.environment, binding, workload)

    def strike(
        self,
        call: str,
        fault: Fault | Delay | None = None,
        *,
        do: Callable[[], object] | None = None,
        nth: int | None = 1,
        actor: str | None = None,
    ) -> Nth:
        """Strike the nth call of that name."""
        hook = Nth(call, fault, do, nth, actor)
        self.wire.hooks.append(hook)
        return hook

    def strike_step(
        self, number: int, actor: str, fault: Fault | Delay | None = None, do: Callable[[], object] | None = None
    ) -> AtStep:
        """Strike the number-th call of an actor."""
        hook = AtStep(number, actor, fault, do)
        self.wire.hooks.append(hook)
        return hook

    # what stands

    def attempt(self, binding: AttemptBinding) -> Attempt:
        """Return an attempt's row."""
        return self.ledger.rows.attempts[binding.attempt_id]

    def state(self, binding: AttemptBinding) -> AttemptState:
        """Return an attempt's state."""
        return self.attempt(binding).state

    def gate_of(self, binding: AttemptBinding) -> Gate:
        """Return an attempt's one gate."""
        (found,) = [gate for gate in self.ledger.rows.gates.values() if gate.attempt_id == binding.attempt_id]
        return found

    def publication(self, binding: AttemptBinding) -> Publication | None:
        """Return an attempt's publication."""
        return self.ledger.rows.publications.get(binding.attempt_id)

    def slot(self, relation: Relation) -> Slot:
        """Return a slot by its class."""
        return next(slot for slot in self.ledger.rows.slots.values() if slot.relation == relation)

    def rows_at(self, server: SimulatedServer, relation: Relation) -> list[dict[str, object]]:
        """Return the rows that stand at a relation."""
        return [row for batch in server.tables[relation].batches for row in batch.to_pylist()]

    def _program(self, child: SimulatedChild) -> int:
        return self.dbt_program(child) if child.command.argv[0] == DBT else self.worker_program(child)
