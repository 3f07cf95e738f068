"""A database per test on a real PostgreSQL."""

from __future__ import annotations

import psycopg
import pytest

from dpone_provider import lab
from dpone_provider.domain.secret import Secret

pytestmark = pytest.mark.lab


def one(url: Secret, query: str) -> tuple[object, ...] | None:
    with psycopg.connect(url.reveal()) as connection:
        return connection.execute(query).fetchone()


def test_each_role_reaches_the_database(fresh_database: lab.LabDatabase) -> None:
    for credential, user in (
        ("postgres_admin", "postgres"),
        ("dpone_controller", "dpone_controller"),
        ("shop_reader", "shop_reader"),
        ("warehouse_reader", "warehouse_reader"),
    ):
        row = one(fresh_database.url(credential), "SELECT current_user, current_database()")
        assert row == (user, fresh_database.name)


def test_the_controller_makes_roles_and_is_no_superuser(fresh_database: lab.LabDatabase) -> None:
    query = "SELECT rolcreaterole, rolsuper, rolcreatedb, rolbypassrls FROM pg_roles WHERE rolname = current_user"
    assert one(fresh_database.controller, query) == (True, False, False, False)


def test_a_database_is_gone_afterwards_even_when_somebody_is_connected(postgres_lab: lab.LabState) -> None:
    with lab.fresh_database(postgres_lab) as database:
        left_open = psycopg.connect(database.controller.reveal())
    with pytest.raises(psycopg.OperationalError):
        left_open.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(database.controller.reveal())
