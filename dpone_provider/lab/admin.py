"""The lab administrator's own connection to PostgreSQL. Used for provisioning and scripts, never by the product."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.state import EngineState, LabState, url_of

ADMIN = "postgres"
ADMIN_CREDENTIAL = "postgres_admin"
Connection = psycopg.Connection[tuple[Any, ...]]


def postgres_of(state: LabState) -> EngineState:
    """Return the lab's PostgreSQL.

    Raises:
        DponeError: the lab was started without one.
    """
    if state.postgres is None:
        unwind(
            refuse(
                "lab_without_postgres",
                str(state.root),
                found="a lab without PostgreSQL",
                allowed="a lab that 'dpone lab up' started",
                next_command="dpone lab down, then dpone lab up",
            )
        )
    return state.postgres


def postgres_url(postgres: EngineState, *, user: str, password: Secret, database: str) -> Secret:
    """Return the URL of ``user`` for ``database``."""
    return url_of("postgresql", user=user, password=password, host=postgres.host, port=postgres.port, database=database)


@contextmanager
def connected(url: Secret, *, database: str | None = None) -> Iterator[Connection]:
    """Open an autocommit connection to ``url``, in ``database`` instead of its own when given; close it at the end."""
    connection = psycopg.connect(url.reveal(), dbname=database, autocommit=True, application_name="dpone lab")
    with connection:
        yield connection


@contextmanager
def connected_admin(state: LabState, database: str) -> Iterator[Connection]:
    """Open an autocommit connection as the superuser to ``database``."""
    postgres_of(state)
    with connected(state.url(ADMIN_CREDENTIAL), database=database) as connection:
        yield connection
