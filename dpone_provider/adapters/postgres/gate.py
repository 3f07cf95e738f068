"""The login gate: one role per attempt, created with READY in the ledger's own transaction."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dpone_provider.adapters.postgres import gate_definition, scram
from dpone_provider.adapters.postgres.errors import (
    ERRORS,
    UNDEFINED_OBJECT,
    AnswerLost,
    PostgresError,
    ServerError,
)
from dpone_provider.adapters.postgres.half_open import UnderWay, Watch
from dpone_provider.adapters.postgres.names import filled, identifier, listed, literal
from dpone_provider.adapters.postgres.session import KeptSession, Session, borrowed
from dpone_provider.application.ports.gate import GrantPlan, PrincipalObservation, SessionObservation
from dpone_provider.application.ports.time import Deadline, Entropy
from dpone_provider.application.principals import unused_name
from dpone_provider.application.relational.answers import unanswered, unreadable
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import AttemptId, Principal, ServiceId, digest_of
from dpone_provider.domain.outcomes import Failed, Refused, Unknown, fail, unknown
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("gate.sql"))
CLOSE_AGAIN: Final = "dpone recover --attempt ID (it continues where closing stopped)"


@dataclass(slots=True, kw_only=True)
class PostgresGate:
    """`LoginGate` of one PostgreSQL cluster, through the controller's role in the enrolled database.

    ``call_seconds`` bounds every call that is given no deadline. The object remembers, between polls of one principal,
    which logins under way count and which sessions it saw; a new object begins that anew, which is only slower. From
    the first ``read_back`` to ``collect`` it keeps one connection, as closing polls. For one thread.
    """

    endpoint: Endpoint
    credential: Credential
    service_id: ServiceId
    control_schema: str
    entropy: Entropy
    call_seconds: float = 10.0
    _kept: KeptSession = field(init=False)
    _closing: set[str] = field(default_factory=set, init=False)
    _watches: dict[str, Watch] = field(default_factory=dict, init=False)
    _sessions: dict[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Prepare the connection that closing asks again and again; it is opened at its first use."""
        self._kept = KeptSession(self.endpoint, self.credential, purpose="dpone gate")

    def propose(self, attempt_id: AttemptId, used: Collection[str]) -> Principal | Refused:
        """Choose the login's name: it follows from the attempt, and is used once."""
        name = unused_name(attempt_id, used)
        if isinstance(name, Refused):
            return name
        return Principal(service_id=self.service_id, name=name, sid=name)

    def create(self, principal: Principal, plan: GrantPlan, handle: object) -> Secret | Failed | Unknown:
        """Create the role inside the ledger's transaction, under a savepoint: a failure leaves that one usable."""
        ledger = borrowed(handle)
        if ledger is None:
            return _not_created(principal, "a handle that is no open transaction of the ledger on PostgreSQL")
        secret = self.entropy.secret()
        try:
            with ledger.transaction():
                found = self._hindrances(ledger, plan)
                if not found:
                    self._create(ledger, principal, plan, secret)
        except AnswerLost as error:
            return unanswered(error, f"login {principal.name}", next_command=CLOSE_AGAIN)
        except ERRORS as error:
            return _not_created(principal, error)
        return _not_created(principal, "; ".join(found)) if found else secret

    def enable(self, principal: Principal) -> None:
        """Do nothing: READY, committed with the role, lets it in."""

    def read_back(self, principal: Principal) -> PrincipalObservation | Unknown:
        """Read the role on a fresh connection, or on the one that its closing keeps."""
        if principal.name not in self._closing:
            self._kept.close()
        try:
            with self._kept.use(self.call_seconds) as own:
                rows = own.rows(STATEMENTS["read_back"], {"name": principal.name})
        except ERRORS as error:
            return unreadable(error, f"login {principal.name}")
        if not rows:
            return PrincipalObservation(principal=principal, exists=False, can_login=False, server_id="", grants=())
        ((oid, can_login, grants),) = rows
        return PrincipalObservation(
            principal=principal, exists=True, can_login=can_login, server_id=oid, grants=tuple(grants)
        )

    def disable(self, principal: Principal, deadline: Deadline) -> Unknown | None:
        """Say NOLOGIN, alone; a role that does not exist is as good as disabled."""
        self._closing.add(principal.name)
        self._watches.pop(principal.name, None)
        self._sessions.pop(principal.name, None)
        statement = filled(STATEMENTS["disable"], login=identifier(principal.name))
        try:
            with self._kept.use(deadline.remaining()) as own:
                own.run(statement)
        except ERRORS as error:
            if _is_absent(error):
                return None
            return self._not_disabled(principal, error)
        return None

    def observe(self, principal: Principal) -> SessionObservation | Unknown:
        """Poll once."""
        try:
            with self._kept.use(self.call_seconds) as own:
                oid, can_login, sees, sessions, starting, prepared = own.row(
                    STATEMENTS["poll"], {"name": principal.name}
                )
        except ERRORS as error:
            return unreadable(error, f"sessions of login {principal.name}")
        under_way = [UnderWay(one["pid"], one["began"], one["waits"]) for one in starting]
        self._sessions[principal.name] = tuple(sessions)
        half_open = self._still_counting(principal, under_way, can_login)
        shown = [
            f"transaction of pid {one['pid']} since {one['transaction']}" for one in sessions if one["transaction"]
        ]
        evidence = {"oid": oid, "can_login": can_login, "sees_all": sees, "sessions": sessions, "half_open": half_open}
        return SessionObservation(
            principal=principal,
            sessions=tuple(_session_text(one) for one in sessions),
            half_open=tuple(half_open),
            transactions=(*shown, *(f"prepared transaction {gid}" for gid in prepared)),
            blind=not sees,
            evidence_digest=digest_of(canonical_bytes(evidence)),
        )

    def end_sessions(self, principal: Principal) -> Unknown | None:
        """End the sessions of the last poll that are still the same."""
        seen = self._sessions.get(principal.name, ())
        parameters = {
            "name": principal.name,
            "pids": [one["pid"] for one in seen],
            "began": [one["began"] for one in seen],
        }
        try:
            with self._kept.use(self.call_seconds) as own:
                own.rows(STATEMENTS["end_sessions"], parameters)
        except ERRORS as error:
            return unanswered(error, f"sessions of login {principal.name}", next_command=CLOSE_AGAIN)
        return None

    def collect(self, principal: Principal) -> Unknown | None:
        """Drop the role; what it owns goes to the writer role first."""
        try:
            with self._kept.use(self.call_seconds) as own, own.transaction():
                return _drop(own, principal.name)
        except ERRORS as error:
            return unanswered(error, f"login {principal.name}", next_command="dpone recover")
        finally:
            self._closing.discard(principal.name)
            self._kept.close()

    def principals(self) -> tuple[str, ...] | Unknown:
        """List the roles of the cluster that carry our prefix."""
        try:
            with self._kept.use(self.call_seconds) as own:
                return tuple(name for (name,) in own.rows(STATEMENTS["principals"]))
        except ERRORS as error:
            return unreadable(error, f"logins of service {self.service_id}")

    def _hindrances(self, ledger: Session, plan: GrantPlan) -> tuple[str, ...]:
        rows = ledger.rows(STATEMENTS["hindrances"], {"schemas": list(plan.writer_schemas)})
        altered = gate_definition.differences(gate_definition.installed(ledger), self.control_schema)
        return (*(text for (text,) in rows), *altered)

    def _create(self, ledger: Session, principal: Principal, plan: GrantPlan, secret: Secret) -> None:
        login = identifier(principal.name)
        made = literal(scram.verifier(secret, secrets.token_bytes(scram.SALT_BYTES)))
        writers = [role for (role,) in ledger.rows(STATEMENTS["writer_roles"], {"schemas": list(plan.writer_schemas)})]
        ledger.run(filled(STATEMENTS["create"], login=login, verifier=made))
        if writers:
            ledger.run(filled(STATEMENTS["join"], login=login, writers=listed(writers)))
        if len(writers) == 1:
            ledger.run(filled(STATEMENTS["default_role"], login=login, writer=identifier(writers[0])))

    def _still_counting(self, principal: Principal, seen: list[UnderWay], can_login: bool) -> list[str]:
        if can_login:
            return ["the login is not disabled", *map(str, seen)]
        watch, counting = self._watches.get(principal.name, Watch()).after(seen)
        self._watches[principal.name] = watch
        return [str(one) for one in counting]

    def _not_disabled(self, principal: Principal, error: PostgresError) -> Unknown:
        holders: list[str] = []
        if isinstance(error, ServerError) and error.timed_out:
            try:
                with self._kept.use(self.call_seconds) as own:
                    holders = [text for (text,) in own.rows(STATEMENTS["role_writers"])]
            except ERRORS:
                holders = ["a holder that could not be read"]
        return unknown(
            "login_not_disabled",
            f"login {principal.name}",
            found=f"{error}; roles are being changed by {', '.join(holders) or 'nobody that is known'}",
            allowed="ALTER ROLE … NOLOGIN within the deadline",
            next_command=CLOSE_AGAIN,
        )


def _is_absent(error: PostgresError) -> bool:
    return isinstance(error, ServerError) and error.sqlstate == UNDEFINED_OBJECT


def _drop(own: Session, name: str) -> Unknown | None:
    """Hand over, drop rights, drop; nothing when the role is gone, or when it must stay."""
    login = identifier(name)
    rows = own.rows(STATEMENTS["possessions"], {"name": name})
    if not rows:
        return None
    ((possessions, elsewhere, alive),) = rows
    if elsewhere or alive:
        return unknown(
            "login_not_collected",
            f"login {name}",
            found="sessions of it" if alive else f"objects or rights of it in {', '.join(elsewhere)}",
            allowed="a login without sessions, with possessions in the enrolled database only",
            next_command="dpone recover; look at who gave it rights elsewhere",
        )
    if possessions:
        ((_, _, grants),) = own.rows(STATEMENTS["read_back"], {"name": name})
        receivers = list(grants)[:1]
        own.run(filled(STATEMENTS["take_on"], roles=listed([name, *receivers])))
        for receiver in receivers:
            own.run(filled(STATEMENTS["hand_over"], login=login, writer=identifier(receiver)))
        own.run(filled(STATEMENTS["drop_rights"], login=login))
        for receiver in receivers:
            own.run(filled(STATEMENTS["give_back"], writer=identifier(receiver)))
    own.run(filled(STATEMENTS["drop"], login=login))
    return None


def _session_text(one: Mapping[str, Any]) -> str:
    return (
        f"pid {one['pid']} ({one['kind']}, {one['state'] or 'logging in'}, began {one['began']},"
        f" application {one['application'] or 'unnamed'}, from {one['client'] or 'this machine'})"
    )


def _not_created(principal: Principal, found: object) -> Failed:
    return fail(
        "login_not_created",
        f"login {principal.name} on service {principal.service_id}",
        found=found,
        allowed="an enabled and unaltered gate, managed schemas, and no other database that everybody may enter",
        next_command="run sql/postgres/050_verify.sql as an administrator, put right what it names, and retry",
    )
