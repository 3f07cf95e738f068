"""The SQL Server that ``DPONE_TEST_MSSQL_URL`` names, if any, and what it can do: each test says why it is skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from secrets import token_hex

import pytest

from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.names import qualified
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.adapters.secrets.url import parse_url
from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.identity import Relation
from tests.adapters.mssql.capabilities import Capability, lacks
from tests.waiting import wait_until

VARIABLE = "DPONE_TEST_MSSQL_URL"
"""``mssql://administrator:password@host:port/database?encrypt=trust``; the database may be written."""


@dataclass(frozen=True)
class GivenServer:
    """The server, and what it calls itself."""

    server: MssqlServer
    product: str


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
        (product,) = own.row("SELECT CONVERT(nvarchar(400), @@VERSION);")
    return GivenServer(server, product.splitlines()[0])


@cache
def lacking(capability: Capability) -> str | None:
    """Ask the given server once a session what it says to a capability; None if it has it."""
    found = given()
    assert isinstance(found, GivenServer)
    return lacks(capability, found.server)


def require(*needed: Capability) -> GivenServer:
    """Return the server; skip, with the server's own words, where there is none or where it lacks what a test needs."""
    found = given()
    if isinstance(found, str):
        pytest.skip(found)
    for capability in needed:
        if why := lacking(capability):
            pytest.skip(f"{found.product} lacks {capability}: {why}")
    return found


def drop_login(own: Session, name: str) -> None:
    """Drop a login with its user here; the server may still be ending its last session."""

    def dropped() -> bool:
        try:
            own.run(f"IF USER_ID(N'{name}') IS NOT NULL DROP USER [{name}]; DROP LOGIN [{name}];")
        except ServerError:
            return False
        return True

    wait_until(dropped, what=f"the end of login {name}")


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
            own.run(f"DROP TABLE {qualified(Relation(name, table))};")
        own.run(f"DROP SCHEMA [{name}];")
