"""What an error of PostgreSQL means for the ledger: one table, by SQLSTATE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import psycopg
from sqlalchemy.exc import DBAPIError

from dpone_provider.domain.outcomes import Failed, fail

_FULL = ("too many clients", "too many connections", "remaining connection slots")
"""How a server says that it lets nobody more in (libpq gives no SQLSTATE before a session exists)."""
LAW_BROKEN = "DP001"
"""Raised by the triggers of the control schema; the constraint field names the law."""


class Meaning(Enum):
    """What can be concluded. All but LOST prove that the transaction is rolled back, also as an answer to COMMIT."""

    CONFLICT = auto()
    """A unique index or a foreign key decided against it."""
    REPEAT = auto()
    """Deadlock or serialisation: the same script may run again."""
    LOCK_WAIT = auto()
    """A lock was waited for until the deadline."""
    TOO_SLOW = auto()
    """A statement ran until the deadline."""
    LAW = auto()
    """A trigger or a CHECK refused: a bug, or a hand."""
    ABSENT = auto()
    """A table, schema or function is not there."""
    REFUSED = auto()
    """Anything else that the server said no to."""
    LOST = auto()
    """No answer, or the server ended the session."""


_MEANINGS = {
    "23505": Meaning.CONFLICT,
    "23503": Meaning.CONFLICT,
    "23514": Meaning.LAW,
    "23502": Meaning.LAW,
    LAW_BROKEN: Meaning.LAW,
    "40001": Meaning.REPEAT,
    "40P01": Meaning.REPEAT,
    "55P03": Meaning.LOCK_WAIT,
    "57014": Meaning.TOO_SLOW,
    "42P01": Meaning.ABSENT,
    "3F000": Meaning.ABSENT,
    "42883": Meaning.ABSENT,
    # The server ends the session: shutdown, crash of another, still starting, idle too long, transaction too long.
    "57P01": Meaning.LOST,
    "57P02": Meaning.LOST,
    "57P03": Meaning.LOST,
    "57P05": Meaning.LOST,
    "25P03": Meaning.LOST,
    "25P04": Meaning.LOST,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One error, read: its meaning, its SQLSTATE (None when no answer came), the constraint or law, and its texts."""

    meaning: Meaning
    sqlstate: str | None
    constraint: str
    message: str
    detail: str
    hint: str


def read_error(error: DBAPIError | psycopg.Error) -> Answer:
    """Return what ``error`` means. The texts are the server's; it never saw a secret in clear."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, psycopg.Error):
        return Answer(Meaning.LOST, None, "", str(cause), "", "")
    said = cause.diag
    return Answer(
        meaning=_meaning(cause.sqlstate),
        sqlstate=cause.sqlstate,
        constraint=said.constraint_name or "",
        message=said.message_primary or str(cause).strip(),
        detail=said.message_detail or "",
        hint=said.message_hint or "",
    )


def is_full(answer: Answer) -> bool:
    """Tell whether a connect was refused for want of a place: nothing was begun, and time alone helps."""
    return any(words in answer.message for words in _FULL)


def law_refused(answer: Answer, script: str) -> Failed:
    """Return the failure of a script whose write the database's own law refused; nothing of it was kept."""
    law = answer.constraint or f"sqlstate_{answer.sqlstate}"
    return fail(
        law,
        f"ledger transaction {script}, {answer.message.removeprefix(law + ': ')}",
        found=answer.detail or answer.message,
        allowed=answer.hint.removeprefix("allowed: ") or f"what the constraint {law} holds",
        next_command="dpone status; if nobody changed the ledger by hand, this is a fault of the program",
    )


def _meaning(sqlstate: str | None) -> Meaning:
    if sqlstate is None or sqlstate.startswith("08"):
        return Meaning.LOST
    return _MEANINGS.get(sqlstate, Meaning.REFUSED)
