"""Which logins under way can still become sessions of a login that was disabled: the rule, without any I/O.

A login is under way from the moment at which the server has read its start packet (its row in pg_stat_activity has no
role yet, state ``starting``) until its role is known and visible. The role's right to log in is checked at the end of
authentication. So once NOLOGIN was read back:

* a login that begins later is refused; it never counts;
* one that was there may have passed the check just before. It counts until it is gone or its role is visible;
* one that was there, was waiting for its client, and is still under way in the next poll was not yet authenticated in
  the earlier one, which came after NOLOGIN: it will be refused, however long its client stays silent. It counts no
  more.

A client that has connected and sent nothing has no row, and no role: it begins later.
Source: BackendInitialize(), InitPostgres() (PerformAuthentication before InitializeSessionUserId) and secure_read(),
the only place before that check where ``ClientRead`` is waited for, of PostgreSQL 18.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CLIENT_READ = "ClientRead"


@dataclass(frozen=True, slots=True)
class UnderWay:
    """One login under way in one poll: its process, when it began, and what it waits for."""

    pid: int
    began: str
    waits: str | None

    @property
    def key(self) -> tuple[int, str]:
        """What tells it from another process that got the same number later."""
        return (self.pid, self.began)

    def __str__(self) -> str:
        """Return words for a message."""
        return f"pid {self.pid} (a login under way since {self.began}, waiting for {self.waits or 'nothing'})"


@dataclass(frozen=True, slots=True)
class Watch:
    """What earlier polls left: the logins that count, and those of them that waited for their client."""

    counting: frozenset[tuple[int, str]] | None = None
    waited: frozenset[tuple[int, str]] = frozenset()

    def after(self, seen: Iterable[UnderWay]) -> tuple[Watch, tuple[UnderWay, ...]]:
        """Return the watch after another poll, and the logins that count in it. The first poll fixes who can count."""
        now = {login.key: login for login in seen}
        counting = set(now) if self.counting is None else set(now) & self.counting - self.waited
        waits = frozenset(key for key in counting if now[key].waits == CLIENT_READ)
        return Watch(frozenset(counting), waits), tuple(now[key] for key in sorted(counting))
