"""The lab's roles in PostgreSQL can do what they are for, and no more."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from dpone_provider import lab
from dpone_provider.domain.secret import Secret

pytestmark = pytest.mark.lab


def run(url: Secret, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_the_shop_reader_reads_and_cannot_write(whole_lab: lab.LabState) -> None:
    url = whole_lab.url("shop_reader")
    assert run(url, "SELECT count(*) FROM airlines") == [(16,)]
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        run(url, "DELETE FROM airlines")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(url, "BEGIN READ WRITE; DELETE FROM airlines")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(url, "BEGIN READ WRITE; CREATE TABLE mine (a int)")


def test_the_readers_see_what_is_added_later(whole_lab: lab.LabState) -> None:
    admin = whole_lab.url("warehouse_admin")
    with psycopg.connect(admin.reveal(), dbname="shop", autocommit=True) as connection:
        connection.execute("CREATE TABLE later AS SELECT 1 AS a")
        try:
            assert run(whole_lab.url("shop_reader"), "SELECT a FROM later") == [(1,)]
        finally:
            connection.execute("DROP TABLE later")


def test_the_server_is_as_durable_and_as_closed_as_enrolment_asks(whole_lab: lab.LabState) -> None:
    names = "fsync,synchronous_commit,full_page_writes,max_prepared_transactions,max_connections"
    names += ",listen_addresses,unix_socket_directories,password_encryption,TimeZone"
    query = f"SELECT name, setting FROM pg_settings WHERE name = ANY(string_to_array('{names}', ','))"
    assert dict(run(whole_lab.url("warehouse_admin"), query)) == {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_prepared_transactions": "0",
        "max_connections": "700",
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "password_encryption": "scram-sha-256",
        "TimeZone": "UTC",
    }


def test_every_way_in_asks_for_scram_and_every_role_has_such_a_password(whole_lab: lab.LabState) -> None:
    admin = whole_lab.url("warehouse_admin")
    assert run(admin, "SELECT DISTINCT auth_method FROM pg_hba_file_rules") == [("scram-sha-256",)]
    query = "SELECT rolname FROM pg_authid WHERE rolcanlogin AND rolpassword NOT LIKE 'SCRAM-SHA-256$%'"
    assert run(admin, query) == []


def test_a_wrong_password_is_refused(whole_lab: lab.LabState) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(whole_lab.url("shop_reader").reveal(), password="wrong")
