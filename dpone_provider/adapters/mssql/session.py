"""One connection to SQL Server: opened with an endpoint and a credential, bounded in time, never leaking either.

Every batch is drained to its last result: an error of its second statement comes only when the results before it have
been read. Every pyodbc exception is turned into one of ``errors`` outside of its ``except`` block, so that no traceback
leads to the connection string.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from dpone_provider.adapters.mssql import closed, driver
from dpone_provider.adapters.mssql.connection_string import connection_string, odbc_parts
from dpone_provider.adapters.mssql.diagnostics import told
from dpone_provider.adapters.mssql.errors import (
    ERRORS,
    AnswerLost,
    DatabaseClosed,
    LoginRefused,
    MssqlError,
    NotTrusted,
    ServerError,
)
from dpone_provider.adapters.mssql.names import Fragment, filled
from dpone_provider.adapters.mssql.parameters import Parameters, Value, bound
from dpone_provider.adapters.mssql.sockets import Sockets, Watchdog, require_listener
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("session.sql"))
OPEN_TRANSACTION: Final = 1
"""XACT_STATE() of a transaction that can be committed."""
MASTER: Final = "master"
"""Every login may enter it, and it shows every database's state."""
Row = tuple[Any, ...]
Result = TypeVar("Result")


class Cursor(Protocol):
    """What is used of pyodbc's cursor."""

    description: Any

    def execute(self, statement: str, *values: object) -> object: ...
    def fetchall(self) -> list[Any]: ...
    def nextset(self) -> bool | None: ...
    def close(self) -> None: ...


class Connection(Protocol):
    """What is used of pyodbc's connection."""

    timeout: int

    def cursor(self) -> Any: ...
    def close(self) -> None: ...


class Session:
    """An open connection in autocommit. Its methods raise ``ServerError``, ``LoginRefused`` or ``AnswerLost``."""

    def __init__(self, raw: Connection, errors: type[Exception]) -> None:
        """Wrap a connection that somebody else opens and closes; ``errors`` is the base of the driver's exceptions."""
        self._raw = raw
        self._errors = errors

    def results(self, statement: str, parameters: Parameters | None = None) -> list[list[Row]]:
        """Run a batch to its end and return the rows of each of its results."""
        batch, values = bound(statement, parameters)
        return self._sent(batch, values)

    def as_written(self, batch: str) -> None:
        """Run one batch of an administrator's script with nothing before it, what it gives let go.

        CREATE VIEW, PROCEDURE, FUNCTION and TRIGGER must each be the first statement of a batch (error 111), and what
        stands before it is kept as a part of the definition. Settings are those that the session opened with.
        """
        self._sent(batch, ())

    def _sent(self, batch: str, values: Sequence[Value]) -> list[list[Row]]:
        failure: MssqlError
        try:
            cursor = self._raw.cursor()
            try:
                cursor.execute(batch, *values)
                return _drained(cursor)
            finally:
                cursor.close()
        except self._errors as error:
            failure = told(driver_text(error), connecting=False)
        raise failure

    def rows(self, statement: str, parameters: Parameters | None = None) -> list[Row]:
        """Run a batch that gives one result."""
        results = self.results(statement, parameters)
        if len(results) != 1:
            raise AnswerLost(f"{len(results)} results, where a batch gives one")
        return results[0]

    def row(self, statement: str, parameters: Parameters | None = None) -> Row:
        """Run a batch that gives exactly one row."""
        rows = self.rows(statement, parameters)
        if len(rows) != 1:
            raise AnswerLost(f"{len(rows)} rows, where there is always one")
        return rows[0]

    def run(self, statement: str, parameters: Parameters | None = None) -> None:
        """Run a batch; what it gives is read and let go."""
        self.results(statement, parameters)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block in one transaction; inside one, as a part of it: an error ends the whole of it."""
        if self.in_transaction:
            yield
            return
        self.run(STATEMENTS["begin"])
        try:
            yield
        except BaseException:  # whatever ends the block, Ctrl-C included, ends the transaction; it is raised again
            with suppress(ServerError, AnswerLost):
                self.run(STATEMENTS["rollback"])
            raise
        self.run(STATEMENTS["commit"])

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open in which statements are accepted."""
        return bool(self.row(STATEMENTS["state"])[0] == OPEN_TRANSACTION)


@contextmanager
def session(endpoint: Endpoint, credential: Credential, *, purpose: str, seconds: float) -> Iterator[Session]:
    """Open a new connection, and close it at the end.

    ``seconds`` bound the connecting, every statement and lock, and the whole; ``purpose`` becomes the program's name.

    Raises:
        LoginRefused: the server let the login not in.
        AnswerLost: nobody answered.
        DponeError: Refused ``odbc_driver_missing``.
    """
    raw, sockets = open_raw(endpoint, credential, purpose, seconds)
    try:
        with Watchdog(sockets, seconds):
            own = Session(raw, _errors())
            own.run(settings(seconds))
            yield own
    finally:
        close_raw(raw, sockets)


@dataclass(frozen=True, slots=True)
class MssqlServer:
    """One database of one server, and who connects: where every hand on it gets its connections."""

    endpoint: Endpoint
    credential: Credential

    @property
    def user(self) -> str:
        """The login that connects."""
        return self.credential.user

    def session(self, purpose: str, seconds: float) -> AbstractContextManager[Session]:
        """Open a new connection for a block; see ``session``."""
        return session(self.endpoint, self.credential, purpose=purpose, seconds=seconds)

    def kept(self, purpose: str) -> KeptSession:
        """Return a connection to be shared by several calls."""
        return KeptSession(self.endpoint, self.credential, purpose=purpose)

    def borrowed(self, handle: object) -> Session | None:
        """Return the session over a ledger transaction's handle; see ``borrowed``."""
        return borrowed(handle)

    def __str__(self) -> str:
        """Return where it is, for messages."""
        return str(self.endpoint)


class KeptSession:
    """A connection that several calls share, for a caller that asks again and again. Not for two threads at once."""

    def __init__(self, endpoint: Endpoint, credential: Credential, *, purpose: str) -> None:
        """Connect at the first use."""
        self._endpoint = endpoint
        self._credential = credential
        self._purpose = purpose
        self._kept: tuple[Connection, Sockets] | None = None

    @contextmanager
    def use(self, seconds: float) -> Iterator[Session]:
        """Give the connection for one call, bounded anew; one that broke is replaced at the next use.

        Raises:
            LoginRefused: the server let the login not in.
            AnswerLost: nobody answered.
        """
        raw, sockets = self._reusable(seconds) or self._new(seconds)
        self._kept = raw, sockets
        try:
            with Watchdog(sockets, seconds):
                yield Session(raw, _errors())
        except AnswerLost:
            self.close()
            raise

    def close(self) -> None:
        """Close it; the next use opens another."""
        kept, self._kept = self._kept, None
        if kept is not None:
            close_raw(*kept)

    def _new(self, seconds: float) -> tuple[Connection, Sockets]:
        raw, sockets = open_raw(self._endpoint, self._credential, self._purpose, seconds)
        with Watchdog(sockets, seconds):
            Session(raw, _errors()).run(settings(seconds))
        return raw, sockets

    def _reusable(self, seconds: float) -> tuple[Connection, Sockets] | None:
        """Return the open connection with new time-outs, or None if the server has given it up meanwhile."""
        if self._kept is None:
            return None
        raw, sockets = self._kept
        try:
            with Watchdog(sockets, seconds):
                raw.timeout = _whole(seconds)
                again = Session(raw, _errors())
                again.run(STATEMENTS["rollback"])
                again.run(filled(STATEMENTS["lock_timeout"], milliseconds=_lock_milliseconds(seconds)))
        except (AnswerLost, ServerError):
            self.close()
        return self._kept


def borrowed(handle: object) -> Session | None:
    """Return the session over a ledger transaction's handle, or None if it is no open transaction of pyodbc's."""
    if not isinstance(handle, driver.pyodbc().Connection):
        return None
    found = Session(handle, _errors())
    return found if found.in_transaction else None


def driver_text(error: Exception) -> str:
    """Return the driver's own words: pyodbc puts SQLSTATE and text into the exception's arguments."""
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def scrubbed(text: str, credential: Credential) -> str:
    """Return a driver's words without the password, whatever part of a connection string they repeat."""
    return text.replace(credential.password.reveal(), "***")


def _drained(cursor: Cursor) -> list[list[Row]]:
    results: list[list[Row]] = []
    while True:
        if cursor.description is not None:
            results.append([tuple(row) for row in cursor.fetchall()])
        if not cursor.nextset():
            return results


def open_raw(endpoint: Endpoint, credential: Credential, purpose: str, seconds: float) -> tuple[Connection, Sockets]:
    """Open the driver's own connection, in autocommit, and find its sockets.

    Raises:
        LoginRefused: the server let the login not in.
        AnswerLost: nobody answered.
    """
    parts = odbc_parts(endpoint, credential, driver=driver.driver_name(), purpose=purpose)
    failure: MssqlError
    require_listener(endpoint.host, endpoint.port, seconds)
    try:
        with Sockets.opened_to(endpoint.port) as sockets:
            raw = driver.pyodbc().connect(connection_string(parts), autocommit=True, timeout=_whole(seconds))
            raw.timeout = _whole(seconds)
        return raw, sockets
    except _errors() as error:
        failure = told(scrubbed(driver_text(error), credential), connecting=True)
    raise _explained(failure, endpoint, credential, seconds)


def _explained(failure: MssqlError, endpoint: Endpoint, credential: Credential, seconds: float) -> MssqlError:
    """Return a failure to connect with what is behind it, where the server or the certificate shows that."""
    if isinstance(failure, LoginRefused) and failure.number in closed.NOT_OPENED and endpoint.database != MASTER:
        try:
            with session(
                replace(endpoint, database=MASTER), credential, purpose="dpone: why not", seconds=seconds
            ) as own:
                rows = own.rows(STATEMENTS["database_state"], {"name": endpoint.database})
        except ERRORS:
            return failure
        return DatabaseClosed(failure, closed.of_database(endpoint, credential.user, rows))
    if isinstance(failure, AnswerLost) and (refused := closed.of_certificate(endpoint, str(failure))) is not None:
        return NotTrusted(str(failure), refused)
    return failure


def close_raw(raw: Connection, sockets: Sockets) -> None:
    """Close a connection and give its sockets up."""
    try:
        with suppress(_errors()):
            raw.close()
    finally:
        sockets.close()


def _errors() -> type[Exception]:
    found: type[Exception] = driver.pyodbc().Error
    return found


def settings(seconds: float) -> Fragment:
    """Return what every session says first; locks wait a little less than ``seconds``."""
    return filled(STATEMENTS["open"], milliseconds=_lock_milliseconds(seconds))


def _whole(seconds: float) -> int:
    """Return the driver's time-out, in whole seconds: zero would mean none at all."""
    return max(1, round(seconds))


def _lock_milliseconds(seconds: float) -> Fragment:
    return Fragment(str(max(1, int(seconds * 900))))
