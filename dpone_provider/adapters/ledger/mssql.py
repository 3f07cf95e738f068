"""The ledger on SQL Server: its first batch, its writes, settle and COMMIT, and looking at other sessions.

Transactions are begun and ended by statements, in a connection that is in autocommit for the driver: so the first batch
both begins and opens, and COMMIT is a batch whose answer can be told from every other. XACT_ABORT ends the transaction
at any error; every write looks first whether it still is inside the one that was opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, cast

from sqlalchemy import Connection, CursorResult, Engine, Row, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import Pool

from dpone_provider.adapters.ledger import mssql_errors
from dpone_provider.adapters.ledger.dialect import (
    LOOK_SECONDS,
    Admits,
    FailedInside,
    Moment,
    OtherSession,
    Parameters,
    sized,
)
from dpone_provider.adapters.ledger.errors import Answer
from dpone_provider.adapters.ledger.lending import Lender, Lent
from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.adapters.ledger.mssql_batch import HEAD, STATEMENTS, Batch, named_batch, write_batches
from dpone_provider.adapters.ledger.mssql_engine import URL
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Endpoint
from dpone_provider.domain.outcomes import fail, unwind

CONNECT_SECONDS: Final = 5.0
STATEMENT_EXTRA: Final = 1.0
"""How many seconds a statement may run past the deadline: the lock wait gives up first and says more."""


@dataclass(frozen=True, slots=True)
class MssqlDialect:
    """Implements ``Dialect``, over connections that SQL Server's adapter lends."""

    lender: Lender
    installed_by: str = "sql/mssql/007_control_authority.sql to 030_signatures.sql"

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return self.lender.endpoint

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the driver raises, and what lending does."""
        return self.lender.errors

    def engine(self, pool: type[Pool], options: Mapping[str, Any]) -> Engine:
        """Return an engine over pyodbc.

        Raises:
            DponeError: Refused ``odbc_driver_missing``.
        """
        return create_engine(
            URL,
            module=self.lender.driver(),
            creator=lambda: self.lender.lend("dpone", CONNECT_SECONDS),
            execution_options=dict(options),
            **sized(pool),
        )

    def converse(self, connection: Connection, control_schema: str) -> MssqlConversation:
        """Return the part of one run; the control schema has one name on SQL Server."""
        return MssqlConversation(connection)

    def read_error(self, error: Exception, moment: Moment) -> Answer:
        """Return what an error means."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        said = self.lender.said(cast(Exception, cause), connecting=moment is Moment.CONNECTING)
        return mssql_errors.read_error(said, moment)

    @contextmanager
    def beside(self) -> Iterator[MssqlBeside]:
        """Open a connection to look through."""
        lent = self.lender.lend("dpone/look", LOOK_SECONDS)
        try:
            yield MssqlBeside(lent)
        finally:
            lent.close()


class MssqlConversation:
    """Implements ``Conversation``."""

    def __init__(self, connection: Connection) -> None:
        """Speak on ``connection``."""
        self.connection = connection
        self._lent = cast(Lent, connection.connection.dbapi_connection)
        self._transaction_id = 0
        self._looks_only = False

    @property
    def session(self) -> int:
        """The session's number."""
        return self._lent.session

    def cut(self) -> MssqlCut:
        """Return a hand on the connection."""
        return MssqlCut(self._lent)

    def open(self, deadline: Deadline, name: str, admits: Admits) -> Row[Any] | None:
        """Begin, with time-outs and name, and read who the ledger is."""
        self._looks_only = admits is Admits.LOOKING
        self._lent.timeout = _whole(deadline)
        said = {"milliseconds": _milliseconds(deadline), "context": "0x" + name.encode("ascii").hex()}
        row = self._plain("open_transaction", **said).one_or_none()
        self._transaction_id = 0 if row is None else row.transaction_id
        return row

    def renew_timeouts(self, deadline: Deadline) -> None:
        """Set the time-outs to what is left now."""
        self._lent.timeout = _whole(deadline)
        self._plain("lock_timeout", milliseconds=_milliseconds(deadline))

    def write(self, statement: Statement, rows: Sequence[Parameters]) -> int:
        """Send the rows in as few batches as they fit into."""
        if self._looks_only:
            _unwritten(statement.name)
        met = 0
        for batch in write_batches(statement, rows, self._transaction_id):
            found = self._send(batch).scalar_one()
            if found < 0:
                raise FailedInside
            met += found
        return met

    def named(self, name: str, parameters: Parameters) -> CursorResult[Any]:
        """Send a statement of ``mssql.sql``."""
        return self._send(named_batch(name, parameters))

    def settle(self, *, wrote: bool) -> bool:
        """Let the ledger look at what several rows must show together."""
        values = {"transaction_id": self._transaction_id, "wrote": int(wrote)}
        return bool(self.named("settle", values).scalar_one())

    def commit(self) -> None:
        """Commit. What only looks has nothing to commit, and is rolled back."""
        self._plain("rollback" if self._looks_only else "commit")
        self.connection.commit()

    def rollback(self) -> None:
        """Roll back whatever is open."""
        if self.connection.invalidated:
            return
        try:
            self._plain("rollback")
        except DBAPIError:
            self.connection.invalidate()
        self.connection.rollback()

    def _plain(self, name: str, **said: str) -> CursorResult[Any]:
        """Send a batch as it is, without values."""
        return self.connection.exec_driver_sql("\n".join((HEAD, STATEMENTS[name].format(**said))))

    def _send(self, batch: Batch) -> CursorResult[Any]:
        return self.connection.exec_driver_sql(batch.text, batch.values)


class MssqlBeside:
    """Implements ``Beside``."""

    def __init__(self, lent: Lent) -> None:
        """Look through ``lent``."""
        self._lent = lent

    def cut(self) -> MssqlCut:
        """Return a hand on it."""
        return MssqlCut(self._lent)

    def blockers(self, session: int) -> list[OtherSession]:
        """Return who keeps a session waiting."""
        return self._sessions("blockers", session=session)

    def end_sleepers(self, seconds: float) -> list[OtherSession]:
        """End the sessions that sleep inside a transaction."""
        return self._sessions("end_sleepers", milliseconds=round(seconds * 1000))

    def _sessions(self, name: str, **parameters: int) -> list[OtherSession]:
        return [OtherSession(*row) for row in self._lent.rows(STATEMENTS[name], parameters)]


@dataclass(frozen=True, slots=True)
class MssqlCut:
    """Implements ``Cut``, by the connection's sockets."""

    lent: Lent

    def now(self) -> None:
        """End it."""
        self.lent.shut()

    def close(self) -> None:
        """Do nothing: the connection holds its sockets itself."""


def _milliseconds(deadline: Deadline) -> str:
    """Return how long a lock may be waited for: zero would be no wait at all, and is never said."""
    return str(max(1, round(deadline.remaining() * 1000)))


def _whole(deadline: Deadline) -> int:
    """Return the driver's time-out, in whole seconds: zero would mean none at all."""
    return max(1, ceil(deadline.remaining() + STATEMENT_EXTRA))


def _unwritten(name: str) -> None:
    unwind(
        fail(
            "ledger_statement_refused",
            f"ledger transaction that only looks, {name}",
            found="a write",
            allowed="statements that read",
            next_command="this is a fault of the program; nothing was changed",
        )
    )
