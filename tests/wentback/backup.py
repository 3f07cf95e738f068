"""A backup of the ledger's rows, put back by a superuser's hand: the ledger goes back, its database does not."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpone_provider.adapters.ledger.tables import METADATA, SCHEMA
from dpone_provider.lab.admin import connected_admin
from dpone_provider.lab.provisioning import WAREHOUSE
from dpone_provider.lab.state import LabState

TABLES = tuple(table.name for table in METADATA.tables.values())


@dataclass(slots=True)
class Backup:
    """The rows of every table of the ledger, and where its sequence stood, at one instant."""

    lab: LabState
    database: str = WAREHOUSE
    sequence: int = field(init=False)

    def __post_init__(self) -> None:
        """Take it."""
        with connected_admin(self.lab, self.database) as connection, connection.transaction():
            connection.execute("DROP SCHEMA IF EXISTS backup CASCADE")
            connection.execute("CREATE SCHEMA backup")
            for table in TABLES:
                connection.execute(f"CREATE TABLE backup.{table} AS SELECT * FROM {SCHEMA}.{table}".encode())
            row = connection.execute(f"SELECT last_value FROM {SCHEMA}.ledger_sequence".encode()).fetchone()
            assert row is not None
            self.sequence = row[0]

    def restore(self) -> None:
        """Put it back, with every trigger and foreign key put aside."""
        with connected_admin(self.lab, self.database) as connection, connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")
            for table in TABLES:
                connection.execute(f"DELETE FROM {SCHEMA}.{table}".encode())
                back = f"INSERT INTO {SCHEMA}.{table} OVERRIDING SYSTEM VALUE SELECT * FROM backup.{table}"
                connection.execute(back.encode())
            connection.execute(f"SELECT setval('{SCHEMA}.ledger_sequence', {self.sequence})".encode())
