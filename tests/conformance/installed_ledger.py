"""A control schema on the lab's PostgreSQL: installed once per session, emptied between tests by the superuser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psycopg

from dpone_provider import lab
from dpone_provider.adapters.ledger.run import Hook
from dpone_provider.adapters.ledger.sql_ledger import SLEEPER_SECONDS
from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.time import Clock
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import shipped_sql
from tests.conformance.postgres_ledger import PostgresLedger

CONTROLLER = "dpone_controller"
AUTHORITY_ID = "5a1d4f0e-6a53-4b6f-9a39-0c8f6f2d7b11"
SYSTEM = SystemClock()
KEPT = ("schema_version", "authority")
SCRIPT = "010_control_schema.sql"
Admin = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class InstalledLedger:
    """A database with the control schema in it."""

    database: lab.LabDatabase

    def ledger(
        self,
        on_statement: Hook | None = None,
        sleeper_seconds: float = SLEEPER_SECONDS,
        clock: Clock = SYSTEM,
    ) -> PostgresLedger:
        """Return a ledger over the controller's login."""
        parts = urlsplit(self.database.controller.reveal())
        endpoint = Endpoint(
            kind=EngineKind.POSTGRES,
            host=self.database.host,
            port=self.database.port,
            database=self.database.name,
            tls=TlsMode.DISABLED,
        )
        credential = Credential(CONTROLLER, Secret(str(parts.password)))
        return PostgresLedger(endpoint, credential, clock, on_statement=on_statement, sleeper_seconds=sleeper_seconds)

    @contextmanager
    def admin(self) -> Iterator[Admin]:
        """Open a superuser's autocommit connection that finds the control schema's tables by their names."""
        with psycopg.connect(self.database.admin.reveal(), autocommit=True) as connection:
            connection.execute(f"SET search_path = {SCHEMA}")
            yield connection

    @contextmanager
    def controller(self) -> Iterator[Admin]:
        """Open the controller's own autocommit connection, likewise."""
        with psycopg.connect(self.database.controller.reveal(), autocommit=True) as connection:
            connection.execute(f"SET search_path = {SCHEMA}")
            yield connection

    def go_back(self) -> None:
        """Let the ledger's row name another incarnation than its server is in."""
        with self.admin() as connection:
            connection.execute(unlawfully("UPDATE authority SET incarnation = '1/2/00000003'"))

    def empty(self) -> None:
        """Delete every row but who the ledger is, which becomes what it was, with every trigger put aside."""
        tables = [table.name for table in METADATA.tables.values() if table.name not in KEPT]
        with self.admin() as connection:
            was = f"UPDATE authority SET authority_id = '{AUTHORITY_ID}', incarnation = observed_incarnation()"
            connection.execute(f"{unlawfully(was, *(f'DELETE FROM {name}' for name in tables))}")
            connection.execute(f"ALTER SEQUENCE {SCHEMA}.ledger_sequence RESTART")


def unlawfully(*statements: str) -> str:
    """Return one message that runs ``statements`` with every trigger and foreign key put aside: a superuser's hand."""
    return "; ".join(["BEGIN", "SET LOCAL session_replication_role = replica", *statements, "COMMIT"])


@contextmanager
def installed(state: lab.LabState) -> Iterator[InstalledLedger]:
    """Install the control schema in a new database."""
    with lab.fresh_database(state) as database:
        install(database)
        yield InstalledLedger(database)


def install(database: lab.LabDatabase, control_schema: str = SCHEMA) -> None:
    """Run the installation script as an administrator would."""
    variables = {
        "control_schema": control_schema,
        "controller_role": CONTROLLER,
        "authority_id": AUTHORITY_ID,
        "family": "nonproduction",
    }
    lab.run_admin_script(database.lab, database.name, shipped_sql("postgres") / SCRIPT, variables)
