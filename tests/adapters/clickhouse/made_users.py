"""A stand-in for a ClickHouse whose users are made by SQL: the lab's server behind a proxy that keeps such users.

The proxy reads the statements of ``gate.sql`` that make and drop users, keeps what they say, and lets a login in or not
by it; what a login then does runs for a ready-made user of the lab. It shows that the gate's steps are in the right
order and that it believes what it reads, not that a real server does with these statements what we think.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from dpone_provider.domain.identity import PRINCIPAL_PREFIX
from tests.adapters.clickhouse.fault_proxy import AnswerError, Fault, PassOn, Seen, SendInstead

NOTHING = "DROP TABLE IF EXISTS mart.nothing_stands_here"
_LOGIN = re.compile(rf"{PRINCIPAL_PREFIX}[0-9a-f]{{32}}")
DENIED = AnswerError(516, "AUTHENTICATION_FAILED")


@dataclass(slots=True)
class MadeUser:
    """One user: the hash of its password, whether any host may connect, and its grants."""

    password_hash: str
    hosts: str
    grants: list[str] = field(default_factory=list)


@dataclass(slots=True)
class MadeUsers:
    """The proxy's rule. ``stand_in`` is the ready-made user for whom logins run, unless ``stand_ins`` names another."""

    stand_in: tuple[str, str]
    stand_ins: dict[str, tuple[str, str]] = field(default_factory=dict)
    users: dict[str, MadeUser] = field(default_factory=dict)
    statements: list[str] = field(default_factory=list)

    def __call__(self, seen: Seen) -> Fault:
        """Decide for one request."""
        if seen.user.startswith(PRINCIPAL_PREFIX):
            return self._log_in(seen)
        words = seen.statement.split()[:2]
        match words:
            case ["CREATE", "USER"] | ["GRANT", _] | ["ALTER", "USER"] | ["DROP", "USER"]:
                self.statements.append(seen.statement)
                return self._change(seen.statement)
        about = _LOGIN.search(seen.path)
        name = about[0] if about else ""
        if "FROM system.users WHERE" in seen.statement:
            return SendInstead(statement=self._listed(seen.statement, name))
        return SendInstead(renamed=(name, self.stands_in(name)[0])) if name else PassOn()

    def logins(self) -> list[str]:
        """Return the users that are logins of ours."""
        return [name for name in self.users if name.startswith(PRINCIPAL_PREFIX)]

    def stands_in(self, name: str) -> tuple[str, str]:
        """Return the ready-made user for whom a login runs, with its password."""
        return self.stand_ins.get(name, self.stand_in)

    def _log_in(self, seen: Seen) -> Fault:
        user = self.users.get(seen.user)
        given = hashlib.sha256(seen.password.encode()).hexdigest()
        if user is None or user.hosts == "NONE" or user.password_hash != given:
            return DENIED
        return SendInstead(login=self.stands_in(seen.user))

    def _change(self, statement: str) -> Fault:
        name = re.findall(r"`(\w+)`", statement)[-1]
        if statement.startswith("CREATE"):
            if name in self.users:
                return AnswerError(493, "ACCESS_ENTITY_ALREADY_EXISTS")
            found = re.search(r"sha256_hash BY '([0-9a-f]{64})' HOST (\w+)", statement)
            assert found
            self.users[name] = MadeUser(found[1], found[2])
        elif statement.startswith("DROP"):
            self.users.pop(name, None)
        elif name not in self.users:
            return AnswerError(192, "UNKNOWN_USER")
        elif statement.startswith("ALTER"):
            self.users[name].hosts = statement.rpartition("HOST ")[2]
        else:
            self.users[name].grants.append(statement.removeprefix("GRANT ").rpartition(" TO ")[0])
        return SendInstead(statement=NOTHING)

    def _listed(self, statement: str, name: str) -> str:
        if "startsWith" in statement:
            return f"SELECT true, {self.logins()}::Array(String) FORMAT Native"
        user = self.users.get(name)
        row = "" if user is None else f"('{'1' * 32}', {user.hosts != 'NONE'}, {user.grants}::Array(String))"
        return f"SELECT true, [{row}]::Array(Tuple(String, Bool, Array(String))) FORMAT Native"
