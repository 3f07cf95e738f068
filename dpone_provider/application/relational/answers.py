"""What an error of an SQL server proves before a COMMIT, as its answer, and instead of one.

Which error means what is the adapter's knowledge. Each keeps exceptions of its own: one block may speak to two servers,
and neither may take the other's error for its own.
"""

from __future__ import annotations

from typing import Final, Protocol

from dpone_provider.domain.outcomes import Failed, Unknown, fail, unknown

LOGIN_REFUSED: Final = "login_refused"
"""The `reason` of a session that was not let in."""


class Trouble(Protocol):
    """What a session raises, as far as a decision depends on it. Its text is what was said, without a secret."""

    @property
    def reason(self) -> str:
        """The name under which it is reported when it came before a COMMIT was sent."""

    @property
    def answered(self) -> bool:
        """Whether the server said it; else no answer came."""

    @property
    def rolled_back(self) -> bool:
        """Whether this, as the answer to COMMIT, proves that nothing was committed."""


def unreadable(error: Trouble, subject: str) -> Unknown:
    """Return what a failed read comes to: never absence, never an empty list."""
    return unknown(
        "unreadable",
        subject,
        found=error,
        allowed="a server that answers, and a login that may read this",
        next_command="see that the server is up and the connection's login right, then run the same command again",
    )


def unanswered(error: Trouble, subject: str, *, next_command: str) -> Unknown:
    """Return what a statement comes to that may have had its effect."""
    return unknown(
        "service_refused_statement" if error.answered else "service_answer_lost",
        subject,
        found=error,
        allowed="an answer of the server",
        next_command=next_command,
    )


def before_commit(error: Trouble, subject: str) -> Failed:
    """Return what an error before COMMIT was sent comes to: the server rolls back whatever was done."""
    return fail(
        error.reason,
        subject,
        found=error,
        allowed="a transaction that the fence lets pass and the server accepts",
        next_command="nothing was published; the next try begins anew",
    )


def at_commit(error: Trouble, subject: str) -> Failed | Unknown:
    """Return what an error comes to that came as the answer to COMMIT, or instead of one."""
    if error.rolled_back:
        return before_commit(error, subject)
    return unknown(
        "commit_answer_lost",
        subject,
        found=error,
        allowed="the server's answer to COMMIT",
        next_command="nothing by hand: the target's receipt decides once the login is closed",
    )
