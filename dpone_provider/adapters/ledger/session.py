"""One transaction's connection: every statement goes through here, and so through the hook and the deadline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection, Row

from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.application.ports.ledger import GuardLost

Parameters = Mapping[str, object]
ROWS_PER_STATEMENT = 1000
"""How many ids one statement carries: SQL Server takes 2,100 parameters."""


class Before(Protocol):
    """What is done before a statement is sent: the first time, the transaction is opened."""

    def __call__(self, name: str, parameters: Parameters) -> None:
        """Take the statement's name and its first row of parameters."""


class Session:
    """Sends statements in order, each after ``before``."""

    def __init__(self, connection: Connection, before: Before) -> None:
        """Send on ``connection``."""
        self.connection = connection
        self._before = before

    def rows(self, statement: Statement, **parameters: object) -> Sequence[Row[Any]]:
        """Return every row."""
        self._before(statement.name, parameters)
        return self.connection.execute(statement.sql, parameters).all()

    def row(self, statement: Statement, **parameters: object) -> Row[Any] | None:
        """Return the one row that a key or a unique index allows, or None."""
        self._before(statement.name, parameters)
        return self.connection.execute(statement.sql, parameters).one_or_none()

    def rows_of(self, statement: Statement, ids: Collection[object]) -> list[Row[Any]]:
        """Return the rows of these ids, asked in id order, so that locks are taken in that order too."""
        ordered = sorted(set(ids), key=str)
        parts = [ordered[start : start + ROWS_PER_STATEMENT] for start in range(0, len(ordered), ROWS_PER_STATEMENT)]
        return [row for part in parts for row in self.rows(statement, ids=part)]

    def add(self, statement: Statement, rows: Sequence[Parameters]) -> None:
        """Insert ``rows``, in one round trip; nothing when there are none."""
        if rows:
            self._before(statement.name, rows[0])
            self.connection.execute(statement.sql, rows)

    def write(self, statement: Statement, **parameters: object) -> int:
        """Send one guarded write; return how many rows it met."""
        self._before(statement.name, parameters)
        return self.connection.execute(statement.sql, parameters).rowcount

    def move(self, statement: Statement, subject: object, **parameters: object) -> None:
        """Send an UPDATE of one row that is guarded by what was read.

        Raises:
            GuardLost: it met no row, so the row is not what the script had read.
        """
        if self.write(statement, **parameters) != 1:
            raise GuardLost(f"{subject} is not what was read: {statement.name} met no row")


def unmoved(before: object, after: object, same: bool) -> None:
    """Refuse a move that would change what identifies the row, which the statement could not write.

    Raises:
        GuardLost: ``same`` does not hold.
    """
    if not same:
        raise GuardLost(f"{before} and {after} differ in more than their state")
