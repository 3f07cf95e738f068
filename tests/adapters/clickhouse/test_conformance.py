"""The ports' suites on the lab's ClickHouse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from dpone_provider import lab
from dpone_provider.adapters.clickhouse.catalog import ClickHouseCatalog
from dpone_provider.adapters.clickhouse.reader import ClickHouseReader
from dpone_provider.application.ports.tables import NotPublished, Published, StagedContent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Relation
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, enrolled_lab, table, with_port
from tests.conformance.catalog_suite import CatalogSuite
from tests.conformance.publisher_suite import PublisherSuite, Row
from tests.conformance.reader_suite import COLUMNS, ReaderSuite

pytestmark = pytest.mark.lab


def batch(*rows: Row) -> pa.RecordBatch:
    """Build rows of the suites' table."""
    ids, names = [row[0] for row in rows], [row[1] for row in rows]
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "name": pa.array(names, pa.string())})


@dataclass(slots=True)
class OneAttempt:
    refresh: Refresh
    content: StagedContent | None = None

    def bind(self) -> None:
        self.refresh.begin()

    def stage(self, *rows: Row) -> None:
        self.content = self.refresh.load([batch(*rows)])

    def dispatch(self) -> None:
        assert self.content is not None
        publication = self.refresh.verified(self.content)
        deadline = self.refresh.enrolled.deadline()
        assert self.refresh.publisher.dispatch(self.refresh.job, publication, deadline) is None

    def observe(self) -> Published | NotPublished:
        shown = self.refresh.settle()
        assert isinstance(shown, Published | NotPublished)
        return shown


@dataclass(slots=True)
class OneTarget:
    enrolled: Enrolled
    name: str

    def attempt(self) -> OneAttempt:
        return OneAttempt(Refresh.of(self.enrolled, table(self.name)))

    def rows(self) -> list[Row]:
        return [
            (row[0], row[1]) for row in self.enrolled.ask(f"SELECT id, name FROM mart.{self.name} ORDER BY id, name")
        ]

    def target_identity(self) -> str:
        ((uuid,),) = self.enrolled.ask(f"SELECT toString(uuid) FROM system.tables WHERE name = '{self.name}'")
        return str(uuid)

    def staged_names(self) -> list[str]:
        prefix = Refresh.of(self.enrolled, table(self.name)).job.staged.name[:22]
        found = self.enrolled.ask(f"SELECT name FROM system.tables WHERE startsWith(name, '{prefix}')")
        return [row[0] for row in found]


class TestPublisher(PublisherSuite):
    @pytest.fixture
    def stage(self, enrolled: Enrolled) -> OneTarget:
        return OneTarget(enrolled, enrolled.name())


@dataclass(slots=True)
class Tables:
    enrolled: Enrolled
    reader: ClickHouseReader
    unreachable: ClickHouseReader

    def table(self, rows: int) -> Relation:
        declared = table(self.enrolled.name(), *COLUMNS)
        content = [batch(*((each, None if each % 3 == 0 else f"n{each}") for each in range(1, rows + 1)))]
        assert isinstance(Refresh.of(self.enrolled, declared).whole(content), Published)
        return declared.relation

    def change(self, relation: Relation) -> None:
        self.enrolled.run(f"ALTER TABLE mart.{relation.name} DELETE WHERE id = 1 SETTINGS mutations_sync = 1")
        self.enrolled.run(f"INSERT INTO mart.{relation.name} VALUES (100001, 'x'), (100002, 'y')")


class TestReader(ReaderSuite):
    @pytest.fixture
    def stage(self, enrolled: Enrolled, unused_port: int) -> Tables:
        away = ClickHouseReader(with_port(enrolled.reader, unused_port))
        return Tables(enrolled, ClickHouseReader(enrolled.reader), away)


@dataclass(slots=True)
class Mart:
    enrolled: Enrolled
    catalog: ClickHouseCatalog
    unreachable: ClickHouseCatalog
    names: list[str] = field(default_factory=list)

    def relation(self) -> Relation:
        return Relation("mart", self.enrolled.name())

    def make_table(self, relation: Relation) -> None:
        assert isinstance(Refresh.of(self.enrolled, table(relation.name)).whole([]), Published)

    def make_view(self, relation: Relation, over: Relation) -> None:
        self.enrolled.run(f"CREATE VIEW mart.{relation.name} AS SELECT id FROM mart.{over.name}")

    def deadline(self) -> Deadline:
        return self.enrolled.deadline()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enrolled]:
    """Hold a server whose mark nobody has raised."""
    with lab.clickhouse_only(tmp_path_factory.mktemp("fresh")) as state:
        yield enrolled_lab(state)


class TestCatalog(CatalogSuite):
    @pytest.fixture
    def stage(self, fresh: Enrolled, unused_port: int) -> Mart:
        endpoint = replace(fresh.controller.endpoint, port=unused_port)
        away = ClickHouseCatalog(replace(fresh.controller, endpoint=endpoint))
        return Mart(fresh, ClickHouseCatalog(fresh.controller), away)
