"""The login gate: one login per attempt, with a tagged SID, created with READY in the ledger's own transaction.

The controller has no right over logins by itself: it calls procedures of the control database that have them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql import logins
from dpone_provider.adapters.mssql.closing import LoginSession, Poll, Watch
from dpone_provider.adapters.mssql.errors import ERRORS, AnswerLost, MssqlError, ServerError
from dpone_provider.adapters.mssql.parameters import Parameters
from dpone_provider.adapters.mssql.server import Kept, Server
from dpone_provider.adapters.mssql.session import Row, Session
from dpone_provider.application.ports.gate import GrantPlan, PrincipalObservation, SessionObservation
from dpone_provider.application.ports.time import Deadline, Entropy
from dpone_provider.application.principals import unused_name
from dpone_provider.application.relational.answers import unanswered, unreadable
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.domain.identity import AttemptId, Principal, ServiceId, digest_of
from dpone_provider.domain.outcomes import Failed, Refused, Unknown, fail, unknown
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("gate.sql"))
CLOSE_AGAIN: Final = "dpone recover --attempt ID (it continues where closing stopped)"


@dataclass(frozen=True, slots=True)
class _Hand:
    """A session of the control database and the target's name: what the procedures are called with."""

    own: Session
    target: str
    strays: Mapping[str, str]
    """SIDs, by name, of logins that the ledger has no row of: a stray is known by its name."""

    def rows(self, name: str, principal: Principal, **more: str | int) -> list[Row]:
        """Call a procedure of the control database about one login; one that gives no result gives no rows."""
        statement = STATEMENTS[name]
        given: dict[str, str | int | bytes] = {"sid": self._sid(principal), **more}
        if "@target = @target" in statement:
            given["target"] = self.target
        results = self.own.results(statement, given)
        return results[0] if results else []

    def _sid(self, principal: Principal) -> bytes:
        if principal.sid != principal.name:
            return logins.sid_bytes(principal.sid)
        if principal.name not in self.strays:
            raise AnswerLost(f"the SID of login {principal.name} is not known: no login of that name was listed")
        return logins.sid_bytes(self.strays[principal.name])


@dataclass(slots=True, kw_only=True)
class MssqlGate:
    """`LoginGate` of one target, through the controller's login in the control database: ``server``.

    So a login is closed whatever became of the target: one that is offline or gone keeps no gate open. ``call_seconds``
    bounds every call that is given no deadline. The object remembers, between polls of one principal, which logins
    under way count, which transactions and which sessions it saw; a new object begins that anew, which is only slower.
    From ``disable`` to ``collect`` it keeps one connection: closing polls. For one thread.
    """

    server: Server
    target: str
    service_id: ServiceId
    entropy: Entropy
    call_seconds: float = 10.0
    _kept: Kept = field(init=False)
    _watches: dict[str, Watch] = field(default_factory=dict, init=False)
    _sessions: dict[str, tuple[LoginSession, ...]] = field(default_factory=dict, init=False)
    _strays: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Prepare the connection that closing asks again and again; it is opened at its first use."""
        self._kept = self.server.kept("dpone gate")

    def propose(self, attempt_id: AttemptId, used: Collection[str]) -> Principal | Refused:
        """Choose the login's name, which follows from the attempt and is used once, and a SID that never was."""
        name = unused_name(attempt_id, used)
        if isinstance(name, Refused):
            return name
        return Principal(service_id=self.service_id, name=name, sid=logins.sid_text(logins.new_sid()))

    def create(self, principal: Principal, plan: GrantPlan, handle: object) -> Secret | Failed | Unknown:
        """Create login and users inside the ledger's transaction. A failure ends the whole of it: XACT_ABORT is on."""
        ledger = self.server.borrowed(handle)
        if ledger is None:
            return _not_created(principal, "a handle that is no open transaction of the ledger on SQL Server")
        secret = self.entropy.secret()
        asked: Parameters = {
            "name": principal.name,
            "sid": logins.sid_bytes(principal.sid),
            "verifier": logins.password_hash(secret, secrets.token_bytes(logins.SALT_BYTES)),
            "target": self.target,
            "schemas": json.dumps(list(plan.writer_schemas)),
        }
        try:
            ledger.run(STATEMENTS["issue"], asked)
        except AnswerLost as error:
            return unanswered(error, f"login {principal.name}", next_command=CLOSE_AGAIN)
        except ERRORS as error:
            return _not_created(principal, error)
        return secret

    def enable(self, principal: Principal) -> None:
        """Do nothing: READY, committed with the login, lets it in."""

    def read_back(self, principal: Principal) -> PrincipalObservation | Unknown:
        """Read the login on a fresh connection."""
        try:
            with self.server.session("dpone gate: read back", self.call_seconds) as fresh:
                rows = self._hand(fresh).rows("read_back", principal)
        except ERRORS as error:
            return unreadable(error, f"login {principal.name}")
        if not rows:
            return PrincipalObservation(principal=principal, exists=False, can_login=False, server_id="", grants=())
        ((_, disabled, _, roles),) = rows
        return PrincipalObservation(
            principal=principal,
            exists=True,
            can_login=not disabled,
            server_id=principal.sid,
            grants=tuple(one["name"] for one in json.loads(roles or "[]")),
        )

    def disable(self, principal: Principal, deadline: Deadline) -> Unknown | None:
        """Disable the login, alone, and read that back by its SID; one that does not exist is as good as disabled."""
        self._watches.pop(principal.name, None)
        self._sessions.pop(principal.name, None)
        try:
            with self._closing(deadline.remaining()) as hand:
                hand.rows("disable", principal)
                left = [row for row in hand.rows("read_back", principal) if not row[1]]
        except ERRORS as error:
            return self._not_disabled(principal, error)
        return self._not_disabled(principal, "a login that is still enabled") if left else None

    def observe(self, principal: Principal) -> SessionObservation | Unknown:
        """Poll once."""
        watch = self._watches.get(principal.name, Watch())
        try:
            with self._closing(self.call_seconds) as hand:
                remembered = json.dumps(sorted(watch.transactions))
                poll = Poll.of(hand.rows("poll", principal, remembered=remembered))
        except ERRORS as error:
            return unreadable(error, f"sessions of login {principal.name}")
        self._sessions[principal.name] = poll.sessions
        self._watches[principal.name], half_open = watch.after(poll)
        return _observation(principal, poll, half_open)

    def end_sessions(self, principal: Principal) -> Unknown | None:
        """End the sessions of the last poll that are still the same, each in a batch of its own."""
        try:
            with self._closing(self.call_seconds) as hand:
                for one in self._sessions.get(principal.name, ()):
                    hand.rows("end_session", principal, session=one.session, began=one.began)
        except ERRORS as error:
            return unanswered(error, f"sessions of login {principal.name}", next_command=CLOSE_AGAIN)
        return None

    def collect(self, principal: Principal) -> Unknown | None:
        """Drop the users, then the login."""
        try:
            with self._closing(self.call_seconds) as hand:
                hand.rows("collect", principal)
        except ERRORS as error:
            return unanswered(error, f"login {principal.name}", next_command="dpone recover")
        finally:
            self._kept.close()
        return None

    def principals(self) -> tuple[str, ...] | Unknown:
        """List the logins of the instance whose SID carries our tag, and remember whose SID is which."""
        try:
            with self._closing(self.call_seconds) as hand:
                rows = hand.own.rows(STATEMENTS["principals"])
        except ERRORS as error:
            return unreadable(error, f"logins of service {self.service_id}")
        self._strays = {name: sid for name, sid, *_ in rows}
        return tuple(self._strays)

    def _hand(self, own: Session) -> _Hand:
        return _Hand(own, self.target, self._strays)

    @contextmanager
    def _closing(self, seconds: float) -> Iterator[_Hand]:
        with self._kept.use(seconds) as own:
            yield self._hand(own)

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


def _observation(principal: Principal, poll: Poll, half_open: tuple[str, ...]) -> SessionObservation:
    evidence = {
        "sid": principal.sid,
        "enabled": poll.enabled,
        "sees_all": poll.sees_all,
        "sessions": [str(one) for one in poll.sessions],
        "half_open": list(half_open),
        "transactions": list(poll.transactions),
    }
    return SessionObservation(
        principal=principal,
        sessions=tuple(map(str, poll.sessions)),
        half_open=half_open,
        transactions=poll.transactions,
        blind=not poll.sees_all,
        evidence_digest=digest_of(canonical_bytes(evidence)),
    )


def _not_created(principal: Principal, found: object) -> Failed:
    return fail(
        "login_not_created",
        f"login {principal.name} on service {principal.service_id}",
        found=found,
        allowed="an enabled and unaltered gate, managed schemas, and the controller's rights",
        next_command="run sql/mssql/050_verify.sql as an administrator, put right what it names, and retry",
    )
