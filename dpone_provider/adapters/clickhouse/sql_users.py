"""The gate where users are made by SQL: one user per attempt, unreachable until READY, dropped to close it.

UNVERIFIED on a real server: the lab's ClickHouse refuses CREATE USER (514). The text of every statement is checked by
ClickHouse's own parser in the tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import ip_network

from dpone_provider.adapters.clickhouse.errors import ERRORS, of_mutation, unreadable
from dpone_provider.adapters.clickhouse.logins import CLOSE_AGAIN, GATE_STATEMENTS, KILL_SECONDS, Login, Logins
from dpone_provider.adapters.clickhouse.names import Sql, quoted, text_literal, with_names
from dpone_provider.adapters.clickhouse.session import ClickHouseServer
from dpone_provider.application.ports.gate import GrantPlan, PrincipalObservation, SessionObservation
from dpone_provider.application.ports.time import Deadline, Entropy
from dpone_provider.application.principals import unused_name
from dpone_provider.domain.identity import AttemptId, Principal, Relation, ServiceId
from dpone_provider.domain.outcomes import Failed, Refused, Unknown, unknown
from dpone_provider.domain.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlUsers:
    """Users are made by SQL. ``networks`` are the addresses from which workers connect; none means any.

    Raises:
        ValueError: a network is none.
    """

    entropy: Entropy
    networks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the networks."""
        for network in self.networks:
            ip_network(network)


class SqlUserGate:
    """``LoginGate`` with one SQL user per attempt."""

    def __init__(self, server: ClickHouseServer, service_id: ServiceId, option: SqlUsers) -> None:
        """Act as the controller's user, which needs CREATE, ALTER and DROP USER and may hand on its staging rights."""
        self._logins = Logins(server)
        self._service_id = service_id
        self._option = option
        self._made: dict[str, Secret] = {}

    def propose(self, attempt_id: AttemptId, used: Collection[str]) -> Principal | Refused:
        """Choose the login's name: it follows from the attempt, and is used once."""
        name = unused_name(attempt_id, used)
        if isinstance(name, Refused):
            return name
        return Principal(service_id=self._service_id, name=name, sid=name)

    def create(self, principal: Principal, plan: GrantPlan, handle: object) -> Secret | Failed | Unknown:
        """Create the user, reachable from nowhere, and grant it its staged tables. ``handle`` is not used."""
        if principal.name in self._made:
            # The ledger repeats its script after a deadlock; the user is there, and its password never left us.
            return self._made[principal.name]
        secret = self._option.entropy.secret()
        try:
            for number, statement in enumerate(create_statements(principal.name, secret, plan.staged_tables)):
                self._mutate(statement, principal, f"create-{number}")
        except ERRORS as error:
            return of_mutation(error, f"login {principal.name}", next_command=CLOSE_AGAIN)
        finally:
            self._logins.session.release()
        self._made[principal.name] = secret
        return secret

    def enable(self, principal: Principal) -> Failed | Unknown | None:
        """Let the login in from the workers' networks."""
        try:
            self._mutate(let_in_statement(principal.name, self._option.networks), principal, "let-in")
        except ERRORS as error:
            return of_mutation(error, f"login {principal.name}", next_command=CLOSE_AGAIN)
        finally:
            self._logins.session.release()
        return None

    def read_back(self, principal: Principal) -> PrincipalObservation | Unknown:
        """Read the user on a fresh connection."""
        found = self._logins.login(principal)
        if isinstance(found, Unknown):
            return found
        return PrincipalObservation(
            principal=principal,
            exists=found is not None,
            can_login=found is not None and found.reachable,
            server_id="" if found is None else found.server_id,
            grants=() if found is None else found.grants,
        )

    def disable(self, principal: Principal, deadline: Deadline) -> Unknown | None:
        """Drop the user and read it back as gone; one that does not exist is as good as dropped."""
        failure = self._drop(principal, deadline.remaining())
        if failure is not None:
            return failure
        left = self._logins.login(principal)
        return _not_dropped(principal, left) if isinstance(left, Login) else left

    def observe(self, principal: Principal) -> SessionObservation | Unknown:
        """Poll once for queries of the login."""
        return self._logins.observe(principal)

    def end_sessions(self, principal: Principal) -> Unknown | None:
        """Kill the login's queries."""
        return self._logins.end_sessions(principal)

    def collect(self, principal: Principal) -> Unknown | None:
        """Drop the user once more: a CREATE that came late made one that nothing can reach."""
        self._made.pop(principal.name, None)
        return self._drop(principal, KILL_SECONDS)

    def principals(self) -> tuple[str, ...] | Unknown:
        """List every login with our tag."""
        return self._logins.names()

    def _drop(self, principal: Principal, seconds: float) -> Unknown | None:
        try:
            self._mutate(drop_statement(principal.name), principal, "drop", seconds)
        except ERRORS as error:
            return unreadable(error, f"login {principal.name}", next_command=CLOSE_AGAIN)
        finally:
            self._logins.session.release()
        return None

    def _mutate(self, statement: str, principal: Principal, what: str, seconds: float | None = None) -> None:
        self._logins.session.mutate(statement, query_id=f"{principal.name}-{what}", seconds=seconds)


def create_statements(user: str, secret: Secret, staged: Collection[Relation]) -> list[str]:
    """Return CREATE USER with the password's hash, and one GRANT per staged table."""
    digest = hashlib.sha256(secret.reveal().encode()).hexdigest()
    made = with_names(GATE_STATEMENTS["create_user"], {"user": quoted(user), "hash": text_literal(digest)})
    grant = GATE_STATEMENTS["grant_staged"]
    return [made, *(with_names(grant, {"staged": table, "user": quoted(user)}) for table in staged)]


def let_in_statement(user: str, networks: Collection[str]) -> str:
    """Return ALTER USER with the hosts from which the login may connect."""
    listed = ", ".join(text_literal(network) for network in networks)
    hosts = Sql(f"IP {listed}" if networks else "ANY")
    return with_names(GATE_STATEMENTS["let_in"], {"user": quoted(user), "hosts": hosts})


def drop_statement(user: str) -> str:
    """Return DROP USER."""
    return with_names(GATE_STATEMENTS["drop_user"], {"user": quoted(user)})


def _not_dropped(principal: Principal, left: Login) -> Unknown:
    return unknown(
        "login_not_disabled",
        f"login {principal.name}",
        found=f"still there with id {left.server_id} after DROP USER",
        allowed="a login that is read back as gone",
        next_command=CLOSE_AGAIN,
    )
