"""One transaction's connection: every statement goes through here, and so through the hook and the deadline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from sqlalchemy import CursorResult, Row

from dpone_provider.adapters.ledger.dialect import Conversation, Parameters
from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.application.ports.ledger import GuardLost

ROWS_PER_STATEMENT = 600
"""How many ids one statement carries: it may say them three times, and SQL Server takes 2,100 parameters (8003)."""


class Before(Protocol):
    """What is done before a statement is sent: the first time, the transaction is opened."""

    def __call__(self, name: str, parameters: Parameters) -> None:
        """Take the statement's name and its first row of parameters."""


class Session:
    """Sends statements in order, each after ``before``.

    Writes of one kind that follow each other are gathered and sent together, in one round trip, before anything else:
    thousands of slots are not thousands of round trips. What they break is told then, within the same transaction.
    """

    def __init__(self, conversation: Conversation, before: Before) -> None:
        """Send through ``conversation``."""
        self.conversation = conversation
        self.wrote = False
        self._before = before
        self._gathered: list[Parameters] = []
        self._statement: Statement | None = None
        self._guarded = False

    def rows(self, statement: Statement, **parameters: object) -> Sequence[Row[Any]]:
        """Return every row."""
        return self._send(statement, parameters).all()

    def row(self, statement: Statement, **parameters: object) -> Row[Any] | None:
        """Return the one row that a key or a unique index allows, or None."""
        return self._send(statement, parameters).one_or_none()

    def rows_of(self, statement: Statement, ids: Collection[object]) -> list[Row[Any]]:
        """Return the rows of these ids, asked in id order, so that locks are taken in that order too."""
        ordered = sorted(set(ids), key=str)
        parts = [ordered[start : start + ROWS_PER_STATEMENT] for start in range(0, len(ordered), ROWS_PER_STATEMENT)]
        return [row for part in parts for row in self.rows(statement, ids=part)]

    def write(self, statement: Statement, **parameters: object) -> None:
        """Send one write that may meet any number of rows."""
        self.flush()
        self._write(statement, [parameters])

    def add(self, statement: Statement, rows: Sequence[Parameters]) -> None:
        """Insert ``rows``; nothing when there are none."""
        if rows:
            self._gather(statement, rows, guarded=False)

    def move(self, statement: Statement, **parameters: object) -> None:
        """Update one row, guarded by what was read; ``flush`` says when it met none."""
        self._gather(statement, [parameters], guarded=True)

    def flush(self) -> None:
        """Send what was gathered.

        Raises:
            GuardLost: a guarded UPDATE met no row, so some row is not what the script had read.
        """
        statement, rows = self._statement, self._gathered
        if statement is None:
            return
        self._statement, self._gathered = None, []
        met = self._write(statement, rows)
        if self._guarded and met != len(rows):
            raise GuardLost(f"{statement.name}: {met} of {len(rows)} rows are as they were read")

    def named(self, name: str, **parameters: object) -> CursorResult[Any]:
        """Send what Core does not say: a statement of the dialect's own file."""
        self.flush()
        self._before(name.replace("_", " "), parameters)
        return self.conversation.named(name, parameters)

    def handle(self) -> object:
        """Return the driver's own connection, up to date; whoever takes it may write."""
        self.flush()
        self.wrote = True
        return self.conversation.connection.connection.driver_connection

    def _gather(self, statement: Statement, rows: Sequence[Parameters], *, guarded: bool) -> None:
        if statement is not self._statement:
            self.flush()
        self._statement, self._guarded = statement, guarded
        self._gathered.extend(rows)

    def _write(self, statement: Statement, rows: Sequence[Parameters]) -> int:
        self._before(statement.name, rows[0])
        self.wrote = True
        return self.conversation.write(statement, rows)

    def _send(self, statement: Statement, parameters: Parameters) -> CursorResult[Any]:
        self.flush()
        self._before(statement.name, parameters)
        return self.conversation.connection.execute(statement.sql, parameters)


def unmoved(before: object, after: object, same: bool) -> None:
    """Refuse a move that would change what identifies the row, which the statement could not write.

    Raises:
        GuardLost: ``same`` does not hold.
    """
    if not same:
        raise GuardLost(f"{before} and {after} differ in more than their state")
