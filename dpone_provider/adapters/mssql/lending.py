"""Connections for the ledger, opened as this adapter opens its own, and what their errors say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.diagnostics import told
from dpone_provider.adapters.mssql.errors import ERRORS, AnswerLost, LoginRefused, ServerError, refusal_of
from dpone_provider.adapters.mssql.parameters import Value
from dpone_provider.adapters.mssql.session import STATEMENTS, Session, close_raw, driver_text, open_raw, settings
from dpone_provider.adapters.mssql.sockets import Sockets, Watchdog
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.outcomes import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class MssqlSaid:
    """What an error says."""

    number: int
    words: str
    login_refused: bool = False
    timed_out: bool = False
    lost: bool = False
    refusal: Refused | None = None


class LentConnection:
    """A connection of pyodbc's with its sockets, in autocommit. Whoever borrows it begins and ends transactions by
    statements: the driver's own commit and rollback do nothing."""

    autocommit = True

    def __init__(self, raw: Any, sockets: Sockets, session: int) -> None:
        """Hold an open connection."""
        self.raw = raw
        self.session = session
        self._sockets = sockets

    @property
    def timeout(self) -> int:
        """The time-out of each statement, in whole seconds."""
        return int(self.raw.timeout)

    @timeout.setter
    def timeout(self, seconds: int) -> None:
        self.raw.timeout = seconds

    def cursor(self) -> Any:
        """Return a cursor of the driver's."""
        return self.raw.cursor()

    def add_output_converter(self, kind: int, converter: Any) -> None:
        """Let the driver convert the values of a type so."""
        self.raw.add_output_converter(kind, converter)

    def rows(self, statement: str, parameters: Mapping[str, Value]) -> Sequence[tuple[Any, ...]]:
        """Run a batch that gives one result."""
        return Session(self.raw, driver.pyodbc().Error).rows(statement, parameters)

    def commit(self) -> None:
        """Do nothing."""

    def rollback(self) -> None:
        """Do nothing."""

    def shut(self) -> None:
        """End it under the driver."""
        self._sockets.shut()

    def close(self) -> None:
        """Close it."""
        close_raw(self.raw, self._sockets)


@dataclass(frozen=True, slots=True)
class MssqlLender:
    """One database of one server, and who connects."""

    endpoint: Endpoint
    credential: Credential

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Return what a lent connection raises, the driver's own errors included."""
        found: type[Exception] = driver.pyodbc().Error
        return (found, *ERRORS)

    def driver(self) -> ModuleType:
        """Return pyodbc, once it and the ODBC driver are found.

        Raises:
            DponeError: Refused ``odbc_driver_missing``.
        """
        driver.driver_name()
        return driver.pyodbc()

    def lend(self, purpose: str, seconds: float) -> LentConnection:
        """Open a connection, with the settings that every session has.

        Raises:
            LoginRefused: the server let the login not in.
            AnswerLost: nobody answered.
        """
        raw, sockets = open_raw(self.endpoint, self.credential, purpose, seconds)
        try:
            with Watchdog(sockets, seconds):
                own = Session(raw, driver.pyodbc().Error)
                (number,) = own.row("\n".join((settings(seconds), STATEMENTS["number"])))
        except ERRORS:
            close_raw(raw, sockets)
            raise
        return LentConnection(raw, sockets, number)

    def said(self, error: Exception, *, connecting: bool) -> MssqlSaid:
        """Read an error, the driver's own or one of this adapter's."""
        if isinstance(error, ServerError):
            return MssqlSaid(number=error.number, words=error.text)
        if isinstance(error, LoginRefused):
            return MssqlSaid(number=error.number, words=str(error), login_refused=True, refusal=refusal_of(error))
        if isinstance(error, AnswerLost):
            number, refusal = error.number or 0, refusal_of(error)
            return MssqlSaid(number=number, words=str(error), lost=True, timed_out=error.timed_out, refusal=refusal)
        return self.said(told(driver_text(error), connecting=connecting), connecting=connecting)
