"""``LoginGate`` over a simulated server, in the way of its engine."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TypeVar

from dpone_provider.application.ports.gate import GrantPlan, PrincipalObservation, SessionObservation
from dpone_provider.application.ports.time import Deadline, Entropy
from dpone_provider.domain.identity import (
    PRINCIPAL_PREFIX,
    AttemptId,
    EngineKind,
    Principal,
    digest_of,
    principal_name,
)
from dpone_provider.domain.outcomes import Failed, Refused, Unknown, fail, refuse, unknown
from dpone_provider.domain.secret import Secret
from tests.simulation.ledger_transaction import SimulatedTransaction
from tests.simulation.server import ConnectionLost, SimulatedServer, StoredLogin
from tests.simulation.wire import Call, Fault, Wire

T = TypeVar("T")


@dataclass(slots=True)
class SimulatedGate:
    """SQL engines create with READY, in the ledger's transaction; ClickHouse creates unreachable, then lets in.

    ``pool``: names of ready-made logins that are handed out instead, each once (the lab's ClickHouse).
    """

    server: SimulatedServer
    wire: Wire
    entropy: Entropy
    pool: tuple[str, ...] = ()
    _counting: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def propose(self, attempt_id: AttemptId, used: Collection[str]) -> Principal | Refused:
        """Choose a name that was never used."""
        names = self.pool or (principal_name(attempt_id),)
        free = [name for name in names if name not in used]
        if not free:
            return refuse(
                "principal_name_used",
                f"login of attempt {attempt_id}",
                found="every name used",
                allowed="a name that was never used",
                next_command=f"dpone attempt show {attempt_id}",
            )
        return Principal(service_id=self.server.service_id, name=free[0], sid=free[0])

    def create(self, principal: Principal, plan: GrantPlan, handle: object) -> Secret | Failed | Unknown:
        """Create the login."""
        secret = self.entropy.secret()
        grants = (*plan.writer_schemas, *map(str, plan.staged_tables))

        def effect() -> Secret | Failed:
            if principal.name in self.server.logins and not self.pool:
                return _not_created(principal, "a login of that name")
            made = StoredLogin(principal.name, secret.reveal(), False, f"id of {principal.name}", grants)
            if self.server.kind is EngineKind.CLICKHOUSE:
                self.server.logins[principal.name] = made
                return secret
            if not isinstance(handle, SimulatedTransaction) or not handle.open:
                return _not_created(principal, "a handle that is no open transaction")
            made.enabled = True
            handle.after_commit.append(lambda: self.server.logins.update({principal.name: made}))
            return secret

        return self._ask("create", principal, effect)

    def enable(self, principal: Principal) -> Failed | Unknown | None:
        """Let the login in, where that is a step of its own."""

        def effect() -> Failed | None:
            login = self.server.logins.get(principal.name)
            if self.server.kind is EngineKind.CLICKHOUSE:
                if login is None:
                    return _not_created(principal, "no such login")
                login.enabled = True
            return None

        return self._ask("enable", principal, effect)

    def read_back(self, principal: Principal) -> PrincipalObservation | Unknown:
        """Read the login."""

        def effect() -> PrincipalObservation:
            login = self.server.logins.get(principal.name)
            return PrincipalObservation(
                principal=principal,
                exists=login is not None,
                can_login=login is not None and login.enabled,
                server_id=login.server_id if login else "",
                grants=login.grants if login else (),
            )

        return self._ask("read_back", principal, effect)

    def disable(self, principal: Principal, deadline: Deadline) -> Unknown | None:
        """Disable the login; ClickHouse drops it."""

        def effect() -> None:
            self._counting.pop(principal.name, None)
            if self.server.kind is EngineKind.CLICKHOUSE:
                self.server.logins.pop(principal.name, None)
            elif principal.name in self.server.logins:
                self.server.logins[principal.name].enabled = False

        return self._ask("disable", principal, effect)

    def observe(self, principal: Principal) -> SessionObservation | Unknown:
        """Poll once; the first poll after disabling fixes which logins under way count."""

        def effect() -> SessionObservation:
            login = self.server.logins.get(principal.name)
            sessions = self.server.sessions_of(principal.name) if self.server.sees_all else []
            if login is not None and login.enabled:
                half_open: tuple[str, ...] = ("the login is not disabled", *self.server.half_open)
            else:
                counting = self._counting.setdefault(principal.name, tuple(self.server.half_open))
                half_open = tuple(one for one in counting if one in self.server.half_open)
            seen = [str(one) for one in sessions]
            return SessionObservation(
                principal=principal,
                sessions=tuple(seen),
                half_open=half_open,
                transactions=tuple(f"transaction of {one}" for one in sessions if one.in_transaction),
                blind=not self.server.sees_all,
                evidence_digest=digest_of("; ".join([*seen, *half_open]).encode()),
            )

        return self._ask("observe", principal, effect)

    def end_sessions(self, principal: Principal) -> Unknown | None:
        """End every session that lets itself be ended."""

        def effect() -> None:
            for session in self.server.sessions_of(principal.name):
                if not session.stubborn:
                    self.server.end(session)

        return self._ask("end_sessions", principal, effect)

    def collect(self, principal: Principal) -> Unknown | None:
        """Remove the login, unless it has sessions."""

        def effect() -> Unknown | None:
            if self.server.sessions_of(principal.name):
                return _unanswered(principal.name, "sessions of it")
            if not self.pool:
                self.server.logins.pop(principal.name, None)
            return None

        return self._ask("collect", principal, effect)

    def principals(self) -> tuple[str, ...] | Unknown:
        """List the logins with our tag."""

        def effect() -> tuple[str, ...]:
            return tuple(sorted(name for name in self.server.logins if name.startswith(PRINCIPAL_PREFIX)))

        return self._asked("principals", "", effect)

    def _ask(self, name: str, principal: Principal, effect: Callable[[], T]) -> T | Unknown:
        return self._asked(name, principal.name, effect)

    def _asked(self, name: str, subject: str, effect: Callable[[], T]) -> T | Unknown:
        def broken(fault: Fault) -> Unknown:
            return _unanswered(subject or "logins", fault.name)

        def reached() -> T | Unknown:
            try:
                self.server.require_reachable()
            except ConnectionLost as error:
                return _unanswered(subject or "logins", error)
            return effect()

        return self.wire.send(Call("gate", name, subject), reached, broken)


def _not_created(principal: Principal, found: str) -> Failed:
    return fail(
        "login_not_created",
        f"login {principal.name}",
        found=found,
        allowed="a login of our own",
        next_command="retry",
    )


def _unanswered(subject: str, found: object) -> Unknown:
    return unknown(
        "unreadable",
        f"login {subject}",
        found=found,
        allowed="an answer",
        next_command="dpone recover --attempt ID (it continues where closing stopped)",
    )
