"""What an operation can come to: refused, failed, unknown or busy, each a value with the way out.

The classes are those of the protocol. *Refused* is known before any effect and changed nothing. *Failed* was attempted
and is known not to have happened. *Unknown* was dispatched and nobody can tell yet. *Busy* is a refusal that time alone
can lift. They are different types on purpose: a caller has to treat each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Never

from dpone_provider.domain.exit_codes import ExitCode


class StateChange(StrEnum):
    """Whether durable state may differ from before the call."""

    NONE = "nothing changed"
    SAID = "changed exactly as the message says"
    MAYBE = "state may have changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that went wrong, told so that a person can act on it.

    ``reason`` is a stable snake_case code. ``subject`` names the object, ``found`` what was there, ``allowed`` what
    would have been accepted, ``next_command`` what to do now (a command line or one sentence).
    """

    reason: str
    subject: str
    found: str
    allowed: str
    next_command: str

    def __post_init__(self) -> None:
        """Refuse an empty part: a message without a way out is a fault of its own."""
        for part in ("reason", "subject", "found", "allowed", "next_command"):
            if not getattr(self, part):
                raise ValueError(f"Problem.{part} is empty")

    def __str__(self) -> str:
        """Return the message in one paragraph, in the order in which a reader needs it."""
        return f"{self.reason}: {self.subject}: found {self.found}; allowed: {self.allowed}. Next: {self.next_command}"


@dataclass(frozen=True, slots=True)
class Refused:
    """Known before any effect; nothing changed."""

    problem: Problem
    exit_code: ExitCode = ExitCode.REFUSED
    change: StateChange = StateChange.NONE


@dataclass(frozen=True, slots=True)
class Busy:
    """Refused only because somebody else holds what is needed; ``holder`` names who."""

    problem: Problem
    holder: str
    exit_code: ExitCode = ExitCode.BUSY
    change: StateChange = StateChange.NONE


@dataclass(frozen=True, slots=True)
class Failed:
    """An effect was attempted and is known not to have happened, or is wholly undone."""

    problem: Problem
    exit_code: ExitCode = ExitCode.FAILED
    change: StateChange = StateChange.NONE


@dataclass(frozen=True, slots=True)
class Unknown:
    """An effect was dispatched and its outcome cannot be told until evidence says otherwise."""

    problem: Problem
    exit_code: ExitCode = ExitCode.UNKNOWN
    change: StateChange = StateChange.MAYBE


type_of_failure = (Refused, Busy, Failed, Unknown)
Failure = Refused | Busy | Failed | Unknown


class DponeError(Exception):
    """Unwinds the stack with a failure value; never caught to decide, only to report or to translate."""

    def __init__(self, failure: Failure) -> None:
        """Carry ``failure``; the text is its problem's."""
        super().__init__(str(failure.problem))
        self.failure = failure


def refuse(reason: str, subject: str, *, found: object, allowed: object, next_command: str) -> Refused:
    """Build a refusal; ``found`` and ``allowed`` are rendered with ``str``."""
    return Refused(_problem(reason, subject, found, allowed, next_command))


def busy(reason: str, subject: str, *, holder: str, allowed: object, next_command: str) -> Busy:
    """Build a busy refusal that names its holder."""
    return Busy(_problem(reason, subject, f"held by {holder}", allowed, next_command), holder)


def fail(
    reason: str,
    subject: str,
    *,
    found: object,
    allowed: object,
    next_command: str,
    change: StateChange = StateChange.NONE,
) -> Failed:
    """Build a failure whose effect is known not to have happened."""
    return Failed(_problem(reason, subject, found, allowed, next_command), change=change)


def unknown(reason: str, subject: str, *, found: object, allowed: object, next_command: str) -> Unknown:
    """Build an unknown outcome."""
    return Unknown(_problem(reason, subject, found, allowed, next_command))


def unwind(failure: Failure) -> Never:
    """Raise ``failure`` as an exception, for places that cannot return it."""
    raise DponeError(failure)


def _problem(reason: str, subject: str, found: object, allowed: object, next_command: str) -> Problem:
    return Problem(reason=reason, subject=subject, found=str(found), allowed=str(allowed), next_command=next_command)
