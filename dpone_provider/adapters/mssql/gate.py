"""The login gate: one login per attempt, with a tagged SID, created with READY in the ledger's own transaction."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dpone_provider.adapters.mssql import gate_definition, logins
from dpone_provider.adapters.mssql.closing import LoginSession, UnderWay, Watch
from dpone_provider.adapters.mssql.errors import (
    ERRORS,
    AnswerLost,
    Meaning,
    MssqlError,
    ServerError,
    unanswered,
    unreadable,
)
from dpone_provider.adapters.mssql.names import Fragment, binary, filled, identifier, literal
from dpone_provider.adapters.mssql.parameters import Parameters
from dpone_provider.adapters.mssql.server import Kept, Server
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.application.ports.gate import GrantPlan, PrincipalObservation, SessionObservation
from dpone_provider.application.ports.time import Deadline, Entropy
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.domain.identity import AttemptId, Principal, ServiceId, digest_of, principal_name
from dpone_provider.domain.outcomes import Failed, Refused, Unknown, fail, refuse, unknown
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("gate.sql"))
CLOSE_AGAIN: Final = "dpone recover --attempt ID (it continues where closing stopped)"


@dataclass(slots=True, kw_only=True)
class MssqlGate:
    """`LoginGate` of one instance, through the controller's login in the target database.

    ``call_seconds`` bounds every call that is given no deadline. The object remembers, between polls of one principal,
    which logins under way count, which transactions and which sessions it saw; a new object begins that anew, which is
    only slower. From ``disable`` to ``collect`` it keeps one connection: closing polls. For one thread.
    """

    server: Server
    service_id: ServiceId
    entropy: Entropy
    call_seconds: float = 10.0
    _kept: Kept = field(init=False)
    _watches: dict[str, Watch] = field(default_factory=dict, init=False)
    _sessions: dict[str, tuple[LoginSession, ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Prepare the connection that closing asks again and again; it is opened at its first use."""
        self._kept = self.server.kept("dpone gate")

    def propose(self, attempt_id: AttemptId, used: Collection[str]) -> Principal | Refused:
        """Choose the login's name, which follows from the attempt and is used once, and a SID that never was."""
        name = principal_name(attempt_id)
        if name in used:
            return refuse(
                "principal_name_used",
                f"login {name}",
                found="a journal row of that name on this service",
                allowed="a name that was never used",
                next_command=f"dpone attempt show {attempt_id}",
            )
        return Principal(service_id=self.service_id, name=name, sid=logins.sid_text(logins.new_sid()))

    def create(self, principal: Principal, plan: GrantPlan, handle: object) -> Secret | Failed | Unknown:
        """Create login and users inside the ledger's transaction. A failure ends the whole of it: XACT_ABORT is on."""
        ledger = self.server.borrowed(handle)
        if ledger is None:
            return _not_created(principal, "a handle that is no open transaction of the ledger on SQL Server")
        secret = self.entropy.secret()
        try:
            found = self._hindrances(ledger, principal, plan)
            if not found:
                self._create(ledger, principal, plan, secret)
        except AnswerLost as error:
            return unanswered(error, f"login {principal.name}", next_command=CLOSE_AGAIN)
        except ERRORS as error:
            return _not_created(principal, error)
        return _not_created(principal, "; ".join(found)) if found else secret

    def enable(self, principal: Principal) -> None:
        """Do nothing: READY, committed with the login, lets it in."""

    def read_back(self, principal: Principal) -> PrincipalObservation | Unknown:
        """Read the login on a fresh connection."""
        try:
            with self.server.session("dpone gate: read back", self.call_seconds) as fresh:
                rows = fresh.rows(STATEMENTS["read_back"], {"sid": logins.sid_bytes(principal.sid)})
        except ERRORS as error:
            return unreadable(error, f"login {principal.name}")
        if not rows:
            return PrincipalObservation(principal=principal, exists=False, can_login=False, server_id="", grants=())
        ((_, disabled, roles),) = rows
        return PrincipalObservation(
            principal=principal,
            exists=True,
            can_login=not disabled,
            server_id=principal.sid,
            grants=tuple(one["role"] for one in _listed(roles)),
        )

    def disable(self, principal: Principal, deadline: Deadline) -> Unknown | None:
        """Disable the login, alone, and read that back by its SID; one that does not exist is as good as disabled."""
        self._watches.pop(principal.name, None)
        self._sessions.pop(principal.name, None)
        sid = {"sid": logins.sid_bytes(principal.sid)}
        try:
            with self._kept.use(deadline.remaining()) as own:
                for name, disabled, _ in own.rows(STATEMENTS["read_back"], sid):
                    if not disabled:
                        own.run(filled(STATEMENTS["disable"], login=identifier(name)))
                left = [name for name, disabled, _ in own.rows(STATEMENTS["read_back"], sid) if not disabled]
        except ERRORS as error:
            return self._not_disabled(principal, error)
        return self._not_disabled(principal, "a login that is still enabled") if left else None

    def observe(self, principal: Principal) -> SessionObservation | Unknown:
        """Poll once."""
        watch = self._watches.get(principal.name, Watch())
        asked: Parameters = {
            "sid": logins.sid_bytes(principal.sid),
            "transactions": json.dumps(sorted(watch.transactions)),
        }
        try:
            with self._kept.use(self.call_seconds) as own:
                disabled, sees, *lists = own.row(STATEMENTS["poll"], asked)
        except ERRORS as error:
            return unreadable(error, f"sessions of login {principal.name}")
        return self._observed(principal, watch, can_login=disabled == 0, sees=bool(sees), lists=lists)

    def end_sessions(self, principal: Principal) -> Unknown | None:
        """End the sessions of the last poll that are still the same, each in a batch of its own, outside of a
        transaction."""
        sid = logins.sid_bytes(principal.sid)
        try:
            with self._kept.use(self.call_seconds) as own:
                for one in self._sessions.get(principal.name, ()):
                    _end(own, one, sid)
        except ERRORS as error:
            return unanswered(error, f"sessions of login {principal.name}", next_command=CLOSE_AGAIN)
        return None

    def collect(self, principal: Principal) -> Unknown | None:
        """Drop the users, then the login."""
        try:
            with self._kept.use(self.call_seconds) as own:
                return _collected(own, principal)
        except ERRORS as error:
            return unanswered(error, f"login {principal.name}", next_command="dpone recover")
        finally:
            self._kept.close()

    def principals(self) -> tuple[str, ...] | Unknown:
        """List the logins of the instance whose SID carries our tag."""
        try:
            with self._kept.use(self.call_seconds) as own:
                return tuple(name for (name,) in own.rows(STATEMENTS["principals"]))
        except ERRORS as error:
            return unreadable(error, f"logins of service {self.service_id}")

    def _hindrances(self, ledger: Session, principal: Principal, plan: GrantPlan) -> tuple[str, ...]:
        target = identifier(self.server.endpoint.database)
        rows = ledger.rows(
            filled(STATEMENTS["hindrances"], target=target),
            {"sid": logins.sid_bytes(principal.sid), "name": principal.name, "schemas": _json(plan.writer_schemas)},
        )
        altered = gate_definition.problems(gate_definition.installed_in_control(ledger))
        return (*(text for (text,) in rows), *altered)

    def _create(self, ledger: Session, principal: Principal, plan: GrantPlan, secret: Secret) -> None:
        login, target = identifier(principal.name), identifier(self.server.endpoint.database)
        writers = [
            role
            for (role,) in ledger.rows(
                filled(STATEMENTS["writer_roles"], target=target), {"schemas": _json(plan.writer_schemas)}
            )
        ]
        hashed = binary(logins.password_hash(secret, secrets.token_bytes(logins.SALT_BYTES)))
        sid = binary(logins.sid_bytes(principal.sid))
        ledger.run(filled(STATEMENTS["create_login"], login=login, hash=hashed, sid=sid, target=target))
        ledger.run(filled(STATEMENTS["create_user"], login=login))
        _elsewhere(ledger, target, filled(STATEMENTS["create_target_user"], login=login))
        for writer in writers:
            _elsewhere(ledger, target, filled(STATEMENTS["join"], login=login, writer=identifier(writer)))

    def _observed(
        self, principal: Principal, watch: Watch, *, can_login: bool, sees: bool, lists: Sequence[str | None]
    ) -> SessionObservation:
        said_sessions, said_half_open, said_remembered, said_unattributed = map(_listed, lists)
        sessions = tuple(_session(one) for one in said_sessions)
        under_way = [UnderWay(one["session"], one.get("connected", "")) for one in said_half_open]
        self._sessions[principal.name] = sessions
        half_open = ["the login is not disabled", *map(str, under_way)]
        if not can_login:
            self._watches[principal.name], counting = watch.after(under_way, sessions)
            half_open = [str(one) for one in counting]
        transactions = (
            *(f"transaction {one.transaction} of session {one.session}" for one in sessions if one.transaction),
            *(f"transaction {one['transaction']} that a session of it had opened" for one in said_remembered),
            *(
                f"a lock ({_lock(one)}) of session {one['session']}, which nobody can attribute"
                for one in said_unattributed
            ),
        )
        evidence = {
            "sid": principal.sid,
            "can_login": can_login,
            "sees_all": sees,
            "sessions": [str(one) for one in sessions],
            "half_open": half_open,
            "transactions": list(transactions),
        }
        return SessionObservation(
            principal=principal,
            sessions=tuple(map(str, sessions)),
            half_open=tuple(half_open),
            transactions=transactions,
            blind=not sees,
            evidence_digest=digest_of(canonical_bytes(evidence)),
        )

    def _not_disabled(self, principal: Principal, error: MssqlError | str) -> Unknown:
        holders: list[str] = []
        if isinstance(error, ServerError) and error.timed_out:
            try:
                with self._kept.use(self.call_seconds) as own:
                    holders = [text for (text,) in own.rows(STATEMENTS["principal_writers"])]
            except ERRORS:
                holders = ["a holder that could not be read"]
        return unknown(
            "login_not_disabled",
            f"login {principal.name}",
            found=f"{error}; logins are being changed by {', '.join(holders) or 'nobody that is known'}",
            allowed="ALTER LOGIN … DISABLE within the deadline",
            next_command=CLOSE_AGAIN,
        )


def _elsewhere(ledger: Session, database: Fragment, text: Fragment) -> None:
    ledger.run(filled(STATEMENTS["elsewhere"], database=database, text=literal(text)))


def _end(own: Session, one: LoginSession, sid: bytes) -> None:
    statement = filled(STATEMENTS["end_session"], number=Fragment(str(int(one.session))))
    try:
        own.run(statement, {"began": one.began, "sid": sid})
    except ServerError as error:
        if error.meaning is not Meaning.SESSION_GONE:
            raise


def _collected(own: Session, principal: Principal) -> Unknown | None:
    sid = logins.sid_bytes(principal.sid)
    login = identifier(principal.name)
    drop_user = filled(STATEMENTS["drop_user"], login=login, name=literal(principal.name), sid=binary(sid))
    (control,) = own.row(STATEMENTS["control_database"])
    own.run(drop_user)
    _elsewhere(own, identifier(control), drop_user)
    rows = own.rows(STATEMENTS["read_back"], {"sid": sid})
    for name, *_ in rows:
        own.run(filled(STATEMENTS["drop_login"], login=identifier(name)))
    return None


def _session(said: Mapping[str, Any]) -> LoginSession:
    return LoginSession(
        session=said["session"],
        began=said["began"],
        status=said.get("status", ""),
        program=said.get("program", ""),
        host=said.get("host", ""),
        transaction=said.get("transaction"),
        command=said.get("command", ""),
        percent=said.get("percent", 0),
    )


def _lock(said: Mapping[str, Any]) -> str:
    return f"{said.get('mode')} on {str(said.get('type')).lower()} in {said.get('database')}"


def _listed(text: str | None) -> list[Mapping[str, Any]]:
    """Return what FOR JSON gave; of no rows it gives NULL."""
    found: list[Mapping[str, Any]] = json.loads(text) if text else []
    return found


def _json(names: Sequence[str]) -> str:
    return json.dumps(list(names))


def _not_created(principal: Principal, found: object) -> Failed:
    return fail(
        "login_not_created",
        f"login {principal.name} on service {principal.service_id}",
        found=found,
        allowed="an enabled and unaltered gate, managed schemas, and the controller's rights",
        next_command="run sql/mssql/050_verify.sql as an administrator, put right what it names, and retry",
    )
