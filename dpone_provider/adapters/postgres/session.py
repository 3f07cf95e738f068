"""One connection to PostgreSQL: opened with an endpoint and a credential, bounded in time, never leaking either.

Every psycopg exception is turned into one of ``errors`` outside of its ``except`` block, so that no traceback and no
exception chain leads to the connection and its password.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from dpone_provider.adapters.postgres.errors import AnswerLost, LoginRefused, PostgresError, ServerError
from dpone_provider.adapters.postgres.watchdog import Watchdog
from dpone_provider.alarms import Alarm, set_alarm
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode

Row = tuple[Any, ...]
Parameters = Mapping[str, object]
Raw = psycopg.Connection[Row]

SSL_MODES: Final = {
    TlsMode.DISABLED: "disable",
    TlsMode.TRUST: "require",
    TlsMode.VERIFY: "verify-full",
    TlsMode.STRICT: "verify-full",
}
_TIME_OUTS: Final = (
    "SELECT set_config('statement_timeout', %(statement_timeout)s, false),"
    " set_config('lock_timeout', %(lock_timeout)s, false)"
)
_LEAST_CONNECT_SECONDS = 2
"""libpq takes no shorter time-out."""
_NO_REST_SECONDS: Final = 1.0
"""A connection that was used so recently is asked nothing, unless the server has said something meanwhile."""
REST_SECONDS: Final = 10.0
"""A kept connection that was not used for so long is closed."""
_FULL: Final = ("too many clients", "too many connections", "remaining connection slots")
_NOT_NOW: Final = ("the database system is", *_FULL)
"""Refusals at login that say nothing about the login (libpq gives no SQLSTATE before a session exists)."""
_FULL_SECONDS: Final = 0.1
"""Between two connects to a server that has no place."""


class Session:
    """An open connection in autocommit. Its methods raise ``ServerError`` or ``AnswerLost``."""

    def __init__(self, raw: Raw) -> None:
        """Wrap a connection that somebody else opens and closes."""
        self._raw = raw

    def rows(self, statement: str | sql.Composed, parameters: Parameters | None = None) -> list[Row]:
        """Run a statement that gives rows."""
        failure: PostgresError
        try:
            return self._raw.execute(_query(statement), parameters).fetchall()
        except psycopg.Error as error:
            failure = told(error)
        raise failure

    def row(self, statement: str | sql.Composed, parameters: Parameters | None = None) -> Row:
        """Run a statement that gives exactly one row."""
        (only,) = self.rows(statement, parameters)
        return only

    def run(self, statement: str | sql.Composed, parameters: Parameters | None = None) -> str:
        """Run a statement and return the server's tag for it, for example ``COMMIT`` or ``INSERT 0 5``."""
        failure: PostgresError
        try:
            return self._raw.execute(_query(statement), parameters).statusmessage or ""
        except psycopg.Error as error:
            failure = told(error)
        raise failure

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block in one transaction; inside another one, under a savepoint."""
        failure: PostgresError
        try:
            with self._raw.transaction():
                yield
            return
        except psycopg.Error as error:
            failure = told(error)
        raise failure

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open in which statements are accepted."""
        return self._raw.info.transaction_status is TransactionStatus.INTRANS


@contextmanager
def session(endpoint: Endpoint, credential: Credential, *, purpose: str, seconds: float) -> Iterator[Session]:
    """Open a new connection, and close it at the end.

    ``seconds`` bound the connecting, every statement and lock, and the whole; ``purpose`` becomes the application name.

    Raises:
        LoginRefused: the server let the role not in.
        AnswerLost: nobody answered.
    """
    raw = _opened(endpoint, credential, purpose, seconds)
    try:
        with Watchdog(raw.fileno(), seconds):
            yield Session(raw)
    finally:
        with suppress(psycopg.Error):
            raw.close()


class KeptSession:
    """A connection that several calls share, for a caller that asks again and again. Not for two threads at once.

    Between calls that are far apart it is closed: nobody keeps a place on the server for the hours of an attempt.
    """

    def __init__(
        self, endpoint: Endpoint, credential: Credential, *, purpose: str, rest_seconds: float = REST_SECONDS
    ) -> None:
        """Connect at the first use; close after ``rest_seconds`` without one."""
        self._endpoint = endpoint
        self._credential = credential
        self._purpose = purpose
        self._rest_seconds = rest_seconds
        self._raw: Raw | None = None
        self._limits: Mapping[str, str] = {}
        self._used = -math.inf
        self._rest: Alarm | None = None

    @contextmanager
    def use(self, seconds: float) -> Iterator[Session]:
        """Give the connection for one call, bounded anew; one that broke is replaced.

        Raises:
            LoginRefused: the server let the role not in.
            AnswerLost: nobody answered.
        """
        self._end_rest()
        raw = self._reusable(seconds) or _opened(self._endpoint, self._credential, self._purpose, seconds)
        self._raw, self._limits = raw, _time_outs(seconds)
        try:
            with Watchdog(raw.fileno(), seconds):
                yield Session(raw)
        except AnswerLost:
            self.close()
            raise
        finally:
            self._used = time.monotonic()
            self._rest = set_alarm(self._rest_seconds, self._close)

    def close(self) -> None:
        """Close it; the next use opens another."""
        self._end_rest()
        self._close()

    def _end_rest(self) -> None:
        if self._rest is not None:
            self._rest.call_off()
            self._rest = None

    def _close(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            with suppress(psycopg.Error):
                raw.close()

    def _reusable(self, seconds: float) -> Raw | None:
        """Return the open connection with these time-outs, or None if there is none, or none to rely on."""
        rested = time.monotonic() - self._used
        if self._raw is None or self._raw.closed:
            self._close()
            return None
        if rested < _NO_REST_SECONDS and self._limits == _time_outs(seconds) and _says_nothing(self._raw):
            return self._raw
        try:
            with Watchdog(self._raw.fileno(), seconds):
                Session(self._raw).rows(_TIME_OUTS, _time_outs(seconds))
        except (AnswerLost, ServerError):
            self.close()
        return self._raw


def _says_nothing(raw: Raw) -> bool:
    """Tell whether nothing has arrived between statements: the last words of a session that was ended would have."""
    waiting = select.poll()
    waiting.register(raw.fileno(), select.POLLIN)
    return not waiting.poll(0)


def borrowed(handle: object) -> Session | None:
    """Return the session over a ledger transaction's handle, or None if it is no open transaction of psycopg's."""
    if not isinstance(handle, psycopg.Connection):
        return None
    found = Session(handle)
    return found if found.in_transaction else None


def _opened(endpoint: Endpoint, credential: Credential, purpose: str, seconds: float) -> Raw:
    """Connect; where the server has no place, wait for one: nothing was begun, and time alone helps."""
    until = time.monotonic() + seconds
    while True:
        try:
            return _opened_once(endpoint, credential, purpose, seconds)
        except AnswerLost as error:
            if time.monotonic() >= until or not any(words in str(error) for words in _FULL):
                raise
        time.sleep(min(_FULL_SECONDS, max(0.0, until - time.monotonic())))


def _opened_once(endpoint: Endpoint, credential: Credential, purpose: str, seconds: float) -> Raw:
    limits = _time_outs(seconds)
    failure: PostgresError
    try:
        return psycopg.connect(
            host=endpoint.host,
            port=endpoint.port,
            dbname=endpoint.database,
            user=credential.user,
            password=credential.password.reveal(),
            sslmode=SSL_MODES[endpoint.tls],
            connect_timeout=max(_LEAST_CONNECT_SECONDS, int(seconds)),
            application_name=purpose,
            options=" ".join(f"-c {name}={value}" for name, value in limits.items()),
            client_encoding="UTF8",
            autocommit=True,
        )
    except psycopg.Error as error:
        failure = _not_connected(str(error), credential)
    raise failure


def _time_outs(seconds: float) -> dict[str, str]:
    """Return the server's own limits: a lock gives up first, as its error says more. Zero would mean none at all."""
    milliseconds = max(1, int(seconds * 1000))
    return {"statement_timeout": str(milliseconds), "lock_timeout": str(max(1, milliseconds * 9 // 10))}


def _not_connected(text: str, credential: Credential) -> PostgresError:
    words = " ".join(scrubbed(text, credential).split())
    if "FATAL:" in words and not any(busy in words for busy in _NOT_NOW):
        return LoginRefused(words.partition("FATAL:")[2].partition("CONTEXT:")[0].strip())
    return AnswerLost(words)


def scrubbed(text: str, credential: Credential) -> str:
    """Return a driver's words without the password, whatever part of a connection string they repeat."""
    return text.replace(credential.password.reveal(), "***")


def told(error: psycopg.Error) -> PostgresError:
    """Return what an error of an open connection says, without the connection."""
    if error.sqlstate is not None:
        return ServerError(error.sqlstate, error.diag.message_primary or "no message")
    return AnswerLost(" ".join(str(error).split()) or type(error).__name__)


def _query(statement: str | sql.Composed) -> bytes | sql.Composed:
    return statement.encode() if isinstance(statement, str) else statement
