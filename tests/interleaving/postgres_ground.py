"""The ground on the lab's PostgreSQL: a database with the ledger and the fence, and the connections to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import pq, sql

from dpone_provider import lab
from dpone_provider.sql_files import shipped_sql
from tests.conformance.installed_ledger import CONTROLLER, InstalledLedger, installed
from tests.conformance.ledger_world import WAREHOUSE, principal_of
from tests.interleaving import invariants, snapshot
from tests.interleaving.ground import Rows, Snapshot
from tests.interleaving.scenes import WRITER
from tests.interleaving.works import FenceHand, LedgerSide

LOGIN = principal_of(WRITER).name


@dataclass(frozen=True, slots=True)
class PostgresMonitor:
    """Asks who blocks whom."""

    admin: psycopg.Connection[Any]

    def blocks(self, waiting: int, other: int) -> bool:
        """Tell whether one session waits for the other."""
        found = self.admin.execute("SELECT pg_blocking_pids(%s)", [waiting]).fetchone()
        return found is not None and other in found[0]


@dataclass(frozen=True, slots=True)
class PostgresGround(PostgresMonitor):
    """One database."""

    sides: Mapping[str, LedgerSide]
    fences: Mapping[str, FenceHand]

    def save(self, name: str) -> Snapshot:
        """Keep every row."""
        return snapshot.save(self.admin, name)

    def restore(self, snapshot_: Snapshot) -> None:
        """Put them back."""
        snapshot.restore(self.admin, snapshot_)

    def rows(self, unstable: frozenset[str] = frozenset()) -> Rows:
        """Read them."""
        return snapshot.rows(self.admin, unstable)

    def tidy(self) -> None:
        """Vacuum."""
        snapshot.tidy(self.admin)

    def violations(self) -> list[str]:
        """Look at every invariant."""
        return invariants.violations(self.admin)


class PostgresFence:
    """A superuser's connection that takes the login on as its session's user."""

    _STATEMENTS: Mapping[str, bytes] = {
        "begin": b"BEGIN",
        "fence": b"SELECT dpone_gate.require_current(%(attempt)s)",
        "change the target": b"INSERT INTO public.target VALUES (%(attempt)s)",
        "fence again": b"SELECT dpone_gate.require_current(%(attempt)s)",
        "commit": b"COMMIT",
    }

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """Work on an open connection."""
        self._connection = connection

    def session(self) -> int:
        """Return its server process."""
        return self._connection.info.backend_pid

    def become(self) -> None:
        """Take the login on."""
        self._connection.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(LOGIN)))

    def send(self, step: str, attempt_id: str) -> str | None:
        """Send one statement."""
        parameters = {"attempt": attempt_id} if b"%" in self._STATEMENTS[step] else None
        try:
            self._connection.execute(self._STATEMENTS[step], parameters)
        except psycopg.Error as error:
            self._connection.execute("ROLLBACK")
            return str(error.diag.message_primary)
        return None

    def stop(self) -> None:
        """Be the superuser again."""
        if self._connection.info.transaction_status == pq.TransactionStatus.IDLE:
            self._connection.execute("RESET SESSION AUTHORIZATION")


@contextmanager
def postgres_ground(state: lab.LabState) -> Iterator[PostgresGround]:
    """Install and connect."""
    with installed(state) as ledger, ExitStack() as stack:
        _install_fence(ledger)
        sides = {name: LedgerSide(ledger.ledger, lambda one: int(one.info.backend_pid)) for name in ("A", "B")}
        for side in sides.values():
            stack.callback(side.close)
        fences = {name: PostgresFence(stack.enter_context(ledger.admin())) for name in ("A", "B")}
        yield PostgresGround(stack.enter_context(ledger.admin()), sides, fences)


def _install_fence(ledger: InstalledLedger) -> None:
    """Install the gate with its fence, the issued login (which is never logged in as), and a target table.

    Commits are not waited to reach the disk, and deadlocks are found at once: neither changes who waits for whom.
    """
    name = ledger.database.name
    variables = {
        "control_schema": "dpone_control",
        "controller_role": CONTROLLER,
        "service_id": WAREHOUSE.service_id,
    }
    lab.run_admin_script(ledger.database.lab, name, shipped_sql("postgres") / "020_gate.sql", variables)
    with ledger.admin() as admin:
        login = sql.Identifier(LOGIN)
        if not admin.execute("SELECT FROM pg_roles WHERE rolname = %s", [LOGIN]).fetchall():
            admin.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(login))
        admin.execute(sql.SQL("GRANT EXECUTE ON FUNCTION dpone_gate.require_current(text) TO {}").format(login))
        admin.execute("CREATE TABLE public.target (attempt_id text)")
        admin.execute("GRANT INSERT ON public.target TO PUBLIC")
        for setting in ("synchronous_commit = off", "deadlock_timeout = '20ms'", "jit = off"):
            admin.execute(f"ALTER DATABASE {name} SET {setting}")
