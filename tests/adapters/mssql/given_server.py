"""The SQL Server that ``DPONE_TEST_MSSQL_URL`` names, if any, and what it can do: each test says why it is skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from secrets import token_hex

import pytest

from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.adapters.secrets.url import parse_url
from dpone_provider.domain.connection import Endpoint, TlsMode

VARIABLE = "DPONE_TEST_MSSQL_URL"
"""``mssql://administrator:password@host:port/database?encrypt=trust``; the database may be written."""


@dataclass(frozen=True)
class GivenServer:
    """The server, and what it is."""

    server: MssqlServer
    product: str
    is_sql_server: bool
    snapshots: bool


@cache
def given() -> GivenServer | str:
    """Return the server, or why there is none."""
    url = os.environ.get(VARIABLE)
    if not url:
        return f"{VARIABLE} is not set"
    found = parse_url(url)
    tls = TlsMode(dict(found.options).get("encrypt", "trust"))
    endpoint = Endpoint(kind=found.kind, host=found.host, port=found.port, database=found.database, tls=tls)
    server = MssqlServer(endpoint, found.credential)
    with server.session("dpone probe", 20) as own:
        product, edition = own.row(
            "SELECT CONVERT(nvarchar(400), @@VERSION), CONVERT(int, SERVERPROPERTY('EngineEdition'));"
        )
        (state,) = own.row(
            "SELECT CONVERT(int, COALESCE(MAX(snapshot_isolation_state), 0)) FROM sys.databases"
            " WHERE database_id = DB_ID();"
        )
    is_sql_server = product.startswith("Microsoft SQL Server") and edition in (2, 3, 4) and "Babelfish" not in product
    return GivenServer(server, product.splitlines()[0], is_sql_server, state == 1)


def require(*, sql_server: bool = False, snapshots: bool = False) -> GivenServer:
    """Return the server; skip, with the reason, where there is none or where it lacks what a test needs."""
    found = given()
    if isinstance(found, str):
        pytest.skip(found)
    if sql_server and not found.is_sql_server:
        pytest.skip(f"{found.product} is no SQL Server")
    if snapshots and not found.snapshots:
        pytest.skip("the given database does not allow snapshot isolation")
    return found


@contextmanager
def schema(own: Session) -> Iterator[str]:
    """Make a schema, and drop it with its tables at the end."""
    name = f"dpone_test_{token_hex(6)}"
    own.run(f"EXEC(N'CREATE SCHEMA [{name}]');")
    try:
        yield name
    finally:
        tables = own.rows(
            "SELECT t.name FROM sys.tables AS t JOIN sys.schemas AS s ON s.schema_id = t.schema_id"
            " WHERE s.name = @name;",
            {"name": name},
        )
        for (table,) in tables:
            own.run(f"DROP TABLE [{name}].[{table}];")
        own.run(f"DROP SCHEMA [{name}];")
