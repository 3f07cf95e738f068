"""`sql/mssql` run on the given server, as an administrator does it: a control database, one target, a gate."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Final

from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.errors import ERRORS
from dpone_provider.adapters.mssql.names import filled, identifier
from dpone_provider.adapters.mssql.session import MssqlServer, Session, close_raw, open_raw
from dpone_provider.application.installation import shipped
from dpone_provider.application.installation.rendering import fill_in, variables
from dpone_provider.application.installation.tsql import batches
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import load, shipped_sql
from tests.adapters.mssql.capabilities import Capability
from tests.waiting import wait_until_none

NEEDED: Final = (
    Capability.CATALOG,
    Capability.CHOSEN_SIDS,
    Capability.CONTROL_OBJECTS,
    Capability.DDL_TRIGGERS,
    Capability.HASHED_PASSWORDS,
    Capability.LOGON_TRIGGERS,
    Capability.SERVER_PERMISSIONS,
    Capability.SESSION_VIEWS,
    Capability.SIGNED_MODULES,
    Capability.TRANSACTION_IDS,
)
"""What every script of the installation uses."""
CONTROL: Final = (*shipped.CONTROL, "030_signatures.sql", "021_enable_gate.sql")
TARGET: Final = ("040_enrol_target.sql", "045_enrol_schema.sql")
SCHEMA: Final = "stage"
SCRIPT_SECONDS: Final = 120.0
STATEMENTS: Final = load(Path(__file__).with_name("given.sql"))


@dataclass(frozen=True)
class Instance:
    """An instance on which everything is installed, in databases and for logins of the tests' own."""

    administrator: MssqlServer
    values: Mapping[str, str]
    controller: Credential
    reader: Credential
    """May read what issued logins write, and nothing else."""

    @property
    def control(self) -> MssqlServer:
        """The control database, as the controller reaches it."""
        return MssqlServer(self.at(self.values["control_database"]), self.controller)

    @property
    def target(self) -> MssqlServer:
        """The target, as the controller reaches it."""
        return MssqlServer(self.at(self.values["target_database"]), self.controller)

    def at(self, database: str) -> Endpoint:
        """Return the endpoint of a database of the instance."""
        return replace(self.administrator.endpoint, database=database)

    def run(self, script: str) -> None:
        """Run one script, batch by batch, in a session of its own; the first error ends it."""
        self.run_with(script)

    def run_with(self, script: str, **other: str) -> None:
        """Run one script with some other values."""
        text = (shipped_sql("mssql") / script).read_text(encoding="utf-8")
        values = {**self.values, **other}
        filled = fill_in(text, {name: values[name] for name in variables(text)}, where=script)
        with self.administrator.session(f"dpone test: {script}", SCRIPT_SECONDS) as own:
            for batch in batches(filled):
                own.as_written(batch.text)


@contextmanager
def installed(
    server: MssqlServer, service_id: str | None = None, scripts: Iterable[str] = CONTROL
) -> Iterator[Instance]:
    """Install everything, and take everything out again, down to the databases, whatever happens in between."""
    made = _instance(server, service_id or str(uuid.uuid4()))
    with alone(server):
        try:
            _databases_and_logins(made)
            for script in (*scripts, *TARGET):
                made.run(script)
            yield made
        finally:
            _removed(made)


@contextmanager
def alone(server: MssqlServer) -> Iterator[None]:
    """Have the instance's one gate to oneself while the block runs: another run, or installation, waits or fails.

    So a gate of these tests that is found then is of a run that was killed, and makes way.
    """
    raw, sockets = open_raw(server.endpoint, server.credential, "dpone test: alone", SCRIPT_SECONDS)
    try:
        own = Session(raw, driver.pyodbc().Error)
        (got,) = own.row(STATEMENTS["take_instance"])
        assert got >= 0, f"another run of these tests has an installation on {server.endpoint}"
        own.run(STATEMENTS["drop_dead_gate"])
        (gates,) = own.row("SELECT COUNT(*) FROM sys.server_triggers WHERE name = N'dpone_gate';")
        assert gates == 0, f"{server.endpoint} has the gate of another installation, which is left alone"
        sweep(server)
        yield
    finally:
        close_raw(raw, sockets)


def sweep(server: MssqlServer, databases: Iterable[str] = ()) -> None:
    """End and drop every login of ours with its users in some databases, whatever a test left."""

    def left() -> str:
        try:
            with server.session("dpone test: sweep", SCRIPT_SECONDS) as own:
                own.run(STATEMENTS["end_our_sessions"])
                for database in databases:
                    own.run(filled(STATEMENTS["drop_our_users"], database=identifier(database)))
                own.run(STATEMENTS["drop_our_logins"])
                return ", ".join(str(session) for (session,) in own.rows(STATEMENTS["our_sessions"]))
        except ERRORS as error:
            return str(error)

    wait_until_none(left, what="the end of every login of ours", seconds=SCRIPT_SECONDS)


def _databases_and_logins(made: Instance) -> None:
    names = made.values
    with made.administrator.session("dpone test", SCRIPT_SECONDS) as own:
        own.run(f"CREATE DATABASE [{names['control_database']}] COLLATE Latin1_General_100_BIN2;")
        own.run(f"CREATE DATABASE [{names['target_database']}];")
        own.run(f"ALTER DATABASE [{names['target_database']}] SET ALLOW_SNAPSHOT_ISOLATION ON;")
        own.run(f"CREATE LOGIN [{names['controller_login']}] WITH PASSWORD = N'{made.controller.password.reveal()}';")
        own.run(f"CREATE LOGIN [{names['reader_login']}] WITH PASSWORD = N'{made.reader.password.reveal()}';")


def _instance(server: MssqlServer, service_id: str) -> Instance:
    tag = token_hex(4)
    values = {
        "authority_id": str(uuid.uuid4()),
        "control_database": f"dpone_test_control_{tag}",
        "controller_login": f"dpone_test_controller_{tag}",
        "family": "nonproduction",
        "reader_login": f"dpone_test_reader_{tag}",
        "schema": SCHEMA,
        "service_id": service_id,
        "target_database": f"dpone_test_target_{tag}",
    }
    controller, reader = (
        Credential(values[name], Secret(token_hex(16) + "aA1!")) for name in ("controller_login", "reader_login")
    )
    return Instance(server, values, controller, reader)


def _removed(made: Instance) -> None:
    """First the gate, so that nothing that goes wrong later keeps it."""
    for script in ("022_break_glass.sql", "090_remove_target.sql", "095_remove_control.sql"):
        with suppress(*ERRORS):
            made.run(script)
    names = made.values

    def left() -> str:
        """Whoever is still logged in is ended, and may count as logged in a moment longer."""
        try:
            with made.administrator.session("dpone test", SCRIPT_SECONDS) as own:
                own.run(STATEMENTS["drop_gate"])
                for name in ("controller_login", "reader_login"):
                    own.run(STATEMENTS["end_sessions_of"], {"login": names[name]})
                for name in ("target_database", "control_database"):
                    own.run(_without_database(names[name]))
                for name in ("controller_login", "reader_login"):
                    own.run(f"IF SUSER_ID(N'{names[name]}') IS NOT NULL DROP LOGIN [{names[name]}];")
        except ERRORS as error:
            return str(error)
        return ""

    wait_until_none(left, what="the end of an installation", seconds=SCRIPT_SECONDS)
    sweep(made.administrator)


def _without_database(name: str) -> str:
    """Whatever state a test left it in: one that is offline has no user to end."""
    return (
        f"IF CONVERT(nvarchar(60), DATABASEPROPERTYEX(N'{name}', N'Status')) = N'ONLINE'"
        f" ALTER DATABASE [{name}] SET SINGLE_USER WITH ROLLBACK IMMEDIATE;"
        f" IF DB_ID(N'{name}') IS NOT NULL DROP DATABASE [{name}];"
    )
