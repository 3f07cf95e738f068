"""What an error of ClickHouse proves, by its native code.

A code that is not listed proves nothing: after a mutation was sent it is *unknown*.
Source of the codes: ``src/Common/ErrorCodes.cpp``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from dpone_provider.domain.outcomes import Failed, Unknown, fail, unknown

NOT_EXECUTED: Final[dict[int, str]] = {
    36: "BAD_ARGUMENTS",
    46: "UNKNOWN_FUNCTION",
    47: "UNKNOWN_IDENTIFIER",
    48: "NOT_IMPLEMENTED",
    50: "UNKNOWN_TYPE",
    57: "TABLE_ALREADY_EXISTS",
    60: "UNKNOWN_TABLE",
    62: "SYNTAX_ERROR",
    69: "ARGUMENT_OUT_OF_BOUND",
    80: "INCORRECT_QUERY",
    81: "UNKNOWN_DATABASE",
    115: "UNKNOWN_SETTING",
    164: "READONLY",
    192: "UNKNOWN_USER",
    193: "WRONG_PASSWORD",
    194: "REQUIRED_PASSWORD",
    195: "IP_ADDRESS_NOT_ALLOWED",
    202: "TOO_MANY_SIMULTANEOUS_QUERIES",
    359: "TABLE_SIZE_EXCEEDS_MAX_DROP_SIZE_LIMIT",
    452: "SETTING_CONSTRAINT_VIOLATION",
    493: "ACCESS_ENTITY_ALREADY_EXISTS",
    497: "ACCESS_DENIED",
    514: "ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND",
    516: "AUTHENTICATION_FAILED",
}
"""The server looked at the statement and did not begin it."""

TABLE_EXISTS: Final = 57
UNKNOWN_TABLE: Final = 60
ACCESS_DENIED: Final = 497
NO_WRITABLE_ACCESS_STORAGE: Final = 514


class Effect(StrEnum):
    """What an error says about the effect of the statement that it answers."""

    NONE = "none"
    UNKNOWN = "unknown"


class ServerError(Exception):
    """The server answered with an error of its own. ``text`` is shortened and never holds a credential."""

    def __init__(self, code: int, name: str, text: str) -> None:
        """Hold code, symbolic name and the server's words."""
        super().__init__(f"code {code} {name}: {text}" if text else f"code {code} {name}")
        self.code = code

    @property
    def effect(self) -> Effect:
        """Tell what the code proves."""
        return Effect.NONE if self.code in NOT_EXECUTED else Effect.UNKNOWN


class AnswerLost(Exception):
    """No answer that could be trusted came: the connection broke, timed out, or was not ClickHouse's."""


ClickHouseError = ServerError | AnswerLost
ERRORS: Final = (ServerError, AnswerLost)
"""For ``except``: everything that a session raises."""


def unreadable(error: ClickHouseError, subject: str, *, next_command: str) -> Unknown:
    """Tell that something could not be read: never the same as its absence."""
    return unknown(
        "unreadable",
        subject,
        found=f"the server could not be read: {error}",
        allowed="an answer of the server",
        next_command=next_command,
    )


def of_mutation(error: ClickHouseError, subject: str, *, next_command: str) -> Failed | Unknown:
    """Classify the error of one mutation that was sent: failed only if the code proves that it did not begin."""
    match error:
        case ServerError() if error.effect is Effect.NONE:
            return fail(
                "clickhouse_refused",
                subject,
                found=error,
                allowed="a statement that the server runs",
                next_command=next_command,
            )
        case _:
            return unknown(
                "clickhouse_answer_lost",
                subject,
                found=error,
                allowed="an answer that proves what happened",
                next_command=next_command,
            )
