"""What polls of one login show together: the rule by which nothing of it is left, without any I/O.

A session that is still logging in has a login time of 1900-01-01 and no login yet. So once the disabling was read back:

* one that begins later is refused; it never counts;
* one that was there may have passed the check just before. It counts until it is gone or shows whose it is.

A transaction of the login may outlive its session (a rollback after a kill): every transaction that was ever seen in a
session of it must have left the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class UnderWay:
    """One login under way in one poll: its session's number, and when it connected."""

    session: int
    connected: str

    def __str__(self) -> str:
        """Return words for a message."""
        return f"session {self.session} (a login under way, connected {self.connected or 'at an unknown time'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSession:
    """One session of a login, or of somebody who acts as it. ``transaction`` is None outside of one."""

    session: int
    began: str
    status: str
    program: str
    host: str
    transaction: int | None
    command: str
    percent: int

    def __str__(self) -> str:
        """Return words for a message."""
        doing = f", {self.command}" if self.command else ""
        rolling = f" {self.percent} %" if "ROLLBACK" in self.command else ""
        return (
            f"session {self.session} ({self.status}{doing}{rolling}, began {self.began},"
            f" program {self.program or 'unnamed'}, from {self.host or 'an unknown host'})"
        )


@dataclass(frozen=True, slots=True)
class Watch:
    """What earlier polls left: the logins under way that count, and the transactions that were seen."""

    counting: frozenset[UnderWay] | None = None
    transactions: frozenset[int] = field(default_factory=frozenset)

    def after(self, seen: Iterable[UnderWay], sessions: Sequence[LoginSession]) -> tuple[Watch, tuple[UnderWay, ...]]:
        """Return the watch after another poll, and the logins under way that count in it.

        The first poll fixes who can count.
        """
        now = frozenset(seen)
        counting = now if self.counting is None else now & self.counting
        open_now = {one.transaction for one in sessions if one.transaction is not None}
        ordered = tuple(sorted(counting, key=lambda one: (one.session, one.connected)))
        return Watch(counting, self.transactions | open_now), ordered
