"""What the ledger borrows of SQL Server's own adapter: connections as that opens them, and the reading of their errors.

Adapters don't import each other, so the two meet in the assembly: one strings, one place of TLS, one place that knows
the driver, whoever connects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Protocol

from dpone_provider.domain.connection import Endpoint
from dpone_provider.domain.outcomes import Refused


class Said(Protocol):
    """What an error of the driver says. ``number`` is the server's own, 0 where the server said nothing."""

    @property
    def number(self) -> int: ...
    @property
    def words(self) -> str: ...
    @property
    def login_refused(self) -> bool:
        """The server answered and let the login not in."""

    @property
    def timed_out(self) -> bool:
        """The driver gave up waiting for the statement's answer."""

    @property
    def lost(self) -> bool:
        """No answer of the server, or one that says that the session is over."""

    @property
    def refusal(self) -> Refused | None:
        """Why no connection comes about, whatever it is for: the database is closed, or the server is not trusted."""


class Lent(Protocol):
    """One connection: pyodbc's, with its sockets, as SQLAlchemy uses it. In autocommit; ``commit`` and ``rollback`` do
    nothing, as the ledger begins and ends its transactions by statements."""

    timeout: int
    """Of each statement, in whole seconds."""

    @property
    def raw(self) -> object:
        """pyodbc's connection."""

    @property
    def session(self) -> int:
        """The session's number on the server."""

    def shut(self) -> None:
        """End it under the driver, whose call then ends with an error."""

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        """Run a batch with named parameters that gives one result, and drain it."""

    def close(self) -> None: ...


class Lender(Protocol):
    """One database of SQL Server, and who connects to it."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a lent connection raises, and what opening one does."""

    def driver(self) -> ModuleType:
        """Return pyodbc, without pooling.

        Raises:
            DponeError: Refused ``odbc_driver_missing``.
        """

    def lend(self, purpose: str, seconds: float) -> Lent:
        """Open a connection. ``purpose`` becomes the program's name; ``seconds`` bound the opening, and each statement
        and lock wait until another time-out is set."""

    def said(self, error: Exception, *, connecting: bool) -> Said:
        """Read an error."""
