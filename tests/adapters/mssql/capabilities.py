"""What a test needs of a server, each asked of the server itself: a server that is not SQL Server lacks some of it.

A probe does the thing that it is about, in names of its own, and leaves nothing behind. What the server answers is the
reason that a skipped test tells. Where every test must run (``DPONE_TEST_REQUIRE_ALL``), a skip is a failure, whoever
says it: `tests/conftest.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from secrets import token_hex
from types import MappingProxyType
from typing import Final

from dpone_provider.adapters.mssql.definitions import read
from dpone_provider.adapters.mssql.errors import LoginRefused, Meaning, ServerError
from dpone_provider.adapters.mssql.logins import SALT_BYTES, password_hash
from dpone_provider.adapters.mssql.names import binary, qualified
from dpone_provider.adapters.mssql.observation import effects_of
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.application.relational.definitions import Standing
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.secret import Secret

SECONDS: Final = 60.0


class Capability(StrEnum):
    """One ability of SQL Server, as a skipped test names it."""

    LOGON_TRIGGERS = "LOGON triggers"
    CHOSEN_SIDS = "logins with a SID of ours"
    HASHED_PASSWORDS = "logins made from a password's hash"
    SIGNED_MODULES = "procedures that are signed by a certificate"
    SERVER_PERMISSIONS = "permissions on the server, granted and asked for"
    DDL_TRIGGERS = "DDL triggers"
    SESSION_VIEWS = "the views that show every session, its login and its transactions"
    SNAPSHOTS = "snapshot isolation in the given database"
    HELD_LOCKS = "lock hints that take locks and keep them"
    NATIVE_NUMBERS = "SQL Server's own error numbers"
    TICKS = "time in steps of 100 nanoseconds"
    CODE_PAGES = "text of several code pages, and of UTF-8, in one database"
    SWITCH = "ALTER TABLE … SWITCH"
    CONTROL_OBJECTS = "CHECK constraints, filtered indexes and triggers as the control schema has them"
    TRANSACTION_IDS = "CURRENT_TRANSACTION_ID() and session context"
    UTF16 = "text of any 16-bit units, unpaired surrogates and NUL included"
    CATALOG = "the catalog views that definitions are read from"
    KEYS = "keys and indexes in the catalog views"
    NAMES = "names of any characters"
    ALTER_COLUMN = "ALTER COLUMN … NOT NULL"
    UNLOCKED_SNAPSHOTS = "snapshots that keep no lock on what they have read"
    EFFECTS = "the catalog views that tell what writing a table would meet"
    QUERY_LABELS = "labels of statements, which dbt-sqlserver gives to what it runs"
    ENCRYPTION_VIEW = "the view that shows whether a connection is encrypted"


class Lacking(Exception):
    """The server has not got it: in its own words, or in what it answered instead."""


Probe = Callable[[Session, MssqlServer], None]


def lacks(capability: Capability, server: MssqlServer) -> str | None:
    """Return why the server has not got it, None if it has."""
    try:
        with server.session("dpone probe", SECONDS) as own:
            PROBES[capability](own, server)
    except (ServerError, LoginRefused, Lacking) as error:
        return " ".join(str(error).split())
    return None


def _runs(*batches: str) -> Probe:
    """Return a probe that runs batches in a transaction that is rolled back; ``{name}`` is a fresh name."""

    def probe(own: Session, server: MssqlServer) -> None:
        name = f"dpone_probe_{token_hex(6)}"
        own.run("BEGIN TRANSACTION;")
        try:
            for batch in batches:
                own.run(batch.replace("{name}", name))
        finally:
            own.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")

    return probe


def _gives(query: str, wanted: object) -> Probe:
    """Return a probe of one value."""

    def probe(own: Session, server: MssqlServer) -> None:
        (found,) = own.row(query)
        if found != wanted:
            raise Lacking(f"it answers {found!r}, where SQL Server answers {wanted!r}")

    return probe


def _chosen_sid(own: Session, server: MssqlServer) -> None:
    name, sid = f"dpone_probe_{token_hex(6)}", "0x64706F6E65FF" + token_hex(10).upper()
    password = token_hex(16) + "aA1!"
    try:
        own.run(f"CREATE LOGIN [{name}] WITH PASSWORD = N'{password}', SID = {sid};")
        (found,) = own.row(f"SELECT CONVERT(varchar(100), SUSER_SID(N'{name}'), 1);")
        if str(found).upper() != sid.upper():
            raise Lacking(f"the login got the SID {found}, not the one that was asked for")
    finally:
        own.run(f"IF SUSER_ID(N'{name}') IS NOT NULL DROP LOGIN [{name}];")


def _logon_trigger(own: Session, server: MssqlServer) -> None:
    """Made disabled, and gone again: nobody's logon meets it."""
    name = f"dpone_probe_{token_hex(6)}"
    try:
        own.run(
            f"EXEC(N'CREATE TRIGGER [{name}] ON ALL SERVER FOR LOGON AS RETURN;');"
            f" EXEC(N'DISABLE TRIGGER [{name}] ON ALL SERVER;');"
        )
        _gives(f"SELECT COUNT(*) FROM sys.server_triggers WHERE name = N'{name}' AND is_disabled = 1;", 1)(own, server)
    finally:
        own.run(
            f"IF EXISTS (SELECT 1 FROM sys.server_triggers WHERE name = N'{name}')"
            f" EXEC(N'DROP TRIGGER [{name}] ON ALL SERVER;');"
        )


def _held_locks(own: Session, server: MssqlServer) -> None:
    """One session keeps a row under REPEATABLEREAD; another must not be able to change it."""
    name = f"dpone_probe_{token_hex(6)}"
    own.run(f"CREATE TABLE [{name}] (id int NOT NULL PRIMARY KEY, n int NOT NULL); INSERT INTO [{name}] VALUES (1, 0);")
    try:
        with own.transaction(), server.session("dpone probe: waiting", SECONDS) as other:
            own.rows(f"SELECT n FROM [{name}] WITH (REPEATABLEREAD, ROWLOCK) WHERE id = 1;")
            try:
                other.run(f"SET LOCK_TIMEOUT 200; UPDATE [{name}] SET n = 1 WHERE id = 1;")
            except ServerError as error:
                if error.meaning is Meaning.LOCK_TIMEOUT:
                    return
                raise Lacking(f"a time-out for the lock comes as {error}") from None
            raise Lacking("a row that a REPEATABLEREAD hint has read is changed by another session at once")
    finally:
        own.run(f"IF OBJECT_ID(N'{name}') IS NOT NULL DROP TABLE [{name}];")


def _native_numbers(own: Session, server: MssqlServer) -> None:
    wanted = {
        "SELECT * FROM dpone_probe_of_nothing;": Meaning.ABSENT,
        "SELECT CONVERT(int, N'x');": Meaning.CONVERSION,
        "DECLARE @t table (id int PRIMARY KEY); INSERT INTO @t VALUES (1), (1);": Meaning.UNIQUE,
        "CREATE TABLE #t (n nvarchar(1)); INSERT INTO #t VALUES (N'xx');": Meaning.TRUNCATION,
        "CREATE TABLE #u (n int CHECK (n > 0)); INSERT INTO #u VALUES (-1);": Meaning.CONSTRAINT,
    }
    for batch, meaning in wanted.items():
        try:
            own.run(batch)
        except ServerError as error:
            if error.meaning is not meaning:
                raise Lacking(f"{batch} comes as {error}") from None
        else:
            raise Lacking(f"{batch} is no error")


def _sees_sessions(own: Session, server: MssqlServer) -> None:
    """Every column that closing a gate reads, of a system's session too."""
    query = (
        "SELECT COUNT(*) FROM sys.dm_exec_sessions AS s"
        " LEFT JOIN sys.dm_tran_session_transactions AS t ON t.session_id = s.session_id"
        " WHERE s.is_user_process = 0 AND s.original_security_id IS NOT NULL AND s.security_id IS NOT NULL;"
    )
    (found,) = own.row(query)
    own.rows("SELECT TOP (1) transaction_id FROM sys.dm_tran_active_transactions;")
    own.rows("SELECT TOP (1) request_session_id FROM sys.dm_tran_locks;")
    if not found:
        raise Lacking("no session of the system is shown")


def _catalog(own: Session, server: MssqlServer) -> None:
    read(own, [Relation("dbo", "dpone_probe_of_nothing")])


def _keys(own: Session, server: MssqlServer) -> None:
    name = f"dpone_probe_{token_hex(6)}"
    try:
        own.run(f"CREATE TABLE [{name}] (id int NOT NULL PRIMARY KEY, n int); CREATE INDEX [{name}_x] ON [{name}] (n);")
        (found,) = read(own, [Relation("dbo", name)])
        if not isinstance(found, Standing) or found.primary_key != ("id",) or len(found.indexes) != 1:
            raise Lacking(f"a table with a primary key and an index is told as {found}")
    finally:
        own.run(f"DROP TABLE IF EXISTS [{name}];")


def _names(own: Session, server: MssqlServer) -> None:
    name = f"dpone_probe_{token_hex(6)}"
    table = qualified(Relation("dbo", name + ' "].'))
    try:
        own.run(f'CREATE TABLE {table} ([a]] "b] int);')
        (found,) = own.row(
            f"SELECT COUNT(*) FROM sys.columns WHERE object_id = OBJECT_ID(N'{table}') AND name = N'a] \"b';"
        )
        if found != 1:
            raise Lacking("a table and a column with quotes and brackets in their names are not found again")
    finally:
        own.run(f"DROP TABLE IF EXISTS {table};")


def _unlocked_snapshots(own: Session, server: MssqlServer) -> None:
    name = f"dpone_probe_{token_hex(6)}"
    own.run(f"CREATE TABLE [{name}] (id int);")
    try:
        own.run(f"SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION; SELECT COUNT(*) FROM [{name}];")
        with server.session("dpone probe: beside", SECONDS) as other:
            other.run(f"SET LOCK_TIMEOUT 500; ALTER TABLE [{name}] ADD n int NULL;")
    finally:
        own.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION; SET TRANSACTION ISOLATION LEVEL READ COMMITTED;")
        own.run(f"DROP TABLE IF EXISTS [{name}];")


def _effects(own: Session, server: MssqlServer) -> None:
    effects_of(own, ["1"])


def _hashed_password(own: Session, server: MssqlServer) -> None:
    """A login from a hash lets its password in."""
    name, secret = f"dpone_probe_{token_hex(6)}", Secret(token_hex(32))
    hashed = binary(password_hash(secret, bytes(SALT_BYTES)))
    try:
        own.run(f"CREATE LOGIN [{name}] WITH PASSWORD = {hashed} HASHED, CHECK_POLICY = OFF;")
        own.run(f"CREATE USER [{name}] FOR LOGIN [{name}];")
        with MssqlServer(server.endpoint, Credential(name, secret)).session("dpone probe: hashed", SECONDS):
            pass
    except LoginRefused:
        raise Lacking("a login that was made from a hash is not let in with its password") from None
    finally:
        own.run(
            f"IF USER_ID(N'{name}') IS NOT NULL DROP USER [{name}];"
            f" IF SUSER_ID(N'{name}') IS NOT NULL DROP LOGIN [{name}];"
        )


PROBES: Final[Mapping[Capability, Probe]] = MappingProxyType(
    {
        Capability.LOGON_TRIGGERS: _logon_trigger,
        Capability.CHOSEN_SIDS: _chosen_sid,
        Capability.HASHED_PASSWORDS: _hashed_password,
        Capability.SIGNED_MODULES: _runs(
            "CREATE CERTIFICATE [{name}] ENCRYPTION BY PASSWORD = N'probe-aA1!-probe' WITH SUBJECT = N'probe';",
            "EXEC(N'CREATE PROCEDURE [{name}_p] AS RETURN 0;');",
            "ADD SIGNATURE TO [{name}_p] BY CERTIFICATE [{name}] WITH PASSWORD = N'probe-aA1!-probe';",
        ),
        Capability.SERVER_PERMISSIONS: _gives(
            "SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINITION') + COUNT(*)"
            " FROM (SELECT TOP (1) 1 AS one FROM sys.server_permissions) AS p;",
            2,
        ),
        Capability.DDL_TRIGGERS: _runs(
            "EXEC(N'CREATE TRIGGER [{name}] ON DATABASE FOR CREATE_PROCEDURE AS ROLLBACK;');"
        ),
        Capability.SESSION_VIEWS: _sees_sessions,
        Capability.SNAPSHOTS: _gives(
            "SELECT CONVERT(int, COALESCE(MAX(snapshot_isolation_state), 0)) FROM sys.databases"
            " WHERE database_id = DB_ID();",
            1,
        ),
        Capability.HELD_LOCKS: _held_locks,
        Capability.NATIVE_NUMBERS: _native_numbers,
        Capability.TICKS: _gives(
            "SELECT CONVERT(varchar(40), CONVERT(datetime2(7), '2026-01-02T03:04:05.1234567'), 126);",
            "2026-01-02T03:04:05.1234567",
        ),
        Capability.CODE_PAGES: _runs(
            "CREATE TABLE [{name}] (a varchar(9) COLLATE Latin1_General_100_CI_AS_SC_UTF8 NULL,"
            " b varchar(9) COLLATE Japanese_CI_AS NULL, c varchar(9) COLLATE Cyrillic_General_CI_AS NULL);"
        ),
        Capability.SWITCH: _runs(
            "CREATE TABLE [{name}_a] (id int NOT NULL); CREATE TABLE [{name}_b] (id int NOT NULL);",
            "ALTER TABLE [{name}_a] SWITCH TO [{name}_b];",
        ),
        Capability.CONTROL_OBJECTS: _runs(
            "CREATE TABLE [{name}] (id varchar(64) COLLATE Latin1_General_100_BIN2 NOT NULL"
            " CONSTRAINT [{name}_k] PRIMARY KEY, live bit NOT NULL,"
            " CONSTRAINT [{name}_c] CHECK (id NOT LIKE '%[^0-9a-f]%'));",
            "CREATE UNIQUE INDEX [{name}_f] ON [{name}] (live) WHERE live = 1;",
            "INSERT INTO [{name}] VALUES ('0a', 1), ('0b', 0), ('0c', 0);",
            "EXEC(N'CREATE TRIGGER [{name}_t] ON [{name}] AFTER INSERT, UPDATE AS BEGIN SET NOCOUNT ON;"
            " IF EXISTS (SELECT 1 FROM inserted WHERE id = ''ff'') THROW 51000, N''refused'', 1; END;');",
        ),
        Capability.TRANSACTION_IDS: _runs(
            "IF CURRENT_TRANSACTION_ID() IS NULL THROW 51000, N'no transaction id', 1;"
            " EXEC sys.sp_set_session_context @key = N'probe', @value = N'1';"
            " IF SESSION_CONTEXT(N'probe') <> N'1' THROW 51000, N'no session context', 1;"
        ),
        Capability.UTF16: _gives(
            "SELECT CONVERT(varchar(20), CONVERT(varbinary(8), N'a' + NCHAR(0) + NCHAR(55357)), 2);", "610000003DD8"
        ),
        Capability.CATALOG: _catalog,
        Capability.KEYS: _keys,
        Capability.NAMES: _names,
        Capability.ALTER_COLUMN: _runs(
            "CREATE TABLE [{name}] (id int NOT NULL);", "ALTER TABLE [{name}] ALTER COLUMN id bigint NOT NULL;"
        ),
        Capability.UNLOCKED_SNAPSHOTS: _unlocked_snapshots,
        Capability.EFFECTS: _effects,
        Capability.QUERY_LABELS: _runs("SELECT 1 AS n OPTION (LABEL = 'dpone probe');"),
        Capability.ENCRYPTION_VIEW: _gives(
            "SELECT COUNT(*) FROM sys.dm_exec_connections WHERE session_id = @@SPID AND encrypt_option IS NOT NULL;", 1
        ),
    }
)
