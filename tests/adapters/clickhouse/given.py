"""The ClickHouse that ``DPONE_TEST_CLICKHOUSE_URL`` names, on a server that is there for tests.

Its user is the tests' controller, and nobody else on the server may be able to write: that is refused. An administrator
who is alone there, as Docker's image makes one, will do. ``python -m tests.adapters.clickhouse.given`` prints the
statements that make a controller with no more rights than it needs; whoever ran them must be gone before the tests.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dpone_provider.adapters.clickhouse.enrolment import Marker, enrol
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.adapters.secrets.url import parse_url
from dpone_provider.domain.connection import Credential
from dpone_provider.lab.clickhouse.fitness import require_fit
from dpone_provider.lab.clickhouse.given import VARIABLE, GivenClickhouse, given_clickhouse
from dpone_provider.lab.clickhouse.making import drop_made, make
from dpone_provider.lab.clickhouse_users import (
    CONTROLLER_GRANTS,
    FROM_ANYWHERE,
    GIVEN_GRANTS,
    ISSUING_GRANTS,
    MART,
    ClickhouseUser,
    create_statements,
)
from tests.adapters.clickhouse.enrolled import AUTHORITY, Enrolled


def require() -> GivenClickhouse:
    """Return the server; skip where none is given."""
    found = given_clickhouse(os.environ)
    if found is None:
        pytest.skip(f"{VARIABLE} is not set")
    return found


def preparation(credential: Credential) -> list[str]:
    """Return the administrator's statements: the controller, who may come from anywhere, and its rights."""
    grants = (*CONTROLLER_GRANTS, *ISSUING_GRANTS, *GIVEN_GRANTS)
    user = ClickhouseUser(name=credential.user, password=credential.password, grants=grants)
    return create_statements(user, hosts=FROM_ANYWHERE)


@contextmanager
def given_enrolled(directory: Path) -> Iterator[Enrolled]:
    """Make databases and a reader on the given server, and enrol it; drop all of it at the end, logins included."""
    given, record = require(), directory / "given-analytics.json"
    require_fit(given)
    try:
        _, credentials = make(given, record)
        controller = ClickHouseServer(
            endpoint=replace(given.endpoint, database=MART), credential=given.credential, statement_seconds=20
        )
        marker = enrol(controller, AUTHORITY)
        assert isinstance(marker, Marker), marker
        reader = parse_url(credentials["analytics_reader"].reveal()).credential
        yield Enrolled(state=None, controller=controller, reader=replace(controller, credential=reader), marker=marker)
    finally:
        drop_made(record, os.environ)


def session(server: ClickHouseServer, credential: Credential) -> Session:
    """Return a session of another login."""
    return Session(replace(server, credential=credential))


if __name__ == "__main__":
    prepared = given_clickhouse(os.environ)
    if prepared is None:
        sys.exit(f"{VARIABLE} is not set")
    sys.stdout.write("".join(f"{one};\n" for one in preparation(prepared.credential)))
