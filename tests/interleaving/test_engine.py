"""The engine itself: it sees lost updates, waits and deadlocks that are really there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest

from dpone_provider import lab
from tests.interleaving.actors import Broken, Hook
from tests.interleaving.engine import Line, Run, Stepper
from tests.interleaving.footprints import Blocking
from tests.interleaving.postgres_ground import PostgresMonitor
from tests.interleaving.works import Sent

pytestmark = pytest.mark.lab
READ = "SELECT n FROM counter WHERE name = %(name)s"
LOCK = READ + " FOR UPDATE"
WRITE = "UPDATE counter SET n = %(n)s WHERE name = %(name)s"


class Adding:
    """A transaction that adds one to counters, one after the other, with or without a lock."""

    def __init__(self, connection: psycopg.Connection[Any], names: Sequence[str], read: str) -> None:
        """Add to ``names``, read as ``read`` says."""
        self._connection = connection
        self._names = names
        self._read = read

    def __call__(self, hook: Hook) -> object:
        """Return "committed", or why not."""
        try:
            for name in self._names:
                hook(f"read {name}")
                (number,) = self._connection.execute(self._read, {"name": name}).fetchall()[0]
                hook(f"write {name}")
                self._connection.execute(WRITE, {"name": name, "n": number + 1})
            hook("commit")
            self._connection.commit()
        except psycopg.errors.DeadlockDetected:
            self._connection.rollback()
            return "deadlock"
        return "committed"

    def pid(self) -> int:
        """Return its server process."""
        return self._connection.info.backend_pid

    def sent(self) -> Sequence[Sent]:
        """Nothing is shown of it."""
        return []


class Counters:
    """Two connections and a table of two counters."""

    def __init__(self, url: str) -> None:
        """Connect and make the table."""
        self.monitor = psycopg.connect(url, autocommit=True)
        self.monitor.execute("CREATE TABLE counter (name text PRIMARY KEY, n int)")
        self.monitor.execute("INSERT INTO counter VALUES ('x', 0), ('y', 0)")
        self.sides = [psycopg.connect(url, options="-c deadlock_timeout=20ms") for _ in range(2)]

    def run(self, order: tuple[bool, ...], read: str, names: tuple[str, str] = ("x", "x")) -> Run:
        """Let both sides add to the counters that ``names`` spells, in this order of steps."""
        first, second = (Adding(side, list(spelled), read) for side, spelled in zip(self.sides, names, strict=True))
        return Stepper(first, second, PostgresMonitor(self.monitor), Blocking()).through(order)

    def values(self) -> dict[str, int]:
        """Return the counters."""
        return dict(self.monitor.execute("SELECT name, n FROM counter").fetchall())


@pytest.fixture
def counters(fresh_database: lab.LabDatabase) -> Iterator[Counters]:
    """Give two counters at zero."""
    counters = Counters(fresh_database.admin.reveal())
    yield counters
    for connection in (counters.monitor, *counters.sides):
        connection.close()


def test_an_update_is_lost_in_the_order_that_loses_it(counters: Counters) -> None:
    """Both read before either writes: the later write waits, and then overwrites."""
    run = counters.run((True, False, True, False), READ)
    assert run.outcomes == {"A": "committed", "B": "committed"}
    assert counters.values()["x"] == 1
    assert Line("B", "write x", waits=True) in run.lines
    assert run.lines[-2:] == [Line("B", "goes on"), Line("B", "commit")]


def test_a_lock_keeps_it(counters: Counters) -> None:
    """The same order, asked for under a lock: the second side is blocked and goes on after the commit."""
    run = counters.run((True, False, True, False), LOCK)
    assert counters.values()["x"] == 2
    assert [line.text for line in run.lines if line.side == "A"] == ["read x", "write x", "commit"]
    assert run.lines[1] == Line("B", "read x", waits=True)
    assert run.steps == [True, True, True, False, False, False]


def test_a_serial_order_waits_for_nobody(counters: Counters) -> None:
    """And loses nothing."""
    run = counters.run((True, True, True, False, False, False), READ)
    assert counters.values()["x"] == 2
    assert not any(line.waits for line in run.lines)


def test_a_deadlock_is_waited_out(counters: Counters) -> None:
    """The server ends one of the two; the other one commits."""
    run = counters.run((True, True, False, False, True, False), LOCK, ("xy", "yx"))
    assert run.deadlocks == 1
    assert sorted(map(str, run.outcomes.values())) == ["committed", "deadlock"]
    assert counters.values() == {"x": 1, "y": 1}


def test_what_a_side_raises_is_reported(counters: Counters) -> None:
    """As its outcome."""
    run = counters.run((True, False), "SELECT n FROM nowhere WHERE name = %(name)s")
    assert all(isinstance(outcome, Broken) for outcome in run.outcomes.values())
    for side in counters.sides:
        side.rollback()
