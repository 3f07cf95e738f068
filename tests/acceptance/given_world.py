"""The lab with a given SQL Server as warehouse and control authority, and a place in it for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from dpone_provider import lab
from dpone_provider.adapters.mssql.names import identifier
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.identity import OccurrenceId
from dpone_provider.lab.clickhouse.given import given_clickhouse
from dpone_provider.lab.enrolment import enrol_once
from dpone_provider.lab.mssql.given import GivenServer, given_server
from dpone_provider.lab.state import write_private
from tests.acceptance.processes import Process, run
from tests.acceptance.wire import Wire
from tests.acceptance.world import Place, World
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.installed import NEEDED
from tests.interleaving.mssql_ground import ALL_INVARIANTS
from tests.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenWorld(World):
    """The lab, enrolled, without wires; ``given`` is the server as its administrator reaches it."""

    given: GivenServer

    @property
    def names(self) -> lab.GivenState:
        """What the lab is called there."""
        assert self.lab.mssql is not None
        return self.lab.mssql

    def on_server(self, database: str, statement: str, **values: str | int | bytes) -> list[tuple[Any, ...]]:
        """Run one statement as the administrator: a query for its rows, anything else as it stands."""
        with self.given.at(database).session() as own:
            if statement.startswith("SELECT"):
                return [tuple(row) for row in own.rows(statement, values)]
            own.as_written(statement)
        return []

    def violations(self) -> list[str]:
        """Return what the ledger's rows violate."""
        return sorted(str(text) for (text,) in self.on_server(self.names.control_database, ALL_INVARIANTS))


@dataclass(slots=True)
class GivenPlace(Place):
    """An environment of one test; its warehouse is the given server."""

    @property
    def there(self) -> GivenWorld:
        """The world, as what it is."""
        assert isinstance(self.world, GivenWorld)
        return self.world

    def in_warehouse(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement in the warehouse as the administrator; ``{name}`` stands for a table of the place."""
        return self.there.on_server(self.there.names.target_database, self._filled(statement))

    def target(self, name: str) -> list[tuple[Any, ...]]:
        """Return the rows of a target in the warehouse, by their first column."""
        return self.in_warehouse(f"SELECT * FROM stage.{identifier(self.table(name))} ORDER BY 1;")

    def receipts(self) -> list[tuple[Any, ...]]:
        """Return attempt and rows of every receipt of the place's attempts, in the order of their publication."""
        found = self.there.on_server(
            self.there.names.target_database,
            "SELECT LOWER(CONVERT(varchar(64), r.attempt_id, 2)), r.[rows] FROM dpone_receipt.receipt AS r"
            " ORDER BY r.sequence;",
        )
        mine = {attempt for attempt, _ in self.attempts()}
        return [row for row in found if row[0] in mine]

    def attempts(self) -> list[tuple[str, str]]:
        """Return the environment's attempts, oldest first: id and state."""
        rows = self.there.on_server(
            self.there.names.control_database,
            "SELECT LOWER(CONVERT(varchar(64), a.attempt_id, 2)), a.state FROM dpone_control.attempt AS a"
            " WHERE a.environment = @name ORDER BY a.ledger_sequence;",
            name=self.name,
        )
        return [(str(attempt), str(state)) for attempt, state in rows]

    def gates(self) -> list[str]:
        """Return the states of the gates of the environment's attempts."""
        rows = self.there.on_server(
            self.there.names.control_database,
            "SELECT g.gate_state FROM dpone_control.login_gate AS g"
            " JOIN dpone_control.attempt AS a ON a.attempt_id = g.attempt_id WHERE a.environment = @name;",
            name=self.name,
        )
        return [str(state) for (state,) in rows]

    def behind(self, wire: Wire) -> None:
        """Reach the warehouse through a wire from now on; the ledger is reached as before."""
        connection = self.environment["connections"]["warehouse.lab"]
        connection["endpoint"] |= {"host": "127.0.0.1", "port": wire.port}
        for role, reference in connection["credentials"].items():
            parts = urlsplit(Path(reference.removeprefix("file:")).read_text().strip())
            netloc = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{wire.port}"
            rewired = self.root / f"warehouse-{role}"
            write_private(rewired, parts._replace(netloc=netloc).geturl() + "\n")
            connection["credentials"][role] = f"file:{rewired}"

    def process(self, promoted: PromotionReport, name: str) -> Process:
        """Return a task of Airflow that runs a transfer, in a process of its own."""
        occurrence = OccurrenceId(str(promoted.occurrence_id))
        return Process(run, (self.settings, occurrence, promoted.deployment_id, f"ordinary.{name}", self.tried()))

    @contextmanager
    def holding(self, table: str) -> Iterator[Session]:
        """Hold a table of the warehouse against whoever changes it, in an open transaction; give its session."""
        with self.there.given.at(self.there.names.target_database).session() as own:
            own.run(f"BEGIN TRANSACTION; SELECT COUNT(*) FROM {table} WITH (TABLOCKX, HOLDLOCK);")
            try:
                yield own
            finally:
                own.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")

    def wait_for_a_publisher(self, own: Session) -> None:
        """Wait until a worker's publication waits for a lock."""
        query = (
            "SELECT COUNT(*) FROM sys.dm_exec_requests AS r"
            " JOIN sys.dm_exec_sessions AS s ON s.session_id = r.session_id"
            " WHERE r.blocking_session_id <> 0 AND s.program_name = N'dpone publisher';"
        )
        wait_until(lambda: own.row(query) == (1,), what="a publication that waits for a lock", seconds=60)

    def from_warehouse(self, name: str, **more: Any) -> dict[str, Any]:
        """Return the declaration of a transfer from the warehouse to ClickHouse, of one table under one name."""
        source = {"connection": "warehouse", "schema": "stage", "table": self.table(name)}
        return self.onward(name, **more) | {"from": source}


@contextmanager
def given_world(root: Path) -> Iterator[GivenWorld]:
    """Run the lab with the given server while the block runs, and with a ClickHouse that is given as well; skip where
    the server lacks what the lab needs."""
    require(*NEEDED)
    given = given_server(os.environ)
    assert given is not None
    with lab.running(root / "lab", given=given, analytics=given_clickhouse(os.environ)) as state:
        enrolled = enrol_once(state, progress=lambda _: None)
        environment = yaml.safe_load(enrolled.environment_file.read_text())
        yield GivenWorld(
            lab=state,
            root=root,
            environment=environment,
            authority_ref=enrolled.authority_ref,
            wires={},
            given=given,
        )
