"""What an error of PostgreSQL proves, by its SQLSTATE.

Three kinds leave a session: the server's own answer, a login that it refused, and no answer at all. Each is a `Trouble`
(application/relational/answers.py), and none holds a driver's object: psycopg's exceptions carry the connection, and
with it the password.
"""

from __future__ import annotations

from typing import Final

from dpone_provider.application.relational.answers import LOGIN_REFUSED

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

    answered: Final = True

    def __init__(self, sqlstate: str, text: str) -> None:
        super().__init__(f"SQLSTATE {sqlstate}: {text}")
        self.sqlstate = sqlstate
        self.text = text

    @property
    def reason(self) -> str:
        """The name under which it is reported: the fence's own, or that a statement failed."""
        return FENCE.get(self.sqlstate, "statement_failed")

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

    reason: Final = LOGIN_REFUSED
    answered: Final = True
    rolled_back: Final = False


class AnswerLost(Exception):
    """No answer came: nobody listens, the connection broke, or the time was up."""

    reason: Final = "connection_failed"
    answered: Final = False
    rolled_back: Final = False


PostgresError = ServerError | LoginRefused | AnswerLost
ERRORS: Final = (ServerError, LoginRefused, AnswerLost)
"""For ``except``: everything that a session raises."""
