"""What polls of one login show together: the rule by which nothing of it is left, without any I/O.

A session that is still logging in has a login time of no day and no login yet. So once the disabling was read back:

* one that begins later is refused; it never counts;
* one that was there may have passed the check just before. It counts until it is gone or shows whose it is.

A transaction of the login may outlive its session (a rollback after a kill): every transaction that was ever seen in a
session of it must have left the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dpone_provider.adapters.mssql.session import Row


class Kind(StrEnum):
    """What a row of a poll is (``dpone_gate.observe_login``)."""

    SYSTEM = "system"
    LOGIN = "login"
    SESSION = "session"
    HALF_OPEN = "half_open"
    TRANSACTION = "transaction"
    LOCK = "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSession:
    """One session of a login, or of somebody who acts as it. ``transaction`` is None outside of one."""

    session: int
    began: str
    status: str
    program: str
    host: str
    transaction: int | None

    def __str__(self) -> str:
        """Return words for a message."""
        return (
            f"session {self.session} ({self.status}, began {self.began}, program {self.program or 'unnamed'},"
            f" from {self.host or 'an unknown host'})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One poll. ``enabled`` is None where the login does not exist; ``sees_all`` whether a system session was seen."""

    sees_all: bool
    enabled: bool | None
    sessions: tuple[LoginSession, ...]
    half_open: frozenset[int]
    lingering: tuple[int, ...]
    unattributed: tuple[str, ...]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Poll:
        """Read the rows: kind, session, login time, status, program, host, transaction."""
        by_kind: dict[Kind, list[Row]] = {}
        for kind, *rest in rows:
            by_kind.setdefault(Kind(kind), []).append(tuple(rest))
        (login,) = by_kind.get(Kind.LOGIN, [None])
        return cls(
            sees_all=bool(by_kind.get(Kind.SYSTEM)),
            enabled=None if login is None else login[2] == "enabled",
            sessions=tuple(_session(row) for row in by_kind.get(Kind.SESSION, [])),
            half_open=frozenset(row[0] for row in by_kind.get(Kind.HALF_OPEN, [])),
            lingering=tuple(row[5] for row in by_kind.get(Kind.TRANSACTION, [])),
            unattributed=tuple(
                f"a lock ({row[2]}) in database {row[3]} of session {row[0]}, which nobody can attribute"
                for row in by_kind.get(Kind.LOCK, [])
            ),
        )

    @property
    def transactions(self) -> tuple[str, ...]:
        """Every transaction that may be the login's, in words."""
        own = [one for one in self.sessions if one.transaction is not None]
        return (
            *(f"transaction {one.transaction} of session {one.session}" for one in own),
            *(f"transaction {one} that a session of it had opened" for one in self.lingering),
            *self.unattributed,
        )


@dataclass(frozen=True, slots=True)
class Watch:
    """What earlier polls left: the logins under way that count, and the transactions that were seen."""

    counting: frozenset[int] | None = None
    transactions: frozenset[int] = field(default_factory=frozenset)

    def after(self, poll: Poll) -> tuple[Watch, tuple[str, ...]]:
        """Return the watch after another poll, and in words the logins under way that count in it.

        The first poll after the disabling fixes who can count; one that still shows an enabled login fixes nothing.
        """
        transactions = self.transactions | {one.transaction for one in poll.sessions if one.transaction is not None}
        if poll.enabled:
            under_way = ("the login is not disabled", *_in_words(poll.half_open))
            return Watch(None, transactions), under_way
        counting = poll.half_open if self.counting is None else poll.half_open & self.counting
        return Watch(counting, transactions), _in_words(counting)


def _in_words(sessions: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"session {one} (a login under way)" for one in sorted(sessions))


def _session(row: Sequence[object]) -> LoginSession:
    number, began, status, program, host, transaction = row
    return LoginSession(
        session=int(str(number)),
        began=str(began),
        status=str(status or ""),
        program=str(program or ""),
        host=str(host or ""),
        transaction=transaction if isinstance(transaction, int) else None,
    )
