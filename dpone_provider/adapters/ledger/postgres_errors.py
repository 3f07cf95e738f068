"""What an error of PostgreSQL means for the ledger: one table, by SQLSTATE."""

from __future__ import annotations

import psycopg
from sqlalchemy.exc import DBAPIError

from dpone_provider.adapters.ledger.dialect import Moment
from dpone_provider.adapters.ledger.errors import Answer, Meaning

_FULL = ("too many clients", "too many connections", "remaining connection slots")
"""How a server says that it lets nobody more in (libpq gives no SQLSTATE before a session exists)."""
_LOGIN_REFUSED = ("28000", "28P01", "3D000", "42501")
LAW_BROKEN = "DP001"
"""Raised by the triggers of the control schema; the constraint field names the law."""
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


def read_error(error: Exception, moment: Moment) -> Answer:
    """Return what ``error`` means. The texts are the server's; it never saw a secret in clear."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, psycopg.Error):
        return Answer(Meaning.LOST, None, "", str(cause))
    said = cause.diag
    message = said.message_primary or str(cause).strip()
    state = cause.sqlstate
    return Answer(
        meaning=_refusal(state, message) if moment is Moment.CONNECTING else _meaning(state),
        code=None if state is None else f"SQLSTATE {state}",
        constraint=said.constraint_name or "",
        message=message,
        detail=said.message_detail or "",
        hint=said.message_hint or "",
    )


def _refusal(sqlstate: str | None, message: str) -> Meaning:
    if any(words in message for words in _FULL):
        return Meaning.FULL
    if sqlstate in _LOGIN_REFUSED or "password authentication failed" in message:
        return Meaning.LOGIN_REFUSED
    return Meaning.LOST


def _meaning(sqlstate: str | None) -> Meaning:
    if sqlstate is None or sqlstate.startswith("08"):
        return Meaning.LOST
    return _MEANINGS.get(sqlstate, Meaning.REFUSED)
