"""What an error of PostgreSQL proves, by its SQLSTATE.

Three kinds leave a session: the server's own answer, a login that it refused, and no answer at all. None of them holds
a driver's object: psycopg's exceptions carry the connection, and with it the password.
"""

from __future__ import annotations

from typing import Final

from dpone_provider.domain.outcomes import Failed, Unknown, fail, unknown

PROVEN_ROLLBACK: Final = frozenset(
    {
        "23000",  # integrity constraint violations: also by deferred constraints, at COMMIT
        "23001",
        "23502",
        "23503",
        "23505",
        "23514",
        "23P01",
        "25P02",  # in_failed_sql_transaction: COMMIT of it is a ROLLBACK
        "40000",  # transaction_rollback and its kin
        "40001",
        "40002",
        "40P01",
        "53100",  # disk_full and out_of_memory: the statement ended with an error
        "53200",
        "55P03",  # lock_not_available
        "57014",  # query_canceled: answered by the server, so it did not commit
    }
)
"""An answer to COMMIT that proves that nothing was committed. Anything else there, 57P01 included, is unknown: an
administrator's shutdown can be told to the client after the commit record was written.
Source: the list of error codes, and CommitTransaction() in src/backend/access/transam/xact.c."""

REPEATABLE: Final = frozenset({"40001", "40P01"})
"""A rollback that may be repeated within the deadline."""

FENCE: Final = {
    "DP101": "fence_transaction",
    "DP102": "fence_attempt",
    "DP103": "fence_epoch",
    "DP104": "fence_gate",
}
"""The fence's own codes (sql/postgres/020_gate.sql) with the reasons that they are reported under."""

LOCK_TIMEOUT: Final = "55P03"
CANCELED: Final = "57014"
UNDEFINED_OBJECT: Final = "42704"


class ServerError(Exception):
    """The server answered a statement with an error; ``text`` is its primary message, without row data."""

    def __init__(self, sqlstate: str, text: str) -> None:
        super().__init__(f"SQLSTATE {sqlstate}: {text}")
        self.sqlstate = sqlstate
        self.text = text

    @property
    def rolled_back(self) -> bool:
        """Whether this, as the answer to COMMIT, proves that nothing was committed."""
        return self.sqlstate in PROVEN_ROLLBACK or self.sqlstate.startswith("DP")

    @property
    def timed_out(self) -> bool:
        """Whether a lock or the statement itself took longer than it was given."""
        return self.sqlstate in (LOCK_TIMEOUT, CANCELED)


class LoginRefused(Exception):
    """The server answered and let the role not in: password, NOLOGIN, the gate, a database without CONNECT."""


class AnswerLost(Exception):
    """No answer came: nobody listens, the connection broke, or the time was up."""


PostgresError = ServerError | LoginRefused | AnswerLost
ERRORS: Final = (ServerError, LoginRefused, AnswerLost)
"""For ``except``: everything that a session raises."""


def unreadable(error: PostgresError, subject: str) -> Unknown:
    """Return what a failed read comes to: never absence, never an empty list."""
    return unknown(
        "unreadable",
        subject,
        found=str(error),
        allowed="a server that answers, and a login that may read this",
        next_command="see that the server is up and the connection's login right, then run the same command again",
    )


def unanswered(error: PostgresError, subject: str, *, next_command: str) -> Unknown:
    """Return what a statement comes to that may have had its effect."""
    return unknown(
        "service_answer_lost" if isinstance(error, AnswerLost) else "service_refused_statement",
        subject,
        found=str(error),
        allowed="an answer of the server",
        next_command=next_command,
    )


def before_commit(error: PostgresError, subject: str) -> Failed:
    """Return what an error before COMMIT was sent comes to: the server rolls back whatever was done."""
    reason = FENCE.get(error.sqlstate, "statement_failed") if isinstance(error, ServerError) else "connection_failed"
    if isinstance(error, LoginRefused):
        reason = "login_refused"
    return fail(
        reason,
        subject,
        found=str(error),
        allowed="a transaction that the fence lets pass and the server accepts",
        next_command="nothing was published; the next try begins anew",
    )


def at_commit(error: PostgresError, subject: str) -> Failed | Unknown:
    """Return what an error comes to that came as the answer to COMMIT, or instead of one."""
    if isinstance(error, ServerError) and error.rolled_back:
        return before_commit(error, subject)
    return unknown(
        "commit_answer_lost",
        subject,
        found=str(error),
        allowed="the server's answer to COMMIT",
        next_command="nothing by hand: the target's receipt decides once the login is closed",
    )
