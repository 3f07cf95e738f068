"""What an error of SQL Server proves, by its native number: the one place that classifies.

Three kinds leave a session: the server's own answer, a login that it refused, and no answer at all. Each is a `Trouble`
(application/relational/answers.py), and none holds a driver's object. pyodbc's classes and SQLSTATEs say too little:
1205 comes as 40001, 1222, 3960, 229, 2628 and what a procedure throws all come as 42000.

Source: "Database engine events and errors" of Microsoft's documentation, by number.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from dpone_provider.application.relational.answers import LOGIN_REFUSED
from dpone_provider.domain.outcomes import Refused, unwind


class Meaning(StrEnum):
    """What a number says, as far as anything here depends on it."""

    DEADLOCK = "chosen as the victim of a deadlock; its transaction is rolled back"
    LOCK_TIMEOUT = "a lock was waited for as long as allowed"
    SNAPSHOT_CONFLICT = "a snapshot transaction met a change; it is rolled back"
    NO_SNAPSHOT = "snapshot isolation is not allowed in the database"
    DOOMED = "the transaction cannot be committed; it is rolled back"
    UNIQUE = "a unique index or a primary key refused a row"
    CONSTRAINT = "a constraint refused a row"
    TRUNCATION = "a value is longer than its column"
    CONVERSION = "a value does not fit its column"
    PERMISSION = "a right is missing"
    OUTPUT_ON_TRIGGER = "OUTPUT without INTO on a table with triggers"
    SETTINGS = "a SET option is not what an index or a view requires"
    ABSENT = "an object does not exist, or may not be seen"
    SESSION_GONE = "no such session to end"
    LOGIN_REFUSED = "the login was not let in"
    LOGIN_BUSY = "the server takes no logins at present"
    DATABASE_STATE = "the database cannot be used in its state"
    FENCE = "the fence refused"
    OTHER = "anything else"


def _table() -> dict[int, Meaning]:
    groups: dict[Meaning, tuple[int, ...]] = {
        Meaning.DEADLOCK: (1205,),
        Meaning.LOCK_TIMEOUT: (1222, 1807, 5061),
        Meaning.SNAPSHOT_CONFLICT: (3960, 3961),
        Meaning.NO_SNAPSHOT: (3952,),
        Meaning.DOOMED: (3902, 3903, 3930, 3998, 3931),
        Meaning.UNIQUE: (2601, 2627),
        Meaning.CONSTRAINT: (515, 547),
        Meaning.TRUNCATION: (2628, 8152),
        Meaning.CONVERSION: (220, 241, 242, 245, 248, 8114, 8115),
        Meaning.PERMISSION: (229, 230, 262, 297, 300, 371, 916, 1088, 3704, 4834, 6102, 15151, 15247),
        Meaning.OUTPUT_ON_TRIGGER: (334,),
        Meaning.SETTINGS: (1934, 1935),
        Meaning.ABSENT: (208, 911, 2812, 3701, 15023, 15517),
        Meaning.SESSION_GONE: (6106, 6101, 6107),
        Meaning.LOGIN_REFUSED: (4060, 4062, 4064, 17892, 18450, 18452, 18456, 18461, 18470, 18486, 18487, 18488),
        Meaning.LOGIN_BUSY: (6005, 17142, 17143, 17188, 17197, 17803, 17809, 17810, 18401, 18451),
        Meaning.DATABASE_STATE: (921, 922, 924, 926, 927, 929, 942, 945, 952, 976, 3906, 5064, 9001),
        Meaning.FENCE: (51001, 51002, 51003, 51004),
    }
    return {number: meaning for meaning, numbers in groups.items() for number in numbers}


MEANINGS: Final = MappingProxyType(_table())
"""Every number that decides something. Any other is ``OTHER``: as the answer to a COMMIT it proves nothing."""

PROVEN_ROLLBACK: Final = frozenset(
    {
        Meaning.DEADLOCK,
        Meaning.SNAPSHOT_CONFLICT,
        Meaning.DOOMED,
        Meaning.UNIQUE,
        Meaning.CONSTRAINT,
        Meaning.FENCE,
    }
)
"""Answers to COMMIT, sent under XACT_ABORT ON, that prove that nothing was committed. 3902 is one: COMMIT met no
transaction, so the only one of the session was rolled back before."""

REPEATABLE: Final = frozenset({1205, 3960})
"""A rollback that may be repeated within the deadline."""

STILL_LOGGED_IN: Final = 15434
"""A login with a session cannot be dropped; one that was just refused or ended may count for a moment."""

FENCE: Final = MappingProxyType(
    {51001: "fence_transaction", 51002: "fence_attempt", 51003: "fence_epoch", 51004: "fence_gate"}
)
"""The fence's own numbers (``dpone_gate.require_current``) with the reasons that they are reported under."""


class ServerError(Exception):
    """The server answered a statement with an error: its native number and its text."""

    answered: Final = True

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"error {number}: {text}")
        self.number = number
        self.text = text

    @property
    def meaning(self) -> Meaning:
        """What the number says."""
        return MEANINGS.get(self.number, Meaning.OTHER)

    @property
    def reason(self) -> str:
        """The name under which it is reported: the fence's own, or that a statement failed."""
        return FENCE.get(self.number, "statement_failed")

    @property
    def rolled_back(self) -> bool:
        """Whether this, as the answer to COMMIT, proves that nothing was committed."""
        return self.meaning in PROVEN_ROLLBACK

    @property
    def repeatable(self) -> bool:
        """Whether the same transaction may simply run again."""
        return self.number in REPEATABLE

    @property
    def timed_out(self) -> bool:
        """Whether a lock was waited for as long as allowed."""
        return self.meaning is Meaning.LOCK_TIMEOUT


class LoginRefused(Exception):
    """The server answered and let the login not in: password, disabled, the gate, a database that it may not enter."""

    reason: Final = LOGIN_REFUSED
    answered: Final = True
    rolled_back: Final = False

    def __init__(self, text: str, number: int = 0) -> None:
        super().__init__(text)
        self.number = number


class AnswerLost(Exception):
    """No answer came: nobody listens, the connection broke, or the time was up (08S01, HYT00).

    ``number`` is the server's own where it said that it lets nobody in at present.
    """

    def __init__(self, text: str, number: int | None = None, *, timed_out: bool = False) -> None:
        super().__init__(text)
        self.number = number
        self.timed_out = timed_out

    reason: Final = "connection_failed"
    answered: Final = False
    rolled_back: Final = False


class DatabaseClosed(LoginRefused):
    """The server knows the login and does not open the database to it: ``refusal`` says why, as the server sees it."""

    def __init__(self, error: LoginRefused, refusal: Refused) -> None:
        super().__init__(f"{error}: {refusal.problem.found}", error.number)
        self.refusal: Final = refusal


class NotTrusted(AnswerLost):
    """The server's certificate is not one that this machine trusts; nothing was sent to it, no password either."""

    def __init__(self, text: str, refusal: Refused) -> None:
        super().__init__(text)
        self.refusal: Final = refusal


MssqlError = ServerError | LoginRefused | AnswerLost
ERRORS: Final = (ServerError, LoginRefused, AnswerLost)
"""For ``except``: everything that a session raises."""


def refusal_of(error: MssqlError) -> Refused | None:
    """Return why nobody gets in here, whatever is asked: the database is closed, or the server is not trusted."""
    return error.refusal if isinstance(error, DatabaseClosed | NotTrusted) else None


def require_entered(error: MssqlError) -> None:
    """Require that an error is no such one.

    Raises:
        DponeError: Refused, with its reason.
    """
    refused = refusal_of(error)
    if refused is not None:
        unwind(refused)
