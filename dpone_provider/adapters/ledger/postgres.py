"""The ledger on PostgreSQL: its connections, its first statement, its COMMIT, and looking at other sessions."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import psycopg
from psycopg import pq, sql
from sqlalchemy import Connection, CursorResult, Engine, Row, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import Pool

from dpone_provider.adapters.ledger.connection import open_connection
from dpone_provider.adapters.ledger.dialect import LOOK_SECONDS, Admits, Moment, OtherSession, Parameters, sized
from dpone_provider.adapters.ledger.errors import Answer
from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.adapters.ledger.postgres_errors import read_error
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.sql_files import load

STATEMENT_EXTRA: Final = 1.0
"""How many seconds a statement may run past the deadline: the lock wait gives up first and says more."""
STATEMENTS: Final = load(Path(__file__).with_name("postgres.sql"))


@cache
def statement(name: str, control_schema: str) -> str:
    """Return a named statement with the control schema's name in it, quoted."""
    text: Any = STATEMENTS[name]
    return sql.SQL(text).format(schema=sql.Identifier(control_schema)).as_string(None)


@dataclass(frozen=True, slots=True)
class PostgresDialect:
    """Implements ``Dialect``."""

    endpoint: Endpoint
    credential: Credential
    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    installed_by: str = "sql/postgres/010_control_schema.sql"

    def engine(self, pool: type[Pool], options: Mapping[str, Any]) -> Engine:
        """Return an engine over psycopg."""
        return create_engine(
            "postgresql+psycopg://",
            creator=lambda: open_connection(self.endpoint, self.credential, application_name="dpone"),
            isolation_level="READ COMMITTED",
            use_native_hstore=False,
            execution_options=dict(options),
            **sized(pool),
        )

    def converse(self, connection: Connection, control_schema: str) -> PostgresConversation:
        """Return the part of one run."""
        return PostgresConversation(connection, control_schema)

    def read_error(self, error: Exception, moment: Moment) -> Answer:
        """Return what an error means."""
        return read_error(error, moment)

    @contextmanager
    def beside(self) -> Iterator[PostgresBeside]:
        """Open a connection to look through."""
        with open_connection(
            self.endpoint, self.credential, application_name="dpone/look", autocommit=True, seconds=LOOK_SECONDS
        ) as opened:
            yield PostgresBeside(opened)


class PostgresConversation:
    """Implements ``Conversation``: SQLAlchemy's own transaction over psycopg's."""

    def __init__(self, connection: Connection, control_schema: str) -> None:
        """Speak on ``connection``."""
        self.connection = connection
        self._control_schema = control_schema
        self._driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)

    @property
    def session(self) -> int:
        """The process that serves the connection."""
        return self._driver.info.backend_pid

    def cut(self) -> PostgresCut:
        """Return a hand on the connection."""
        return PostgresCut(self._driver)

    def open(self, deadline: Deadline, name: str, admits: Admits) -> Row[Any] | None:
        """Set time-outs and name for this transaction, and read who the ledger is."""
        if admits is Admits.LOOKING:
            self.connection.exec_driver_sql(statement("read_only", self._control_schema))
        given = {**_timeouts(deadline), "application_name": name}
        return self.named("open_transaction", given).one_or_none()

    def renew_timeouts(self, deadline: Deadline) -> None:
        """Set the time-outs to what is left now."""
        self.named("set_timeouts", _timeouts(deadline))

    def write(self, written: Statement, rows: Sequence[Parameters]) -> int:
        """Send the rows in one round trip."""
        return self.connection.execute(written.sql, rows).rowcount

    def named(self, name: str, parameters: Parameters) -> CursorResult[Any]:
        """Send a statement of ``postgres.sql``."""
        return self.connection.exec_driver_sql(statement(name, self._control_schema), dict(parameters))

    def settle(self, *, wrote: bool) -> bool:
        """Look at the transaction: PostgreSQL answers COMMIT of a failed one with ROLLBACK, without an error.

        What several rows must show together, deferred triggers look at inside COMMIT.
        """
        return self._driver.info.transaction_status == pq.TransactionStatus.INTRANS

    def commit(self) -> None:
        """Commit."""
        self.connection.commit()

    def rollback(self) -> None:
        """Roll back; closing the connection would do it too."""
        try:
            self.connection.rollback()
        except DBAPIError:
            self.connection.invalidate()


class PostgresBeside:
    """Implements ``Beside``."""

    def __init__(self, opened: psycopg.Connection[Any]) -> None:
        """Look through ``opened``."""
        self._opened = opened

    def cut(self) -> PostgresCut:
        """Return a hand on it."""
        return PostgresCut(self._opened)

    def blockers(self, session: int) -> list[OtherSession]:
        """Return who keeps a session waiting."""
        return self._sessions("blockers", {"pid": session})

    def end_sleepers(self, seconds: float) -> list[OtherSession]:
        """End the sessions that sleep inside a transaction."""
        return self._sessions("end_sleepers", {"seconds": seconds})

    def _sessions(self, name: str, parameters: dict[str, object]) -> list[OtherSession]:
        return [OtherSession(*row) for row in self._opened.execute(STATEMENTS[name], parameters).fetchall()]


class PostgresCut:
    """Implements ``Cut``, by the connection's socket."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        """Duplicate the connection's socket, so that a number which is used again is never hit."""
        self._socket = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)

    def now(self) -> None:
        """End it; one that is closed already is left alone."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the duplicate up."""
        self._socket.close()


def _timeouts(deadline: Deadline) -> dict[str, str]:
    """Return the time-outs that the deadline leaves. Zero would mean none at all, so it is never less than 1 ms."""
    left = deadline.remaining()
    return {
        "lock_timeout": f"{max(1, round(left * 1000))}ms",
        "statement_timeout": f"{max(1, round((left + STATEMENT_EXTRA) * 1000))}ms",
    }
