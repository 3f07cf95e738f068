"""Facts of SQL Server that the adapter and `sql/mssql` build on: each is asked of the given server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from secrets import token_bytes, token_hex

import pytest

from dpone_provider.adapters.mssql.errors import LoginRefused, Meaning, ServerError
from dpone_provider.adapters.mssql.logins import SALT_BYTES, new_sid, password_hash
from dpone_provider.adapters.mssql.names import binary
from dpone_provider.adapters.mssql.reader import MssqlReader
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.secret import Secret
from tests.adapters.mssql.capabilities import Capability
from tests.adapters.mssql.given_server import drop_login, require, schema
from tests.conformance.reader_suite import COLUMNS, WIDE, ReaderSuite
from tests.waiting import wait_until

pytestmark = pytest.mark.mssql
TEST_TAG = "64706F6E65FF"
"""SIDs that begin with it are the tests' own: no gate knows them."""


@pytest.fixture
def server() -> MssqlServer:
    """Give the server."""
    return require().server


@contextmanager
def database(server: MssqlServer, *settings: str) -> Iterator[MssqlServer]:
    """Give a database of the test's own."""
    name = f"dpone_test_{token_hex(6)}"
    with server.session("dpone test", 60) as own:
        own.run(f"CREATE DATABASE [{name}];")
        try:
            for setting in settings:
                own.run(f"ALTER DATABASE [{name}] SET {setting};")
            yield replace(server, endpoint=replace(server.endpoint, database=name))
        finally:
            own.run(f"ALTER DATABASE [{name}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE [{name}];")


@contextmanager
def login(server: MssqlServer, *options: str) -> Iterator[MssqlServer]:
    """Give the server through a login of the test's own, with a user in the given database."""
    name, secret = f"dpone_test_{token_hex(6)}", Secret(token_hex(16) + "aA1!")
    more = "".join(f", {option}" for option in options)
    with server.session("dpone test", 60) as own:
        own.run(f"CREATE LOGIN [{name}] WITH PASSWORD = N'{secret.reveal()}'{more};")
        own.run(f"CREATE USER [{name}] FOR LOGIN [{name}];")
        try:
            yield replace(server, credential=Credential(name, secret))
        finally:
            drop_login(own, name)


def own_sid() -> str:
    """Return what gives a login a SID of the tests' own."""
    return f"SID = 0x{TEST_TAG}{token_hex(10).upper()}, CHECK_POLICY = OFF"


def number(own: Session, statement: str) -> int:
    """Return the native number of the error that a statement gives."""
    with pytest.raises(ServerError) as raised:
        own.run(statement)
    return raised.value.number


def test_a_login_from_a_hash_is_made_and_rolled_back_with_its_transaction(server: MssqlServer) -> None:
    require(Capability.CHOSEN_SIDS, Capability.HASHED_PASSWORDS)
    name, hashed = f"dpone_test_{token_hex(6)}", binary(password_hash(Secret(token_hex(32)), token_bytes(SALT_BYTES)))
    sid = "0x" + TEST_TAG + new_sid().hex()[12:].upper()
    with server.session("dpone test", 60) as own:
        own.run("BEGIN TRANSACTION;")
        own.run(f"CREATE LOGIN [{name}] WITH PASSWORD = {hashed} HASHED, SID = {sid}, CHECK_POLICY = OFF;")
        assert own.row(f"SELECT SUSER_ID(N'{name}') - SUSER_ID(SUSER_SNAME({sid}));") == (0,)
        own.run("ROLLBACK TRANSACTION;")
        assert own.row(f"SELECT SUSER_ID(N'{name}');") == (None,)


def test_a_disabled_login_keeps_its_session_until_it_is_ended(server: MssqlServer) -> None:
    require(Capability.CHOSEN_SIDS, Capability.SESSION_VIEWS, Capability.NATIVE_NUMBERS)
    with (
        login(server, own_sid()) as at,
        server.session("dpone test", 60) as own,
        at.session("dpone test: issued", 60) as issued,
    ):
        (spid,) = issued.row("SELECT CONVERT(int, @@SPID);")
        own.run(f"ALTER LOGIN [{at.credential.user}] DISABLE;")
        assert issued.row("SELECT 1;") == (1,)
        with pytest.raises(LoginRefused) as raised, at.session("dpone test: too late", 20):
            pass
        assert raised.value.number == 18470
        query = "SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE original_security_id = SUSER_SID(@name);"
        named = {"name": at.credential.user}
        assert own.row(query, named) == (1,)
        own.run(f"KILL {spid};")
        wait_until(lambda: own.row(query, named) == (0,), what="the end of the session")
        assert number(own, f"KILL {spid};") == 6106


def test_the_fence_sees_the_callers_login_and_transaction_in_another_database(server: MssqlServer) -> None:
    require(Capability.CHOSEN_SIDS, Capability.TRANSACTION_IDS)
    with database(server) as other, login(server, own_sid()) as at:
        name = other.endpoint.database
        with other.session("dpone test", 60) as own:
            own.run(
                "EXEC(N'CREATE PROCEDURE dbo.seen AS SELECT SUSER_SID(), CURRENT_TRANSACTION_ID(), @@TRANCOUNT,"
                " CONVERT(nvarchar(10), SESSION_CONTEXT(N''k''));');"
            )
            own.run(f"CREATE USER [{at.credential.user}] FOR LOGIN [{at.credential.user}];")
            own.run(f"GRANT EXECUTE ON OBJECT::dbo.seen TO [{at.credential.user}];")
        with at.session("dpone test: issued", 60) as issued:
            issued.run("EXEC sys.sp_set_session_context @key = N'k', @value = N'v'; BEGIN TRANSACTION;")
            here = "SELECT SUSER_SID(), CURRENT_TRANSACTION_ID(), @@TRANCOUNT, N'v';"
            assert issued.row(f"EXEC [{name}].dbo.seen;") == issued.row(here)
            issued.run("ROLLBACK TRANSACTION;")


def test_settings_and_triggers_have_the_numbers_that_are_told_apart(server: MssqlServer) -> None:
    require(Capability.NATIVE_NUMBERS, Capability.CONTROL_OBJECTS)
    with server.session("dpone test", 60) as own, schema(own) as name:
        own.run(f"CREATE TABLE [{name}].t (id int NOT NULL, live bit NOT NULL);")
        own.run(f"CREATE UNIQUE INDEX one_live ON [{name}].t (live) WHERE live = 1;")
        own.run(f"INSERT INTO [{name}].t VALUES (1, 1);")
        assert number(own, f"INSERT INTO [{name}].t VALUES (2, 1);") == 2601
        assert number(own, f"SET QUOTED_IDENTIFIER OFF; EXEC(N'INSERT INTO [{name}].t VALUES (2, 0);');") == 1934
        own.run(
            f"SET QUOTED_IDENTIFIER ON; EXEC(N'CREATE TRIGGER [{name}].fires ON [{name}].t AFTER INSERT AS RETURN;');"
        )
        assert number(own, f"INSERT INTO [{name}].t OUTPUT inserted.id VALUES (3, 0);") == 334


def test_switch_keeps_the_targets_identity_and_grants(server: MssqlServer) -> None:
    require(Capability.SWITCH)
    with server.session("dpone test", 60) as own, schema(own) as name:
        for table in ("target", "staged"):
            own.run(f"CREATE TABLE [{name}].{table} (id int NOT NULL PRIMARY KEY);")
        own.run(f"GRANT SELECT ON OBJECT::[{name}].target TO public; INSERT INTO [{name}].target VALUES (1);")
        own.run(f"INSERT INTO [{name}].staged VALUES (2), (3);")
        query = (
            f"SELECT OBJECT_ID(N'[{name}].target'), (SELECT COUNT(*) FROM sys.database_permissions"
            f" WHERE major_id = OBJECT_ID(N'[{name}].target'));"
        )
        before = own.row(query)
        with own.transaction():
            own.run(f"TRUNCATE TABLE [{name}].target;")
            own.run(f"ALTER TABLE [{name}].staged SWITCH TO [{name}].target;")
        assert own.row(query) == before
        assert own.rows(f"SELECT id FROM [{name}].target ORDER BY id;") == [(2,), (3,)]


def test_readers_go_on_while_the_content_is_replaced_under_row_versions(server: MssqlServer) -> None:
    require(Capability.HELD_LOCKS)
    with database(server, "READ_COMMITTED_SNAPSHOT ON") as at, at.session("dpone test", 60) as own:
        own.run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY); INSERT INTO dbo.t VALUES (1);")
        with at.session("dpone test: reader", 2) as reader:
            own.run("BEGIN TRANSACTION; SELECT TOP (1) 1 AS held FROM dbo.t WITH (TABLOCKX, HOLDLOCK);")
            own.run("DELETE FROM dbo.t WITH (TABLOCK); INSERT INTO dbo.t WITH (TABLOCK) VALUES (2);")
            assert reader.rows("SELECT id FROM dbo.t;") == [(1,)]
            own.run("COMMIT TRANSACTION;")
            assert reader.rows("SELECT id FROM dbo.t;") == [(2,)]


@contextmanager
def source(server: MssqlServer, rows: int) -> Iterator[tuple[Session, Relation, MssqlReader]]:
    """Give a table that a login of its own may read and nothing else."""
    with server.session("dpone test", 60) as own, schema(own) as name, login(server) as at:
        own.run(f"CREATE TABLE [{name}].t (id bigint NOT NULL PRIMARY KEY, name nvarchar(max) NULL);")
        own.run(
            f"WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
            f" INSERT INTO [{name}].t SELECT i, N'n' FROM n OPTION (MAXRECURSION 0);"
        )
        own.run(f"GRANT SELECT ON SCHEMA::[{name}] TO [{at.credential.user}];")
        try:
            yield own, Relation(name, "t"), MssqlReader(at, seconds=60)
        finally:
            own.run(f"REVOKE SELECT ON SCHEMA::[{name}] FROM [{at.credential.user}];")


def test_a_snapshot_is_not_touched_by_what_is_committed_meanwhile(server: MssqlServer) -> None:
    require(Capability.SNAPSHOTS, Capability.CATALOG)
    with source(server, 20_000) as (own, relation, reader):
        with reader.snapshot(relation, COLUMNS, ("id",), WIDE) as snapshot:
            found = snapshot.batches()
            seen = len(next(found))
            table = f"[{relation.schema}].t"
            own.run(f"DELETE FROM {table} WHERE id % 2 = 0; INSERT INTO {table} VALUES (0, N'');")
            seen += sum(len(batch) for batch in found)
        assert (seen, snapshot.rows) == (20_000, 20_000)


def test_a_definition_that_changes_under_a_snapshot_ends_it(server: MssqlServer) -> None:
    require(Capability.SNAPSHOTS, Capability.CATALOG, Capability.UNLOCKED_SNAPSHOTS)
    with source(server, 10) as (own, relation, reader):
        with reader.snapshot(relation, COLUMNS, ("id",), WIDE) as snapshot:
            own.run(f"ALTER TABLE [{relation.schema}].t ADD more int NULL;")
            with pytest.raises(DponeError) as raised:
                list(snapshot.batches())
        assert raised.value.failure.problem.reason == "source_broke"


def test_text_that_is_no_unicode_is_never_read_as_other_text(server: MssqlServer) -> None:
    require(Capability.SNAPSHOTS, Capability.CATALOG, Capability.UTF16)
    with source(server, 1) as (own, relation, reader):
        own.run(f"UPDATE [{relation.schema}].t SET name = N'a' + NCHAR(55357) + N'b';")
        with pytest.raises(DponeError), reader.snapshot(relation, COLUMNS, ("id",), WIDE) as snapshot:
            list(snapshot.batches())


def test_a_lock_that_is_waited_for_has_its_number(server: MssqlServer) -> None:
    require(Capability.HELD_LOCKS)
    with server.session("dpone test", 60) as own, schema(own) as name:
        own.run(f"CREATE TABLE [{name}].t (id int);")
        with own.transaction(), server.session("dpone test: waiting", 60) as other:
            own.run(f"SELECT TOP (1) 1 AS held FROM [{name}].t WITH (TABLOCKX, HOLDLOCK);")
            with pytest.raises(ServerError) as raised:
                other.rows(f"SET LOCK_TIMEOUT 100; SELECT COUNT(*) FROM [{name}].t;")
            assert raised.value.meaning is Meaning.LOCK_TIMEOUT


class Source:
    """`ReaderStage` on the given server: tables in one schema, read through a login that has SELECT only."""

    def __init__(self, own: Session, name: str, at: MssqlServer) -> None:
        self.own, self.name, self.made = own, name, 0
        self.reader = MssqlReader(at, seconds=60)
        self.unreachable = MssqlReader(replace(at, endpoint=replace(at.endpoint, port=1)), seconds=1)

    def table(self, rows: int) -> Relation:
        """Make one with so many rows."""
        self.made += 1
        relation = Relation(self.name, f"t{self.made}")
        table = f"[{self.name}].[{relation.name}]"
        self.own.run(f"CREATE TABLE {table} (id bigint NOT NULL PRIMARY KEY, name nvarchar(max) NULL);")
        self.own.run(
            f"WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) INSERT INTO {table}"
            f" SELECT i, CASE WHEN i % 3 > 0 THEN CONCAT(N'n', i) END FROM n WHERE i <= {rows} OPTION (MAXRECURSION 0);"
        )
        return relation

    def change(self, relation: Relation) -> None:
        """Delete one row and add two."""
        table = f"[{relation.schema}].[{relation.name}]"
        self.own.run(f"DELETE FROM {table} WHERE id = 1; INSERT INTO {table} VALUES (1001, N'x'), (1002, N'y');")


class TestGivenReader(ReaderSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self) -> Iterator[Source]:
        """Give a source."""
        server = require(Capability.SNAPSHOTS, Capability.CATALOG).server
        with server.session("dpone test", 60) as own, schema(own) as name, login(server) as at:
            own.run(f"GRANT SELECT ON SCHEMA::[{name}] TO [{at.credential.user}];")
            try:
                yield Source(own, name, at)
            finally:
                own.run(f"REVOKE SELECT ON SCHEMA::[{name}] FROM [{at.credential.user}];")
