"""What an error of the ledger's server means; each dialect has the table of its own numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from dpone_provider.domain.outcomes import Failed, Refused, fail


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
    LOGIN_REFUSED = auto()
    """The server answered and let the login not in."""
    FULL = auto()
    """The server has no place for one more session: nothing was begun, and time alone helps."""
    REFUSED = auto()
    """Anything else that the server said no to."""
    LOST = auto()
    """No answer, or the server ended the session."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One error, read: its meaning, its code in words (None when no answer came), the constraint or law, its texts.

    ``refusal`` is why no connection comes about, where the server or its certificate shows that.
    """

    meaning: Meaning
    code: str | None
    constraint: str
    message: str
    detail: str = ""
    hint: str = ""
    refusal: Refused | None = None


def law_refused(answer: Answer, script: str) -> Failed:
    """Return the failure of a script whose write the database's own law refused; nothing of it was kept."""
    law = answer.constraint or str(answer.code).lower().replace(" ", "_")
    return fail(
        law,
        f"ledger transaction {script}, {answer.message.removeprefix(law + ': ')}",
        found=answer.detail or answer.message,
        allowed=answer.hint.removeprefix("allowed: ") or f"what the constraint {law} holds",
        next_command="dpone status; if nobody changed the ledger by hand, this is a fault of the program",
    )
