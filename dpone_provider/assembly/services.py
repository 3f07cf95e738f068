"""Adapters of a deployment's services, made from registry entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Never

from dpone_provider.application.ports.catalog import PhysicalCatalog
from dpone_provider.application.ports.credentials import Credentials
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.tables import SchemaReader, TablePublisher, TableReader
from dpone_provider.application.ports.time import Clock, Entropy
from dpone_provider.assembly.reach import controller_login, observing_login, reader_login
from dpone_provider.assembly.worker_job import Login
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import refuse, unwind

if TYPE_CHECKING:
    from dpone_provider.adapters.clickhouse.gate import GateOption
    from dpone_provider.adapters.clickhouse.session import ClickHouseServer


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryServices:
    """Makes catalogs, gates, publishers and readers; adapters are imported when their engine is met."""

    credentials: Credentials
    entropy: Entropy
    clock: Clock
    control_schema: str

    def catalog(self, connection: Connection) -> PhysicalCatalog:
        """Return the catalog of the connection's database."""
        login = observing_login(self.credentials, connection)
        match connection.kind:
            case EngineKind.POSTGRES:
                from dpone_provider.adapters.postgres.catalog import PostgresCatalog

                return PostgresCatalog(login.endpoint, login.credential)
            case EngineKind.CLICKHOUSE:
                from dpone_provider.adapters.clickhouse.catalog import ClickHouseCatalog

                return ClickHouseCatalog(_server(login))
            case EngineKind.MSSQL:
                _unsupported(connection)

    def gate(self, connection: Connection) -> LoginGate:
        """Return the hand on the connection's logins."""
        login = controller_login(self.credentials, connection)
        match connection.kind:
            case EngineKind.POSTGRES:
                from dpone_provider.adapters.postgres.gate import PostgresGate

                return PostgresGate(
                    endpoint=login.endpoint,
                    credential=login.credential,
                    service_id=connection.service.service_id,
                    control_schema=self.control_schema,
                    entropy=self.entropy,
                )
            case EngineKind.CLICKHOUSE:
                from dpone_provider.adapters.clickhouse.gate import login_gate

                return login_gate(_server(login), connection.service.service_id, _gate_option(connection, self.entropy))
            case EngineKind.MSSQL:
                _unsupported(connection)

    def publisher(self, connection: Connection) -> TablePublisher:
        """Return the controller's publisher into the connection's database."""
        login = controller_login(self.credentials, connection)
        match connection.kind:
            case EngineKind.POSTGRES:
                from dpone_provider.adapters.postgres.publisher import PostgresPublisher

                return PostgresPublisher(login.endpoint, login.credential)
            case EngineKind.CLICKHOUSE:
                from dpone_provider.adapters.clickhouse.publisher import ClickHousePublisher

                return ClickHousePublisher(_server(login))
            case EngineKind.MSSQL:
                _unsupported(connection)

    def reader(self, connection: Connection) -> TableReader:
        """Return a reader through the binding's read-only login."""
        return reader_of(reader_login(self.credentials, connection), pinned_facts(connection))

    def schema_reader(self, connection: Connection) -> SchemaReader:
        """Return a reader of definitions through the binding's read-only login."""
        login = reader_login(self.credentials, connection)
        match connection.kind:
            case EngineKind.POSTGRES:
                from dpone_provider.adapters.postgres.schema_reader import PostgresSchemaReader

                return PostgresSchemaReader(login.endpoint, login.credential)
            case EngineKind.CLICKHOUSE:
                from dpone_provider.adapters.clickhouse.schema_reader import ClickHouseSchemaReader

                return ClickHouseSchemaReader(_server(login))
            case EngineKind.MSSQL:
                _unsupported(connection)


def pinned_facts(connection: Connection) -> dict[str, str]:
    """Return the facts that the registry pins of the connection's own database."""
    databases = {one.name: one for one in connection.databases}
    pinned = databases.get(connection.endpoint.database)
    return {} if pinned is None else {fact.name: fact.value for fact in pinned.facts}


def reader_of(login: Login, pinned: Mapping[str, str]) -> TableReader:
    """Return a reader of a database through one login; ``pinned`` are the facts of the life that may be read."""
    match login.endpoint.kind:
        case EngineKind.POSTGRES:
            from dpone_provider.adapters.postgres.reader import PostgresReader

            return PostgresReader(login.endpoint, login.credential, pinned=pinned)
        case EngineKind.CLICKHOUSE:
            from dpone_provider.adapters.clickhouse.reader import ClickHouseReader

            return ClickHouseReader(_server(login))
        case EngineKind.MSSQL:
            _unsupported_kind(str(login.endpoint))


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


def _server(login: Login) -> ClickHouseServer:
    from dpone_provider.adapters.clickhouse.session import ClickHouseServer

    return ClickHouseServer(endpoint=login.endpoint, credential=login.credential)


def _unsupported(connection: Connection) -> Never:
    _unsupported_kind(f"connection {connection.reference}")


def _unsupported_kind(subject: str) -> Never:
    unwind(
        refuse(
            "engine_without_adapter",
            subject,
            found="SQL Server",
            allowed="PostgreSQL or ClickHouse in this version",
            next_command="bind the alias to a supported engine",
        )
    )
