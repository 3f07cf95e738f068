"""The gate of the lab's ClickHouse, whose users are static: ready-made logins, each handed out once.

Which ones were handed out stands in a file beside the pool, entered before the name is told: a ledger that goes back
forgets, and a password that was given once is never given again.

What differs from ``sql_users``, and is said in every observation: nothing can stop a login from connecting again after
it was closed, and its grant is on the whole staging database instead of its own staged table.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Never, TextIO

from dpone_provider.adapters.clickhouse.logins import Logins
from dpone_provider.adapters.clickhouse.session import ClickHouseServer
from dpone_provider.application.ports.gate import GrantPlan, PrincipalObservation, SessionObservation
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import AttemptId, Principal, ServiceId
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, Unknown, fail, refuse, unwind
from dpone_provider.domain.secret import Secret

UNVERIFIED: Final = (
    "reconnect after closing: UNVERIFIED in the lab (its ClickHouse cannot change users while it runs)",
    "grant on one staged table only: UNVERIFIED in the lab (its users are granted the staging database)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPool:
    """Users were made beforehand. ``file`` holds a JSON list of objects ``user`` and ``password``, mode 0600."""

    file: Path


class UserPoolGate:
    """``LoginGate`` that hands out the users of a pool. Which were used the ledger knows, and the file beside it."""

    def __init__(self, server: ClickHouseServer, service_id: ServiceId, option: UserPool) -> None:
        """Act as the controller's user."""
        self._logins = Logins(server)
        self._service_id = service_id
        self._file = option.file
        self._let_in: set[str] = set()

    def propose(self, attempt_id: AttemptId, used: Collection[str]) -> Principal | Refused:
        """Choose a user that was never handed out. Where to begin follows from the attempt, so that two seldom meet."""
        try:
            names = sorted(self._pool())
        except DponeError as error:
            return error.failure if isinstance(error.failure, Refused) else self._used_up(0)
        start = int(attempt_id[:8], 16) % max(1, len(names))
        with self._handing_out() as handed_out:
            gone = set(used) | set(handed_out.read().split())
            free = [name for name in names[start:] + names[:start] if name not in gone]
            if not free:
                return self._used_up(len(names))
            handed_out.write(f"{free[0]}\n")
            handed_out.flush()
            os.fsync(handed_out.fileno())
        return Principal(service_id=self._service_id, name=free[0], sid=free[0])

    def create(self, principal: Principal, plan: GrantPlan, handle: object) -> Secret | Failed | Unknown:
        """Return the user's password; the user is there already."""
        try:
            secret = self._pool().get(principal.name)
        except DponeError as error:
            return self._unknown_user(principal, str(error))
        return secret or self._unknown_user(principal, "no user of that name")

    def enable(self, principal: Principal) -> None:
        """Count the user as let in."""
        self._let_in.add(principal.name)

    def read_back(self, principal: Principal) -> PrincipalObservation | Unknown:
        """Read the user on a fresh connection. ``can_login`` says whether we let it in: the server always would."""
        found = self._logins.login(principal)
        if isinstance(found, Unknown):
            return found
        return PrincipalObservation(
            principal=principal,
            exists=found is not None,
            can_login=found is not None and principal.name in self._let_in,
            server_id="" if found is None else found.server_id,
            grants=() if found is None else found.grants,
        )

    def disable(self, principal: Principal, deadline: Deadline) -> None:
        """Count the user as closed. Nothing on the server changes; what still runs is for ``end_sessions``."""
        self._let_in.discard(principal.name)

    def observe(self, principal: Principal) -> SessionObservation | Unknown:
        """Poll once for queries of the user; the observation names what it cannot show."""
        return self._logins.observe(principal, unverified=UNVERIFIED)

    def end_sessions(self, principal: Principal) -> Unknown | None:
        """Kill the user's queries."""
        return self._logins.end_sessions(principal)

    def collect(self, principal: Principal) -> None:
        """Do nothing: the user stays, and is never handed out again."""

    def principals(self) -> tuple[str, ...] | Unknown:
        """List every login that was ever handed out: the rest of the pool nobody knows the passwords of."""
        found = self._logins.names()
        if isinstance(found, Unknown):
            return found
        with self._handing_out() as handed_out:
            gone = set(handed_out.read().split())
        return tuple(name for name in found if name in gone)

    @contextmanager
    def _handing_out(self) -> Iterator[TextIO]:
        """Hold the list of what was handed out, to read and to add to; nobody else does meanwhile."""
        path = self._file.with_name(self._file.name + ".handed-out")
        with os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "r+", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield held

    def _pool(self) -> dict[str, Secret]:
        """Read the pool anew each time: no password stays in memory for longer than it is needed.

        Raises:
            DponeError: Refused when the file is missing, open to others, or not a pool.
        """
        try:
            mode = self._file.stat().st_mode
            if stat.S_IMODE(mode) & 0o077:
                self._unusable(f"mode {stat.filemode(mode)}")
            entries = json.loads(self._file.read_text(encoding="utf-8"))
            return {entry["user"]: Secret(entry["password"]) for entry in entries}
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._unusable(type(error).__name__)

    def _unusable(self, found: str) -> Never:
        unwind(
            refuse(
                "pool_unusable",
                str(self._file),
                found=found,
                allowed="a JSON list of user and password that only its owner may read (mode 0600)",
                next_command="dpone lab down, then dpone lab up",
            )
        )

    def _used_up(self, size: int) -> Refused:
        return refuse(
            "pool_used_up",
            str(self._file),
            found=f"{size} users, every one handed out before",
            allowed="a user that was never handed out",
            next_command="dpone lab down, then dpone lab up",
        )

    def _unknown_user(self, principal: Principal, found: str) -> Failed:
        return fail(
            "login_not_in_pool",
            f"login {principal.name}",
            found=found,
            allowed=f"a user of {self._file}",
            next_command="dpone lab status",
        )
