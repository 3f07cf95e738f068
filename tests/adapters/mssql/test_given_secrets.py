"""[S] What only a server shows of secrets and of a control database that is not as it shall be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex

import pytest

from dpone_provider.adapters.mssql import logins
from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.names import filled, identifier, literal
from dpone_provider.domain.secret import Secret
from tests.adapters.mssql.given_world import STATEMENTS, GivenWorld
from tests.adapters.mssql.installed import CONTROL
from tests.waiting import wait_until

pytestmark = pytest.mark.mssql


@contextmanager
def tracing(world: GivenWorld) -> Iterator[str]:
    """Trace every statement of the server while the block runs; give the trace's name."""
    name = f"dpone_test_{token_hex(6)}"
    trace = identifier(name)
    try:
        with world.administrator("master") as own:
            own.run(filled(STATEMENTS["make_trace"], trace=trace))
            own.run(filled(STATEMENTS["start_trace"], trace=trace))
        yield name
    finally:
        with world.administrator("master") as own:
            own.run(filled(STATEMENTS["drop_trace"], trace=trace, trace_text=literal(name)))


def traced(world: GivenWorld, name: str, until: str) -> str:
    """Return everything that was traced, as soon as ``until`` is in it."""
    with world.administrator("master") as own:

        def seen() -> str:
            text = "".join(str(one) for (one,) in own.rows(STATEMENTS["traced"], {"trace": name}))
            return text if until in text else ""

        return wait_until(seen, what=f"{until} in the trace", seconds=60)


def test_no_trace_shows_a_password_of_an_issued_login(world: GivenWorld) -> None:
    """[S] A hash keeps the clear text out of traces: calls, batches, and the statements inside procedures."""
    principal = world.journaled(world.attempt().attempt_id)
    with tracing(world) as name:
        credential = world.issued(principal)
        with world.log_in(credential) as own:
            own.run("SELECT N'the last that is traced';")
        text = traced(world, name, "the last that is traced")
    assert "issue_login" in text
    assert credential.password.reveal() not in text
    world.closed(principal)


def test_the_servers_own_hash_of_the_password_is_the_one_that_was_sent(world: GivenWorld) -> None:
    """CREATE LOGIN … HASHED takes version 0x0200 and keeps it as it is; the ledger keeps none of it."""
    principal, credential = world.issued_anew()
    with world.administrator("master") as own:
        kept, right, wrong = own.row(
            "SELECT CONVERT(varbinary(256), password_hash), PWDCOMPARE(@right, password_hash),"
            " PWDCOMPARE(@wrong, password_hash) FROM sys.sql_logins WHERE name = @name;",
            {"name": principal.name, "right": credential.password.reveal(), "wrong": "wrong"},
        )
    assert (right, wrong) == (1, 0)
    again = logins.password_hash(Secret(credential.password.reveal()), bytes(kept)[2:6])
    assert bytes(kept) == again or bytes(kept)[:2] != bytes.fromhex("0200")


def test_an_issued_login_has_no_right_on_the_server(world: GivenWorld) -> None:
    """CONNECT and what public has: no role, no permission, its own databases."""
    _, credential = world.issued_anew()
    with world.log_in(credential) as own:
        held = {name for (name,) in own.rows("SELECT permission_name FROM sys.fn_my_permissions(NULL, N'SERVER');")}
        roles = own.rows(
            "SELECT r.name FROM sys.server_role_members AS m JOIN sys.server_principals AS r"
            " ON r.principal_id = m.role_principal_id WHERE m.member_principal_id = SUSER_ID();"
        )
        databases = {name for (name,) in own.rows("SELECT name FROM sys.databases WHERE HAS_DBACCESS(name) = 1;")}
    assert held <= {"CONNECT SQL", "VIEW ANY DATABASE"}
    assert roles == []
    ours = {world.instance.values[name] for name in ("control_database", "target_database")}
    assert databases <= {"master", "tempdb", "msdb", *ours}
    assert ours <= databases


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("READ_COMMITTED_SNAPSHOT ON", "READ_COMMITTED_SNAPSHOT is on"),
        ("DELAYED_DURABILITY = ALLOWED", "delayed durability is allowed"),
        ("TRUSTWORTHY ON", "TRUSTWORTHY is on"),
        ("DB_CHAINING ON", "cross-database ownership chaining is on"),
        ("AUTO_CLOSE ON", "AUTO_CLOSE is on"),
        ("READ_ONLY", "not online for everybody to write"),
        ("COMPATIBILITY_LEVEL = 140", "the compatibility level is below 150"),
    ],
)
def test_a_control_database_that_was_not_tested_so_is_refused(world: GivenWorld, setting: str, said: str) -> None:
    """[S] Row versions in the control database are refused by the script that would install the ledger in it."""
    name = f"dpone_test_refused_{token_hex(4)}"
    with world.administrator("master") as own:
        own.run(f"CREATE DATABASE [{name}] COLLATE Latin1_General_100_BIN2;")
        try:
            own.run(f"ALTER DATABASE [{name}] SET {setting};")
            with pytest.raises(ServerError, match=said):
                world.instance.run_with(CONTROL[0], control_database=name)
        finally:
            own.run(f"ALTER DATABASE [{name}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE [{name}];")


def test_a_control_database_of_another_collation_is_refused(world: GivenWorld) -> None:
    name = f"dpone_test_refused_{token_hex(4)}"
    with world.administrator("master") as own:
        own.run(f"CREATE DATABASE [{name}] COLLATE Latin1_General_100_CI_AS;")
        try:
            with pytest.raises(ServerError, match="the collation is"):
                world.instance.run_with(CONTROL[0], control_database=name)
        finally:
            own.run(f"ALTER DATABASE [{name}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE; DROP DATABASE [{name}];")


def test_the_ledgers_schema_alone_cannot_be_written_by_an_ordinary_user(world: GivenWorld) -> None:
    """The reader's login has no user in the control database: not even its name can be used there."""
    at = world.instance.at(world.instance.values["control_database"])
    server = world.instance.administrator
    reader = type(server)(at, world.instance.reader)
    with pytest.raises(Exception, match=r"4060|Cannot open database"), reader.session("dpone test", 20):
        pass
