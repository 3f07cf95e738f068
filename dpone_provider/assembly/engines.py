"""What each engine gives, in one table: every hand on a database, by the kind of its engine.

An engine's adapter, and with it its driver, is imported when something of it is made, and not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from dpone_provider.application.ports.catalog import PhysicalCatalog
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.tables import (
    FencedPublisher,
    SchemaReader,
    StagingWriter,
    TablePublisher,
    TableReader,
)
from dpone_provider.application.ports.time import Entropy
from dpone_provider.application.ports.witness import TargetWitness
from dpone_provider.assembly.settings import CONTROL_SCHEMA
from dpone_provider.assembly.worker_job import Login, WorkerJob
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.connection import Endpoint
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import refuse, unwind

if TYPE_CHECKING:
    from dpone_provider.adapters.clickhouse.gate import GateOption
    from dpone_provider.adapters.clickhouse.session import ClickHouseServer
    from dpone_provider.adapters.mssql.session import MssqlServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlNames:
    """Where the ledger is, as far as a target's adapter needs to know: a schema of the same database on PostgreSQL, a
    database of the same instance on SQL Server."""

    schema: str = CONTROL_SCHEMA
    database: str = CONTROL_SCHEMA


def control_names(authority: Endpoint, control_schema: str) -> ControlNames:
    """Return the names for an authority at an endpoint: on SQL Server its database is the control database."""
    if authority.kind is EngineKind.MSSQL:
        return ControlNames(schema=control_schema, database=authority.database)
    return ControlNames(schema=control_schema)


class Engine(Protocol):
    """The makers of one engine. Total, but for a driver that is not installed (Refused, raised as DponeError)."""

    def catalog(self, login: Login, control: ControlNames, reader: str | None = None) -> PhysicalCatalog:
        """Return the catalog of the login's database; ``reader`` is the user that the binding reads it with, if any."""

    def witness(self, login: Login) -> TargetWitness:
        """Return what asks the login's database which authority it obeys."""

    def gate(self, login: Login, connection: Connection, control: ControlNames, entropy: Entropy) -> LoginGate:
        """Return the hand on the logins of the connection's service."""

    def publisher(self, login: Login) -> TablePublisher:
        """Return the controller's publisher into the login's database."""

    def schema_reader(self, login: Login) -> SchemaReader:
        """Return a reader of definitions."""

    def reader(self, login: Login, pinned: Mapping[str, str]) -> TableReader:
        """Return a reader of tables; ``pinned`` are the facts of the life that may be read."""

    def staging(self, job: WorkerJob) -> StagingWriter:
        """Return the worker's hand on the staged table."""

    def fenced(self, job: WorkerJob) -> FencedPublisher | None:
        """Return the worker's one transaction, None where the controller dispatches."""


class _Postgres:
    def catalog(self, login: Login, control: ControlNames, reader: str | None = None) -> PhysicalCatalog:
        from dpone_provider.adapters.postgres.catalog import PostgresCatalog

        return PostgresCatalog(login.endpoint, login.credential, control.schema, reader)

    def witness(self, login: Login) -> TargetWitness:
        from dpone_provider.adapters.postgres.witness import PostgresWitness

        return PostgresWitness(login.endpoint, login.credential)

    def gate(self, login: Login, connection: Connection, control: ControlNames, entropy: Entropy) -> LoginGate:
        from dpone_provider.adapters.postgres.gate import PostgresGate

        return PostgresGate(
            endpoint=login.endpoint,
            credential=login.credential,
            service_id=connection.service.service_id,
            control_schema=control.schema,
            entropy=entropy,
        )

    def publisher(self, login: Login) -> TablePublisher:
        from dpone_provider.adapters.postgres.publisher import PostgresPublisher

        return PostgresPublisher(login.endpoint, login.credential)

    def schema_reader(self, login: Login) -> SchemaReader:
        from dpone_provider.adapters.postgres.schema_reader import PostgresSchemaReader

        return PostgresSchemaReader(login.endpoint, login.credential)

    def reader(self, login: Login, pinned: Mapping[str, str]) -> TableReader:
        from dpone_provider.adapters.postgres.reader import PostgresReader

        return PostgresReader(login.endpoint, login.credential, pinned=pinned)

    def staging(self, job: WorkerJob) -> StagingWriter:
        from dpone_provider.adapters.postgres.writer import PostgresStagingWriter

        return PostgresStagingWriter(job.target.endpoint, job.target.credential, job.job, key=job.pack.key)

    def fenced(self, job: WorkerJob) -> FencedPublisher:
        from dpone_provider.adapters.postgres.writer import PostgresFencedPublisher

        return PostgresFencedPublisher(job.target.endpoint, job.target.credential, job.binding)


class _Mssql:
    def catalog(self, login: Login, control: ControlNames, reader: str | None = None) -> PhysicalCatalog:
        from dpone_provider.adapters.mssql.catalog import MssqlCatalog

        return MssqlCatalog(_mssql(login), control.database, reader)

    def witness(self, login: Login) -> TargetWitness:
        from dpone_provider.adapters.mssql.witness import MssqlWitness

        return MssqlWitness(_mssql(login))

    def gate(self, login: Login, connection: Connection, control: ControlNames, entropy: Entropy) -> LoginGate:
        from dpone_provider.adapters.mssql.gate import MssqlGate

        beside = replace(login, endpoint=replace(login.endpoint, database=control.database))
        return MssqlGate(
            server=_mssql(beside),
            target=login.endpoint.database,
            service_id=connection.service.service_id,
            entropy=entropy,
        )

    def publisher(self, login: Login) -> TablePublisher:
        from dpone_provider.adapters.mssql.publisher import MssqlPublisher

        return MssqlPublisher(_mssql(login))

    def schema_reader(self, login: Login) -> SchemaReader:
        from dpone_provider.adapters.mssql.schema_reader import MssqlSchemaReader

        return MssqlSchemaReader(_mssql(login))

    def reader(self, login: Login, pinned: Mapping[str, str]) -> TableReader:
        from dpone_provider.adapters.mssql.reader import MssqlReader

        return MssqlReader(_mssql(login), pinned=pinned)

    def staging(self, job: WorkerJob) -> StagingWriter:
        from dpone_provider.adapters.mssql.writer import MssqlStagingWriter

        return MssqlStagingWriter(_mssql(job.target), job.job, key=job.pack.key)

    def fenced(self, job: WorkerJob) -> FencedPublisher:
        from dpone_provider.adapters.mssql.writer import MssqlFencedPublisher, Way

        way = Way.SWITCH if job.pack.publication.way == "switch" else Way.INSERT
        return MssqlFencedPublisher(_mssql(job.target), job.binding, job.control_database, way)


class _ClickHouse:
    def catalog(self, login: Login, control: ControlNames, reader: str | None = None) -> PhysicalCatalog:
        from dpone_provider.adapters.clickhouse.catalog import ClickHouseCatalog

        return ClickHouseCatalog(_clickhouse(login), reader)

    def witness(self, login: Login) -> TargetWitness:
        from dpone_provider.adapters.clickhouse.witness import ClickHouseWitness

        return ClickHouseWitness(_clickhouse(login))

    def gate(self, login: Login, connection: Connection, control: ControlNames, entropy: Entropy) -> LoginGate:
        from dpone_provider.adapters.clickhouse.gate import login_gate

        return login_gate(_clickhouse(login), connection.service.service_id, _gate_option(connection, entropy))

    def publisher(self, login: Login) -> TablePublisher:
        from dpone_provider.adapters.clickhouse.publisher import ClickHousePublisher

        return ClickHousePublisher(_clickhouse(login))

    def schema_reader(self, login: Login) -> SchemaReader:
        from dpone_provider.adapters.clickhouse.schema_reader import ClickHouseSchemaReader

        return ClickHouseSchemaReader(_clickhouse(login))

    def reader(self, login: Login, pinned: Mapping[str, str]) -> TableReader:
        from dpone_provider.adapters.clickhouse.reader import ClickHouseReader

        return ClickHouseReader(_clickhouse(login))

    def staging(self, job: WorkerJob) -> StagingWriter:
        from dpone_provider.adapters.clickhouse.staging import ClickHouseStagingWriter

        return ClickHouseStagingWriter(_clickhouse(job.target), job.job, key=job.pack.key)

    def fenced(self, job: WorkerJob) -> None:
        """The controller dispatches, after the worker's gate is CLOSED."""


ENGINES: Final[Mapping[EngineKind, Engine]] = MappingProxyType(
    {EngineKind.POSTGRES: _Postgres(), EngineKind.MSSQL: _Mssql(), EngineKind.CLICKHOUSE: _ClickHouse()}
)
"""Every engine that the product knows."""


def odbc_driver() -> str:
    """Return what ODBC calls Microsoft's driver on this machine: its registered name, or its file.

    Raises:
        DponeError: Refused ``odbc_driver_missing``.
    """
    from dpone_provider.adapters.mssql.driver import driver_name

    return driver_name()


def _mssql(login: Login) -> MssqlServer:
    from dpone_provider.adapters.mssql.session import MssqlServer

    return MssqlServer(login.endpoint, login.credential)


def _clickhouse(login: Login) -> ClickHouseServer:
    from dpone_provider.adapters.clickhouse.session import ClickHouseServer

    return ClickHouseServer(endpoint=login.endpoint, credential=login.credential)


def _gate_option(connection: Connection, entropy: Entropy) -> GateOption:
    """Return how logins are issued on ClickHouse; a pool is always a file, read when a login is handed out."""
    from dpone_provider.adapters.clickhouse.sql_users import SqlUsers
    from dpone_provider.adapters.clickhouse.user_pool import UserPool

    reference = connection.login_issuer.pool_reference
    if reference is None:
        return SqlUsers(entropy=entropy)
    scheme, _, path = reference.partition(":")
    if scheme != "file":
        unwind(
            refuse(
                "login_pool_not_a_file",
                f"connection {connection.reference}",
                found=reference,
                allowed="file:/absolute/path",
                next_command="correct login_issuer.pool_reference in the environment file, then build anew",
            )
        )
    return UserPool(file=Path(path))
