"""The simulated catalog keeps the port's contract."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from dpone_provider.application.ports.catalog import ObjectKind, PhysicalCatalog
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Relation
from tests.conformance.catalog_suite import CatalogStage, CatalogSuite
from tests.simulation.catalog import SimulatedCatalog
from tests.simulation.deployments import COLUMNS
from tests.simulation.server import SimulatedServer, StoredTable
from tests.simulation.world import World


@dataclass(slots=True)
class Stage:
    """One server of a world, and the same server in a world where it is not reachable."""

    world: World
    alias: str
    schema: str
    catalog: PhysicalCatalog = field(init=False)
    unreachable: PhysicalCatalog = field(init=False)
    server: SimulatedServer = field(init=False)
    made: int = 0

    def __post_init__(self) -> None:
        """Find both."""
        self.server = self.world.servers[self.alias]
        self.catalog = SimulatedCatalog(self.server, self.world.wire)
        silent = World().servers[self.alias]
        silent.reachable = False
        self.unreachable = SimulatedCatalog(silent, self.world.wire)

    def relation(self) -> Relation:
        """Return a new name."""
        self.made += 1
        return Relation(self.schema, f"relation_{self.made}")

    def make_table(self, relation: Relation) -> None:
        """Create a table of ours."""
        self.server.tables[relation] = StoredTable(self.server.new_identity(), COLUMNS)

    def make_view(self, relation: Relation, over: Relation) -> None:
        """Create a view."""
        identity = self.server.new_identity()
        self.server.tables[relation] = StoredTable(identity, kind=ObjectKind.VIEW, over=over)

    def deadline(self) -> Deadline:
        """Some seconds from now."""
        return Deadline.after(self.world.clock, 10.0)


class TestSimulatedCatalog(CatalogSuite):
    """Both engines."""

    @pytest.fixture(params=[("warehouse", "stage"), ("analytics", "serving")], ids=["sql", "clickhouse"])
    def stage(self, request: pytest.FixtureRequest) -> CatalogStage:
        """One server."""
        alias, schema = request.param
        return Stage(World(), alias, schema)
