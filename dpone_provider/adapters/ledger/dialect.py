"""What differs between the servers that a ledger can be on: one object per server, chosen by its kind.

Everything else of this adapter speaks SQLAlchemy Core. A ``Dialect`` connects, reads errors and looks at other
sessions; a ``Conversation`` is one connection's part of one run: its first statement, its writes, its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from sqlalchemy import Connection, CursorResult, Engine, Row
from sqlalchemy.pool import Pool, QueuePool

from dpone_provider.adapters.ledger.errors import Answer
from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Endpoint

Parameters = Mapping[str, object]
POOLED = 2
"""Connections that are kept between runs."""
LOOK_SECONDS = 2
"""How long a connection to look through is waited for, and a look through it."""


class Admits(Enum):
    """Who is let in by an authority that went back."""

    NOBODY = auto()
    """What every transaction is, but for those below."""
    LOOKING = auto()
    """Whoever only looks: nothing can be written."""
    READMITTING = auto()
    """The readmission itself."""


class Moment(Enum):
    """What an error came in answer to."""

    CONNECTING = auto()
    RUNNING = auto()
    COMMITTING = auto()


class FailedInside(Exception):
    """The transaction ended before its COMMIT, by an error that the script did not report."""


@dataclass(frozen=True, slots=True)
class OtherSession:
    """A session of the server as messages name it: what it calls itself, what it does, since when it is inside."""

    number: int
    who: str
    state: str
    seconds: int


class Cut(Protocol):
    """Ends a connection under its driver, whose call then ends with an error: no call waits for a silent server."""

    def now(self) -> None:
        """End it; one that is closed already is left alone."""

    def close(self) -> None:
        """Give the hand on it up; the connection stays."""


class Beside(Protocol):
    """A connection of its own, in autocommit, through which the others are looked at. Not for two threads at once."""

    def cut(self) -> Cut:
        """Return a hand on it."""

    def blockers(self, session: int) -> list[OtherSession]:
        """Return who keeps a session waiting now."""

    def end_sleepers(self, seconds: float) -> list[OtherSession]:
        """End this login's own sessions of the ledger that have said nothing inside a transaction for so long."""


class Conversation(Protocol):
    """One connection's part of one run, in order: ``open``, statements, ``settle`` and ``commit``, or ``rollback``."""

    connection: Connection

    @property
    def session(self) -> int:
        """The connection's number on its server."""

    def cut(self) -> Cut:
        """Return a hand on it."""

    def open(self, deadline: Deadline, name: str, admits: Admits) -> Row[Any] | None:
        """Begin the transaction, with its time-outs and its name; return who the ledger is, None if it is nobody yet.

        Of the row are used: ``authority_id``, ``incarnation``, ``observed``, ``family``, ``version``, ``mark``,
        ``sequence``, ``opened``.
        """

    def renew_timeouts(self, deadline: Deadline) -> None:
        """Set the time-outs to what is left now."""

    def write(self, statement: Statement, rows: Sequence[Parameters]) -> int:
        """Send one write for each of ``rows``, together; return how many rows of the table they met.

        Raises:
            FailedInside: the transaction is over already.
        """

    def named(self, name: str, parameters: Parameters) -> CursorResult[Any]:
        """Send a statement of the dialect's own file: ``lock_authority``, ``read_standing`` or
        ``raise_sequence``."""

    def settle(self, *, wrote: bool) -> bool:
        """Do what comes right before COMMIT; return whether the transaction still is the one that was opened."""

    def commit(self) -> None:
        """Commit, durably when it is answered."""

    def rollback(self) -> None:
        """Roll back whatever is open. A connection that cannot be rolled back is given up."""


class Dialect(Protocol):
    """One ledger's server, and who connects to it. May be shared between threads."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What its driver raises, besides what SQLAlchemy makes of it."""

    @property
    def installed_by(self) -> str:
        """The scripts that install the control schema, for messages."""

    def engine(self, pool: type[Pool], options: Mapping[str, Any]) -> Engine:
        """Return an engine that connects when it is first used, with execution options."""

    def converse(self, connection: Connection, control_schema: str) -> Conversation:
        """Return the part of one run on a connection that is in no transaction."""

    def read_error(self, error: Exception, moment: Moment) -> Answer:
        """Return what an error means that came in answer to something."""

    def beside(self) -> AbstractContextManager[Beside]:
        """Open a connection to look through; wait no longer than a look may take."""


def sized(pool: type[Pool]) -> dict[str, Any]:
    """Return how many connections a pool of this kind keeps."""
    kept = {"pool_size": POOLED, "max_overflow": -1} if issubclass(pool, QueuePool) else {}
    return {"poolclass": pool, **kept}
