"""The sample on the SQL Server that ``DPONE_TEST_MSSQL_URL`` names: both releases make PostgreSQL's marts there.

What is moved is moved by the product's own readers and writers; what a deployment adds around them, logins and fences,
is the demo's to show (`tests/lab/demo/test_given_demo.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from uuid import uuid4

import psycopg
import pytest
from jinja2 import Template

from dpone_provider import lab
from dpone_provider.adapters.dbt.compiler import DbtChildCompiler
from dpone_provider.adapters.dbt.runner import DbtChildRunner
from dpone_provider.adapters.mssql.names import identifier
from dpone_provider.adapters.mssql.reader import MssqlReader
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.mssql.staging import MssqlStagingWriter
from dpone_provider.adapters.mssql.writer import MssqlTransaction, Way
from dpone_provider.adapters.postgres.reader import PostgresReader
from dpone_provider.adapters.postgres.schema_reader import PostgresSchemaReader
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.secrets.url import parse_url
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.workspace.disk import DiskWorkspace
from dpone_provider.application.ports.dbt import CompiledAs, CompiledProject, DbtFinished
from dpone_provider.application.ports.tables import Bounds, PublishJob, StagedContent, TableReader
from dpone_provider.application.ports.time import Deadline
from dpone_provider.assembly.engines import odbc_driver
from dpone_provider.columnar.content_digest import ContentDigest, ContentHasher
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import AttemptId, EngineKind, OccurrenceId, Relation, SlotId, digest_of
from dpone_provider.domain.schema.actions import CreateTable
from dpone_provider.domain.schema.tables import Column, Present, Table
from dpone_provider.domain.secret import Secret
from tests.adapters.dbt.projects import FLIGHTS
from tests.adapters.dbt.warehouse import STAGE
from tests.adapters.mssql.capabilities import Capability
from tests.adapters.mssql.given_server import drop_login, require

pytestmark = [pytest.mark.mssql, pytest.mark.lab, pytest.mark.timeout(900)]

WIDE = Bounds(max_rows=10**6, max_bytes=1 << 30, batch_rows=1000)
EXAMPLES = FLIGHTS.parents[1]
FIRST, SECOND = ("flights",), ("flights", "flights-v2")
MARTS = ("daily_carrier_delays", "fleet_usage", "flights_by_hour", "route_popularity")
SECONDS = 300.0


def deadline() -> Deadline:
    return Deadline.after(SystemClock(), SECONDS)


@dataclass(frozen=True)
class Side:
    """One engine with the sample's schemas: who builds, and a reader of its tables."""

    endpoint: Endpoint
    builder: Credential
    reader: TableReader
    overlay: Callable[[str], str | None]

    def build(self, releases: Sequence[str], where: Path) -> None:
        """Compile the releases laid over one another, and run dbt over all of it."""
        where.mkdir()
        project = where / "project"
        for name in releases:
            for layer in (name, self.overlay(name)):
                if layer is not None:
                    shutil.copytree(EXAMPLES / layer / "dbt", project, dirs_exist_ok=True)
        log: list[str] = []
        children = GuardedChildren(log.append)
        at = self.endpoint
        compiled = DbtChildCompiler(children, SystemClock()).compile(
            project, at.kind, at.database, "mart", {"all": ["path:models"]}
        )
        assert isinstance(compiled, CompiledProject), compiled
        tree = DiskWorkspace().project(project)
        bundle = where / "project.tar.gz"
        bundle.write_bytes(tree.bundle)  # type: ignore[union-attr]
        run = where / "run"
        run.mkdir(mode=0o700)
        runner = DbtChildRunner(odbc_driver=odbc_driver)
        nodes = compiled.selected["all"]
        as_compiled = CompiledAs(
            manifest_digest=digest_of(compiled.manifest),
            versions=compiled.adapter_versions,
            flags=compiled.adapter_flags,
        )
        command = runner.command(bundle, run, nodes, at, "mart", self.builder, 1, as_compiled)
        with children.start(command, deadline()) as child:
            told = list(runner.read(child.events()))
        finished = told[-1]
        assert isinstance(finished, DbtFinished), log
        assert finished.success, "\n".join(log)
        assert [node for node, _ in finished.results] == sorted(nodes)

    def select(self, releases: Sequence[str], run: Callable[[str], object]) -> None:
        """Make what the models select, without dbt: the view first, then each mart as a new table."""
        found: dict[str, str] = {}
        for name in releases:
            for layer in (name, self.overlay(name)):
                if layer is not None:
                    found |= {one.stem: one.read_text() for one in (EXAMPLES / layer / "dbt" / "models").rglob("*.sql")}
        words = {
            "config": lambda **_: "",
            "is_incremental": lambda: False,
            "ref": lambda model: f"mart.{model}",
            "source": lambda schema, table: f"{schema}.{table}",
        }
        for name, text in sorted(found.items(), key=lambda one: one[0] in MARTS):
            selected = Template(text).render(words)
            if name in MARTS:
                run(f"SELECT * INTO mart.{name} FROM ({selected}) AS made")
            else:
                run(f"CREATE VIEW mart.{name} AS {selected}")

    def digest(self, name: str, columns: Sequence[Column]) -> ContentDigest:
        """Return rows and content of a mart."""
        hasher = ContentHasher(columns)
        with self.reader.snapshot(Relation("mart", name), columns, (), WIDE) as snapshot:
            for batch in snapshot.batches():
                hasher.update(batch)
        return hasher.digest


@pytest.fixture
def postgres(fresh_database: lab.LabDatabase) -> Side:
    """Give PostgreSQL with staged flights, some cancelled, and a reader that reads only."""
    with psycopg.connect(fresh_database.admin.reveal(), autocommit=True) as connection:
        connection.execute(STAGE.read_bytes())
        for schema in ("stage", "mart"):
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO warehouse_reader")
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO warehouse_reader")
            connection.execute(
                f"ALTER DEFAULT PRIVILEGES IN SCHEMA {schema} GRANT SELECT ON TABLES TO warehouse_reader"
            )
    admin, reads = (parse_url(fresh_database.url(name).reveal()) for name in ("postgres_admin", "warehouse_reader"))
    at = Endpoint(
        kind=EngineKind.POSTGRES, host=admin.host, port=admin.port, database=admin.database, tls=TlsMode.DISABLED
    )
    return Side(at, admin.credential, PostgresReader(at, reads.credential), lambda name: None)


@contextmanager
def database(server: MssqlServer) -> Iterator[tuple[MssqlServer, Credential]]:
    """Make a database with the sample's schemas and a login that reads it; both go with the block."""
    name, reader = (f"dpone_test_{kind}_{token_hex(6)}" for kind in ("sample", "reader"))
    password = Secret(token_hex(16) + "aA1!")
    inside = MssqlServer(replace(server.endpoint, database=name), server.credential)
    with server.session("dpone test", SECONDS) as own:
        own.run(f"CREATE DATABASE {identifier(name)};")
        try:
            own.run(f"CREATE LOGIN [{reader}] WITH PASSWORD = N'{password.reveal()}', DEFAULT_DATABASE = [{name}];")
            own.run(
                f"IF EXISTS (SELECT 1 FROM sys.databases WHERE name = N'{name}' AND snapshot_isolation_state = 0)"
                f" EXEC(N'ALTER DATABASE [{name}] SET ALLOW_SNAPSHOT_ISOLATION ON;');"
            )
            with inside.session("dpone test", SECONDS) as there:
                there.run(f"CREATE USER [{reader}] FOR LOGIN [{reader}];")
                for schema in ("stage", "mart"):
                    there.run(f"EXEC(N'CREATE SCHEMA [{schema}]'); GRANT SELECT ON SCHEMA::[{schema}] TO [{reader}];")
            yield inside, Credential(reader, password)
        finally:
            own.run(f"DROP DATABASE [{name}];")
            drop_login(own, reader)


@pytest.fixture
def sql_server() -> Iterator[Side]:
    """Give the given server, with an empty database for the sample."""
    found = require(Capability.SNAPSHOTS, Capability.CATALOG)
    with database(found.server) as (inside, reader):
        reads = MssqlReader(MssqlServer(inside.endpoint, reader), seconds=SECONDS)
        yield Side(inside.endpoint, inside.credential, reads, lambda name: f"{name}-mssql")


def observed(side: Side, schema: str, name: str) -> Table:
    """Return a table of PostgreSQL, as it stands."""
    (found,) = PostgresSchemaReader(side.endpoint, side.builder).tables([Relation(schema, name)])
    assert isinstance(found, Present), found
    return found.table


def transfer(source: Side, target: Side, table: Table) -> None:
    """Bring a staged table over: read a snapshot, stage it, read it back, make the target and fill it."""
    server = MssqlServer(target.endpoint, target.builder)
    job = PublishJob(
        attempt_id=AttemptId(token_hex(32)),
        occurrence_id=OccurrenceId(str(uuid4())),
        slot_id=SlotId(token_hex(32)),
        epoch=1,
        target=table.relation,
        staged=Relation("stage", f"staged_{table.name}"),
        declared=table,
    )
    writer = MssqlStagingWriter(server, job)
    sent = ContentHasher(table.columns)
    with source.reader.snapshot(table.relation, table.columns, table.primary_key or (), WIDE) as snapshot:
        for batch in snapshot.batches():
            sent.update(batch)
            writer.write(batch)
    staged = writer.finish(deadline())
    assert isinstance(staged, StagedContent), staged
    assert staged.content_digest == str(sent.digest)
    with server.session("dpone test", SECONDS) as own:
        publication = MssqlTransaction(own, job, "no_control_database", Way.INSERT)
        publication.change(CreateTable(table))
        publication.replace_content(staged.rows)


def same_marts(postgres: Side, sql_server: Side) -> None:
    """Require the marts of both to have the same rows, to the last digit."""
    for name in MARTS:
        columns = [replace(one, nullable=True) for one in observed(postgres, "mart", name).columns]
        made = sql_server.digest(name, columns)
        assert made.rows > 0
        assert made == postgres.digest(name, columns), name


def test_the_models_select_what_they_select_on_postgresql(postgres: Side, sql_server: Side) -> None:
    for name in ("flights", "planes"):
        transfer(postgres, sql_server, observed(postgres, "stage", name))
    with psycopg.connect(
        host=postgres.endpoint.host,
        port=postgres.endpoint.port,
        dbname=postgres.endpoint.database,
        user=postgres.builder.user,
        password=postgres.builder.password.reveal(),
        autocommit=True,
    ) as connection:
        postgres.select(SECOND, lambda text: connection.execute(text.encode()))
    with MssqlServer(sql_server.endpoint, sql_server.builder).session("dpone test", SECONDS) as own:
        sql_server.select(SECOND, own.as_written)
    same_marts(postgres, sql_server)


def test_dbt_builds_both_releases_and_makes_the_marts_of_postgresql(
    postgres: Side, sql_server: Side, tmp_path: Path
) -> None:
    require(Capability.QUERY_LABELS)
    for name in ("flights", "planes"):
        transfer(postgres, sql_server, observed(postgres, "stage", name))
    # The second release runs over what the first left: the incremental model merges into its own rows.
    for number, releases in enumerate((FIRST, SECOND)):
        for side in (postgres, sql_server):
            side.build(releases, tmp_path / f"{side.endpoint.kind}-{number}")
    same_marts(postgres, sql_server)
