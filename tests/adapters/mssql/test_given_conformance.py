"""Gate, catalog and publisher on the given server, with `sql/mssql` installed: each keeps its port's contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from secrets import token_hex

import pytest

from dpone_provider.adapters.mssql.catalog import MssqlCatalog
from dpone_provider.adapters.mssql.gate import MssqlGate
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.mssql.writer import Way
from dpone_provider.application.ports.tables import NotPublished, Published, StagedContent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptId, Principal, Relation, stage_name
from dpone_provider.domain.schema.tables import Table
from tests.adapters.mssql.given_refresh import Refresh, batch, table
from tests.adapters.mssql.given_world import GivenWorld, deadline
from tests.adapters.mssql.installed import SCHEMA
from tests.conformance.catalog_suite import CatalogSuite
from tests.conformance.gate_suite import GateSuite
from tests.conformance.ledger_world import FLIGHTS, slot_of
from tests.conformance.publisher_suite import PublisherSuite, Row

pytestmark = pytest.mark.mssql


@dataclass(frozen=True, slots=True)
class GateStage:
    """The gate's stage: every row of the ledger is written by the protocol's own transactions."""

    world: GivenWorld

    @property
    def gate(self) -> MssqlGate:
        """The gate of the instance."""
        return self.world.gate

    def attempt(self) -> AttemptId:
        """Admit one."""
        return self.world.attempt().attempt_id

    def journaled(self, attempt_id: AttemptId) -> Principal:
        """Journal its login."""
        return self.world.journaled(attempt_id)

    def issued(self, principal: Principal) -> Credential:
        """Create it with READY."""
        return self.world.issued(principal)

    def say(self, principal: Principal, state: GateState) -> None:
        """Commit it."""
        self.world.say(principal, state)

    @contextmanager
    def log_in(self, credential: Credential) -> Iterator[None]:
        """Hold a session."""
        with self.world.log_in(credential):
            yield

    def deadline(self) -> Deadline:
        """Return one of some seconds."""
        return deadline()


class TestGivenGate(GateSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self, world: GivenWorld) -> GateStage:
        """Give the instance's gate."""
        return GateStage(world)


@dataclass(frozen=True, slots=True)
class CatalogStage:
    """The catalog's stage: what stands in the target was made as the schema's owner."""

    world: GivenWorld

    @property
    def catalog(self) -> MssqlCatalog:
        """The target's catalog, through the controller."""
        instance = self.world.instance
        return MssqlCatalog(instance.target, control_database=instance.values["control_database"])

    @property
    def unreachable(self) -> MssqlCatalog:
        """The same at a port where nobody listens."""
        at = self.world.instance.target
        nowhere = MssqlServer(replace(at.endpoint, port=1), at.credential)
        return MssqlCatalog(nowhere, control_database=self.catalog.control_database)

    def relation(self) -> Relation:
        """Return a new name."""
        return Relation(SCHEMA, f"t_{token_hex(6)}")

    def make_table(self, relation: Relation) -> None:
        """Make a table that belongs to its schema's owner."""
        self.world.in_target(f"CREATE TABLE [{relation.schema}].[{relation.name}] (id bigint NULL);")

    def make_view(self, relation: Relation, over: Relation) -> None:
        """Make a view over it."""
        self.world.in_target(
            f"CREATE VIEW [{relation.schema}].[{relation.name}] AS SELECT id FROM [{over.schema}].[{over.name}];"
        )

    def deadline(self) -> Deadline:
        """Return one of some seconds."""
        return deadline()


class TestGivenCatalog(CatalogSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self, installed_world: GivenWorld) -> CatalogStage:
        """Give the target."""
        return CatalogStage(installed_world)


@dataclass(slots=True)
class OneAttempt:
    """One attempt at refreshing the target, with its login."""

    refresh: Refresh
    staged: StagedContent | None = None

    def bind(self) -> None:
        """Bind."""
        self.refresh.bound()

    def stage(self, *rows: Row) -> None:
        """Fill the staging table."""
        self.staged = self.refresh.staged(batch(self.refresh.declared, *rows))

    def dispatch(self) -> None:
        """Publish."""
        assert self.staged is not None
        outcome = self.refresh.published(self.staged)
        assert outcome is None, outcome

    def observe(self) -> Published | NotPublished:
        """Close the gate, drop what is staged, read the receipt, and let the attempt end."""
        shown = self.refresh.ended()
        assert isinstance(shown, Published | NotPublished), shown
        return shown


@dataclass(slots=True)
class PublisherStage:
    """The publisher's stage: one target, each attempt with an issued login of its own."""

    world: GivenWorld
    way: Way
    target: Table = field(default_factory=table)

    def attempt(self) -> OneAttempt:
        """Admit the next."""
        return OneAttempt(Refresh.of(self.world, self.target, self.way))

    def rows(self) -> list[Row]:
        """Return what stands there."""
        found = self.world.in_target(f"SELECT id, name FROM [{SCHEMA}].[{self.target.name}] ORDER BY id;")
        return [(int(str(key)), None if name is None else str(name)) for key, name in found]

    def target_identity(self) -> str:
        """Return its object id."""
        ((found,),) = self.world.in_target(f"SELECT OBJECT_ID(N'[{SCHEMA}].[{self.target.name}]');")
        return str(found)

    def staged_names(self) -> list[str]:
        """Return the slot's staging table if it stands."""
        name = stage_name(slot_of(FLIGHTS))
        rows = self.world.in_target(f"SELECT name FROM sys.tables WHERE name = N'{name}';")
        return [str(found) for (found,) in rows]


class TestGivenPublisher(PublisherSuite):
    """The port's own suite, each of the two ways."""

    @pytest.fixture(params=[Way.INSERT, Way.SWITCH])
    def stage(self, world: GivenWorld, request: pytest.FixtureRequest) -> PublisherStage:
        """Give a target."""
        return PublisherStage(world, request.param)
