"""What the adapter's parts need of a server: connections, opened for a block or kept. A test gives another."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final, Protocol

from dpone_provider.adapters.mssql.session import Session
from dpone_provider.domain.connection import Endpoint

CONTROL_DATABASE: Final = "dpone_control"
"""The control database's name, where nobody chose another."""


class Kept(Protocol):
    """A connection that several calls share."""

    def use(self, seconds: float) -> AbstractContextManager[Session]:
        """Give it for one call, bounded anew."""

    def close(self) -> None:
        """Close it; the next use opens another."""


class Server(Protocol):
    """One database of one server. Opening raises ``LoginRefused`` or ``AnswerLost``."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""

    @property
    def user(self) -> str:
        """The login that connects."""

    def session(self, purpose: str, seconds: float) -> AbstractContextManager[Session]:
        """Open a new connection for a block."""

    def kept(self, purpose: str) -> Kept:
        """Return a connection to be shared by several calls."""

    def borrowed(self, handle: object) -> Session | None:
        """Return the session over a ledger transaction's handle, if it is one of this engine's."""
