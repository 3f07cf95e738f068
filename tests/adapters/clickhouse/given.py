"""The ClickHouse that ``DPONE_TEST_CLICKHOUSE_URL`` names: its controller's login, on a server that is there for tests.

An administrator prepares it: ``python -m tests.adapters.clickhouse.given`` prints the statements that make the
databases and the controller of the URL. Whoever ran them must be gone before the tests: a user who could write the mart
is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from secrets import token_hex
from typing import Final

import pytest

from dpone_provider.adapters.clickhouse.enrolment import Marker, enrol
from dpone_provider.adapters.clickhouse.errors import ERRORS
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.adapters.secrets.url import parse_url
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import Principal
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse_users import (
    CONTROLLER_GRANTS,
    ISSUING_GRANTS,
    MART,
    READER_GRANTS,
    STAGE,
    ClickhouseUser,
)
from tests.adapters.clickhouse.enrolled import AUTHORITY, Enrolled

VARIABLE: Final = "DPONE_TEST_CLICKHOUSE_URL"
"""``clickhouse://controller:password@host:port/mart``: the HTTP port."""
HANDED_ON: Final = (f"SELECT ON {MART}.* WITH GRANT OPTION",)
"""What the tests' controller has beside a real one's: it makes the reader itself."""


def given() -> ClickHouseServer | None:
    """Return the server through its controller, None where none is given."""
    url = os.environ.get(VARIABLE)
    if not url:
        return None
    found = parse_url(url)
    endpoint = Endpoint(kind=found.kind, host=found.host, port=found.port, database=MART, tls=TlsMode.DISABLED)
    return ClickHouseServer(endpoint=endpoint, credential=found.credential, statement_seconds=20)


def require() -> ClickHouseServer:
    """Return the server; skip where none is given."""
    found = given()
    if found is None:
        pytest.skip(f"{VARIABLE} is not set")
    return found


def preparation(server: ClickHouseServer) -> list[str]:
    """Return the administrator's statements: two databases, and the controller with its rights."""
    credential = server.credential
    databases = [f"CREATE DATABASE IF NOT EXISTS {name} ENGINE = Atomic" for name in (MART, STAGE)]
    grants = (*CONTROLLER_GRANTS, *ISSUING_GRANTS, *HANDED_ON)
    return [*databases, *_made(ClickhouseUser(name=credential.user, password=credential.password, grants=grants))]


def _made(user: ClickhouseUser) -> list[str]:
    """Return the statements that make a user who may come from anywhere: a container sees no loopback."""
    option = " WITH GRANT OPTION"
    given_ = [
        f"GRANT {one.removesuffix(option)} TO {user.name}{option if one.endswith(option) else ''}"
        for one in user.grants
    ]
    made = f"CREATE USER {user.name} IDENTIFIED WITH sha256_hash BY '{user.password_hash}' HOST ANY"
    return [made, *given_]


@contextmanager
def given_enrolled() -> Iterator[Enrolled]:
    """Enrol the given server's mart, with a reader of this run; drop every user and table of this run at the end."""
    controller = require()
    reader = ClickhouseUser(name=f"reader_{token_hex(6)}", password=Secret(token_hex(24)), grants=READER_GRANTS)
    marker = enrol(controller, AUTHORITY)
    assert isinstance(marker, Marker), marker
    enrolled = Enrolled(
        state=None,
        controller=controller,
        reader=replace(controller, credential=Credential(reader.name, reader.password)),
        marker=marker,
        prefix=f"t{token_hex(3)}",
    )
    for statement in _made(reader):
        enrolled.run(statement)
    try:
        yield enrolled
    finally:
        gate = enrolled.gate()
        for name in enrolled.used:
            gate.collect(Principal(service_id=enrolled.service_id, name=name, sid=name))
        made = f"database = '{MART}' AND startsWith(name, '{enrolled.prefix}')"
        for kind, name in enrolled.ask(f"SELECT engine, name FROM system.tables WHERE {made}"):
            with suppress(*ERRORS):
                enrolled.run(f"DROP {'VIEW' if kind == 'View' else 'TABLE'} {MART}.{name}")
        enrolled.run(f"DROP USER {reader.name}")


def session(server: ClickHouseServer, credential: Credential) -> Session:
    """Return a session of another login."""
    return Session(replace(server, credential=credential))


if __name__ == "__main__":
    prepared = given()
    if prepared is None:
        sys.exit(f"{VARIABLE} is not set")
    sys.stdout.write("".join(f"{one};\n" for one in preparation(prepared)))
