"""A control database on the server that ``DPONE_TEST_MSSQL_URL`` names: installed by the shipped scripts, then emptied.

On SQL Server the scripts run as they are. Another server that speaks TDS gets them as far as it takes them: each change
is in ``LACKS`` with its reason, and nothing of the product is bent. Emptying puts the triggers aside, as nobody may
delete a row of the ledger; another server's rows are deleted by its own superuser (``DPONE_TEST_BABELFISH_URL``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Any

import psycopg
import pytest

from dpone_provider.adapters.ledger.mssql import MssqlDialect
from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from dpone_provider.adapters.mssql.lending import LentConnection, MssqlLender
from dpone_provider.adapters.mssql.session import open_raw
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.installation.rendering import fill_in
from dpone_provider.application.installation.tsql import batches
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import shipped_sql
from tests.adapters.mssql.given_server import GivenServer, require

SCRIPTS = ("010_control_schema.sql", "015_control_laws.sql", "016_control_machines.sql", "017_control_settle.sql")
AUTHORITY_ID = "5a1d4f0e-6a53-4b6f-9a39-0c8f6f2d7b11"
KEPT = ("schema_version", "authority")
SUPERUSER = "DPONE_TEST_BABELFISH_URL"
LACKS = (
    # 010: what is asked of the server and its database before anything is created.
    (re.compile(r"DECLARE @wrong nvarchar\(1000\) = .*?(?=BEGIN TRANSACTION;)", re.DOTALL), ""),
    # No CREATE OR ALTER: the database is new each time.
    (re.compile(r"CREATE OR ALTER"), "CREATE"),
    # Neither VIEW DEFINITION nor columns in a GRANT: there the administrator moves the ledger.
    (re.compile(r"^GRANT [^;]+;", re.MULTILINE), ""),
    (re.compile(r"(CREATE ROLE \w+) AUTHORIZATION dbo"), r"\1"),
    # CONVERT of bytes to hex digits fails inside a CHECK.
    (re.compile(r"\w+ = 'sha256:' \+ LOWER\(CONVERT\(char\(64\), HASHBYTES\('SHA2_256', \w+\), 2\)\)"), "1 = 1"),
    # No sys.database_recovery_status, no CHAR(0) in a text, no rows in sys.sequences.
    (
        re.compile(r"RETURN \(SELECT CONVERT\(varchar\(100\), SERVERPROPERTY.*?DB_ID\(\)\);", re.DOTALL),
        "RETURN 'LIFE/1';",
    ),
    (
        re.compile(r"RETURN CASE WHEN SUBSTRING\(CONTEXT_INFO\(\).*?END;", re.DOTALL),
        "RETURN COALESCE(APP_NAME(), N'');",
    ),
    (
        re.compile(r"\(SELECT CONVERT\(bigint, q\.current_value\).*?ledger_sequence'\)\)", re.DOTALL),
        "CONVERT(bigint, 0)",
    ),
)
"""What Babelfish 4.4 does not take of the scripts, and what stands in its place."""
TRANSACTION_ID = """
CREATE OR REPLACE FUNCTION sys.current_transaction_id() RETURNS bigint LANGUAGE sql AS 'SELECT txid_current()'
"""


SAID_OTHERWISE = {"COMMIT TRANSACTION WITH (DELAYED_DURABILITY = OFF)": "COMMIT TRANSACTION"}
"""What Babelfish 4.4 does not take of the ledger's own batches."""


class Rewording(MssqlLender):
    """Lends connections whose statements are said as Babelfish takes them."""

    def lend(self, purpose: str, seconds: float) -> LentConnection:
        """Open one."""
        lent = super().lend(purpose, seconds)
        return RewordingConnection(lent.raw, lent._sockets, lent.session)


class RewordingConnection(LentConnection):
    """A connection whose cursors reword."""

    def cursor(self) -> Any:
        """Return one."""
        return RewordingCursor(super().cursor())


class RewordingCursor:
    """A cursor of pyodbc's that rewords what it is told."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, text: str, *values: object) -> object:
        """Reword, and run."""
        for said, otherwise in SAID_OTHERWISE.items():
            text = text.replace(said, otherwise)
        return self._cursor.execute(text, *values)

    def __getattr__(self, name: str) -> Any:
        """Be the cursor in everything else."""
        return getattr(self._cursor, name)


@dataclass(frozen=True)
class GivenControl:
    """One control database, and who moves the ledger in it."""

    found: GivenServer
    name: str
    controller: Credential

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return replace(self.found.server.endpoint, database=self.name)

    def ledger(self) -> SqlLedger:
        """Return the adapter's ledger, as the controller."""
        if self.found.is_sql_server:
            return SqlLedger(MssqlDialect(MssqlLender(self.endpoint, self.controller)), SystemClock())
        return SqlLedger(MssqlDialect(Rewording(self.endpoint, self.found.server.credential)), SystemClock())

    def run(self, *texts: str, database: str | None = None) -> None:
        """Run batches as the administrator, each as it is: a module is the only thing in its batch."""
        at = replace(self.endpoint, database=database or self.name)
        raw, sockets = open_raw(at, self.found.server.credential, "dpone test", 60)
        raw.timeout = 0  # an installation takes its time
        try:
            for text in texts:
                cursor = raw.cursor()
                cursor.execute(text)
                while cursor.nextset():
                    pass
        finally:
            raw.close()
            sockets.close()

    def go_back(self) -> None:
        """Let the ledger's row name another incarnation than its server is in."""
        self._unlawfully(["authority"], ["UPDATE {}.authority SET incarnation = 'LIFE/0'"])

    def empty(self) -> None:
        """Delete every row but who the ledger is, which becomes what it was."""
        tables = [table.name for table in METADATA.tables.values() if table.name not in KEPT]
        own = "LIFE/1" if not self.found.is_sql_server else None
        life = f"'{own}'" if own else f"{SCHEMA}.observed_incarnation()"
        was = f"UPDATE {{}}.authority SET authority_id = '{AUTHORITY_ID}', incarnation = {life}"
        deletes = [f"DELETE FROM {{}}.{name}" for name in (*tables, "unsettled")]
        self._unlawfully([*tables, "authority", "unsettled"], [*deletes, was])

    def _unlawfully(self, tables: list[str], statements: list[str]) -> None:
        if self.found.is_sql_server:
            off = "ALTER TABLE {0}.{1} NOCHECK CONSTRAINT ALL; ALTER TABLE {0}.{1} DISABLE TRIGGER ALL;"
            on = "ALTER TABLE {0}.{1} WITH CHECK CHECK CONSTRAINT ALL; ALTER TABLE {0}.{1} ENABLE TRIGGER ALL;"
            self.run(
                *(off.format(SCHEMA, one) for one in tables),
                *(one.format(SCHEMA) for one in statements),
                *(on.format(SCHEMA, one) for one in tables),
            )
            return
        with superuser() as connection:
            connection.execute("SET LOCAL session_replication_role = replica")
            for one in statements:
                connection.execute(one.format(f"{self.name}_{SCHEMA}"))


@contextmanager
def superuser() -> Iterator[psycopg.Connection[Any]]:
    """Open a transaction of the other server's own superuser; skip where nobody says who that is."""
    url = os.environ.get(SUPERUSER)
    if not url:
        pytest.skip(f"{SUPERUSER} is not set: nobody may empty the ledger of a server that is no SQL Server")
    with psycopg.connect(url) as connection:
        yield connection


@contextmanager
def installed() -> Iterator[GivenControl]:
    """Install the control schema in a database of its own, and drop that at the end."""
    found = require()
    name = f"dpone_test_{token_hex(4)}"
    login = f"{name}_controller"
    password = Secret(token_hex(16) + "aA1!")
    control = GivenControl(found, name, Credential(login, password))
    server = found.server.endpoint.database
    collation = " COLLATE Latin1_General_100_BIN2" if found.is_sql_server else ""
    if not found.is_sql_server:
        with superuser() as connection:
            connection.execute(TRANSACTION_ID)
    control.run(
        f"CREATE DATABASE [{name}]{collation}",
        f"CREATE LOGIN [{login}] WITH PASSWORD = N'{password.reveal()}'",
        database=server,
    )
    try:
        variables = {
            "control_database": name,
            "controller_login": login,
            "authority_id": AUTHORITY_ID,
            "family": "nonproduction",
        }
        for script in SCRIPTS:
            text = (shipped_sql("mssql") / script).read_text(encoding="utf-8")
            given = {one: value for one, value in variables.items() if f"${{{one}}}" in text}
            control.run(*_taken(fill_in(text, given, where=script), found))
        yield control
    finally:
        control.run(f"DROP DATABASE [{name}]", f"DROP LOGIN [{login}]", database=server)


def _taken(text: str, found: GivenServer) -> list[str]:
    if not found.is_sql_server:
        for lacking, instead in LACKS:
            text = lacking.sub(instead, text)
    return [one.text for one in batches(text)]
