"""Where an attempt works: its login on the server, its child, its target, and what controllers have learnt of it.

What controllers have learnt is kept for ever, since any of them may stop and go on later: what one of them may do
with it, a crashed one's successor or a zombie may do as well, as often as they like.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import GateName
from dpone_provider.domain.publication import PublicationState


class Login(StrEnum):
    """The login on the server."""

    ABSENT = "absent"
    MADE = "made, nobody can log in"
    ENABLED = "enabled"
    GONE = "disabled or dropped"


class Line(StrEnum):
    """The one connection of the attempt's child."""

    NONE = "none"
    HALF_OPEN = "a login under way"
    SESSION = "a session"
    WORKING = "a session in a transaction or an INSERT"


class Staged(StrEnum):
    """The table of the attempt's own name (exchange only)."""

    NEVER = "not made yet"
    EMPTY = "made"
    FULL = "filled"
    OLD = "what the target was"
    GONE = "dropped"


@dataclass(frozen=True, slots=True)
class Seen:
    """What somebody saw after the gates were CLOSED and may seal with, now or much later."""

    outcome: AttemptState
    names_gates: tuple[GateName, ...]
    publication: PublicationState | None = None
    gone: bool = False
    judged: bool = False

    def __str__(self) -> str:
        """Say it."""
        return f"{self.outcome}{' by judgement' if self.judged else ''}"


@dataclass(frozen=True, slots=True)
class Place:
    """``handed`` counts how often the secret left. ``let_go``: the one dispatch is on its way.

    ``closing_seen``, ``quiet_seen`` and ``seen`` are what some controller knows: that CLOSING was committed, that
    nothing of the login was left after it, what the target showed.
    """

    login: Login = Login.ABSENT
    may_enable: bool = False
    handed: int = 0
    line: Line = Line.NONE
    let_go: bool = False
    closing_seen: bool = False
    quiet_seen: bool = False
    seen: frozenset[Seen] = frozenset()
    staged: Staged = Staged.NEVER
    published: bool = False
    overwritten: bool = False
    """Rows of the staging arrived in the published table."""
    judged: bool = False
    """An operator settled it by judgement: what the target shows may differ."""
