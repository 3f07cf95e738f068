"""A control database on the given SQL Server, installed by the shipped scripts, and emptied between tests.

Emptying puts triggers and foreign keys aside, as nobody may delete a row of the ledger, the administrator included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dpone_provider.adapters.ledger.mssql import MssqlDialect
from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from dpone_provider.adapters.mssql.lending import MssqlLender
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.system.clock import SystemClock
from tests.adapters.mssql.capabilities import Capability
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.installed import NEEDED, Instance, installed
from tests.conformance.ledger_world import WAREHOUSE

KEPT = ("schema_version", "authority")
TABLES = tuple(table.name for table in METADATA.tables.values() if table.name not in KEPT)
LEDGER_NEEDS = (*NEEDED, Capability.HELD_LOCKS, Capability.NATIVE_NUMBERS)
"""What the contract of a ledger rests on, beside what its installation uses."""


@dataclass(frozen=True)
class GivenControl:
    """One control database, as its administrator has it."""

    instance: Instance

    def ledger(self) -> SqlLedger:
        """Return the adapter's ledger, as the controller."""
        at = self.instance.control
        return SqlLedger(MssqlDialect(MssqlLender(at.endpoint, at.credential)), SystemClock())

    def go_back(self) -> None:
        """Let the ledger's row name another incarnation than its server is in."""
        self._unlawfully(("authority",), (f"UPDATE {SCHEMA}.authority SET incarnation = 'elsewhere/1';",))

    def empty(self) -> None:
        """Delete every row but who the ledger is, which becomes what it was."""
        authority_id = self.instance.values["authority_id"]
        was = (
            f"UPDATE {SCHEMA}.authority SET authority_id = '{authority_id}',"
            f" incarnation = {SCHEMA}.observed_incarnation();"
        )
        named = (*TABLES, "unsettled")
        self._unlawfully((*named, "authority"), (*(f"DELETE FROM {SCHEMA}.{one};" for one in named), was))

    def _unlawfully(self, tables: tuple[str, ...], statements: tuple[str, ...]) -> None:
        off = (f"ALTER TABLE {SCHEMA}.{one} NOCHECK CONSTRAINT ALL;" for one in tables)
        silent = (f"DISABLE TRIGGER ALL ON {SCHEMA}.{one};" for one in tables)
        on = (f"ALTER TABLE {SCHEMA}.{one} WITH CHECK CHECK CONSTRAINT ALL;" for one in tables)
        heard = (f"ENABLE TRIGGER ALL ON {SCHEMA}.{one};" for one in tables)
        control = MssqlServer(self.instance.control.endpoint, self.instance.administrator.credential)
        with control.session("dpone test", 60) as own:
            for batch in (*off, *silent, *statements, *on, *heard):
                own.run(batch)


@contextmanager
def given_control() -> Iterator[GivenControl]:
    """Install everything on the given server, its gate that of the world's warehouse, and take it out at the end.

    Skips where the server lacks what the ledger needs.
    """
    with installed(require(*LEDGER_NEEDS).server, WAREHOUSE.service_id) as instance:
        yield GivenControl(instance)
