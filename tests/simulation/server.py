"""A simulated database server: logins, sessions, logins under way, tables with rows, receipts, what enrolment left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import NAMESPACE_OID, uuid5

import pyarrow as pa

from dpone_provider.application.ports.catalog import ObjectKind
from dpone_provider.application.ports.ledger import ReceiptRow
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.columnar.content_digest import ContentHasher
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.effects import Effect
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import (
    AttemptId,
    EngineKind,
    Family,
    Incarnation,
    OccurrenceId,
    Relation,
    Service,
    ServiceId,
    SlotId,
)
from dpone_provider.domain.schema.tables import Column
from tests.simulation.ledger import SimulatedLedger
from tests.simulation.ledger_rows import AUTHORITY

_incarnation = lru_cache(maxsize=64)(Incarnation)
"""A life of a database never changes: one that was made once is used again."""


class LoginDenied(Exception):
    """The server did not let a login in."""


class ConnectionLost(Exception):
    """The session was ended, or the server is not there."""


@dataclass(slots=True)
class StoredTable:
    """One object with its rows. ``journaled``: the staging journal knows it, or its owner is a writer role of ours."""

    identity: str
    columns: tuple[Column, ...] = ()
    batches: list[pa.RecordBatch] = field(default_factory=list)
    journaled: bool = True
    kind: ObjectKind = ObjectKind.TABLE
    label: str = ""
    over: Relation | None = None
    """What a view reads."""
    dependants: tuple[str, ...] = ()
    unmodelled: tuple[Effect, ...] = ()
    _digested: tuple[tuple[pa.RecordBatch, ...], str] | None = None
    """The batches that were digested last, which never change, and their digest."""

    @property
    def rows(self) -> int:
        """How many rows stand here."""
        return sum(len(batch) for batch in self.batches)

    @property
    def content_digest(self) -> str:
        """The content digest in its textual form."""
        known = self._digested
        if known is None or list(map(id, known[0])) != list(map(id, self.batches)):
            written = tuple(batch.serialize().to_pybytes() for batch in self.batches)
            known = self._digested = (tuple(self.batches), _digest_of(self.columns, written))
        return known[1]


@lru_cache(maxsize=1000)
def _digest_of(columns: tuple[Column, ...], batches: tuple[bytes, ...]) -> str:
    """Return the digest of batches as they are written: the same rows stand in many worlds."""
    hasher, schema = ContentHasher(columns), arrow_schema(columns)
    for batch in batches:
        hasher.update(pa.ipc.read_record_batch(pa.py_buffer(batch), schema))
    return str(hasher.digest)


@dataclass(slots=True)
class StoredLogin:
    """One login; ``enabled`` tells whether it may log in."""

    name: str
    secret: str
    enabled: bool
    server_id: str
    grants: tuple[str, ...]


@dataclass(slots=True, eq=False)
class ServerSession:
    """One session of a login. ``stubborn`` is one that does not end when it is told to."""

    number: int
    login: str
    in_transaction: bool = False
    stubborn: bool = False
    ended: bool = False

    def __str__(self) -> str:
        """Return it in words."""
        return f"session {self.number} of {self.login}"

    @property
    def in_words(self) -> str:
        """The session as a holder of locks."""
        return f"{self} (in an open transaction)"


@dataclass(slots=True)
class Enrolled:
    """What an administrator's enrolment left, as the database says it now."""

    managed_schemas: tuple[str, ...]
    family: Family = Family.NONPRODUCTION
    authority_id: str = AUTHORITY.authority_id
    authority_incarnation: str = AUTHORITY.incarnation
    mark: int = 0
    gate_digest: str | None = None
    other_writers: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class SimulatedServer:
    """One service with one database. ``ledger`` is set where the engine asks it at each login (SQL engines)."""

    service: Service
    database: str
    facts: tuple[tuple[str, str], ...]
    enrolled: Enrolled | None = None
    ledger: SimulatedLedger | None = None
    folds_case: bool = False
    reachable: bool = True
    outage: str = "does not answer"
    """What is said of it while it is not reachable."""
    sees_all: bool = True
    tables: dict[Relation, StoredTable] = field(default_factory=dict)
    receipts: dict[AttemptId, ReceiptRow] = field(default_factory=dict)
    staged_by: dict[AttemptId, tuple[Relation, SlotId, int]] = field(default_factory=dict)
    """The journal of staged tables: name, slot and epoch by attempt."""
    received_under: dict[AttemptId, OccurrenceId] = field(default_factory=dict)
    logins: dict[str, StoredLogin] = field(default_factory=dict)
    sessions: list[ServerSession] = field(default_factory=list)
    half_open: list[str] = field(default_factory=list)
    kind: EngineKind = field(init=False)
    service_id: ServiceId = field(init=False)
    _made: int = 0

    def __post_init__(self) -> None:
        """Take the engine and the id from the service."""
        self.kind, self.service_id = self.service.kind, self.service.service_id

    @property
    def incarnation(self) -> Incarnation:
        """The database's present life."""
        return _incarnation(self.service, self.database, self.facts)

    def replace_database(self) -> None:
        """Drop the database and make it anew: another incarnation, nothing in it."""
        self.facts = tuple((name, value + "'") for name, value in self.facts)
        self.tables.clear()
        self.receipts.clear()

    def new_identity(self) -> str:
        """Return an identity that no object ever had."""
        self._made += 1
        return str(uuid5(NAMESPACE_OID, f"{self.service_id} {self._made}"))

    def require_reachable(self) -> None:
        """Refuse to answer when the server is not there.

        Raises:
            ConnectionLost: it is not.
        """
        if not self.reachable:
            raise ConnectionLost(f"{self.kind} {self.database} {self.outage}")

    def sessions_of(self, login: str) -> list[ServerSession]:
        """Return the open sessions of a login."""
        return [one for one in self.sessions if one.login == login]

    def log_in(self, credential: Credential) -> ServerSession:
        """Open a session.

        Raises:
            LoginDenied: no such login, disabled, another secret, or the gate is not READY.
            ConnectionLost: the server does not answer.
        """
        self.require_reachable()
        login = self.logins.get(credential.user)
        if login is None or not login.enabled or login.secret != credential.password.reveal():
            raise LoginDenied(credential.user)
        gate = self.gate_of(credential.user)
        if self.ledger is not None and (gate is None or gate.state is not GateState.READY):
            raise LoginDenied(f"{credential.user}: {gate}")
        self._made += 1
        session = ServerSession(self._made, credential.user)
        self.sessions.append(session)
        return session

    def end(self, session: ServerSession) -> None:
        """Close a session."""
        session.ended = True
        if self.ledger is not None:
            self.ledger.unlock(session.in_words)
        if session in self.sessions:
            self.sessions.remove(session)

    @contextmanager
    def session(self, credential: Credential) -> Iterator[ServerSession]:
        """Hold a session of a login."""
        opened = self.log_in(credential)
        try:
            yield opened
        finally:
            self.end(opened)

    def require(self, session: ServerSession) -> None:
        """Demand that a session still is one.

        Raises:
            ConnectionLost: it was ended.
        """
        self.require_reachable()
        if session.ended:
            raise ConnectionLost(f"{session} was ended")

    def gate_of(self, login: str) -> Gate | None:
        """Return the ledger's gate row of a login, as the engine's own trigger reads it."""
        if self.ledger is None:
            return None
        for gate in self.ledger.rows.gates.values():
            if gate.principal.name == login and gate.service_id == self.service_id:
                return gate
        return None

    def class_of(self, relation: Relation, among: Iterable[Relation]) -> Relation:
        """Return the first relation that the database holds equal to ``relation``, itself if there is none."""
        same = (one for one in among if self._folded(one) == self._folded(relation))
        return next(same, relation)

    def _folded(self, relation: Relation) -> tuple[str, str]:
        parts = (relation.schema, relation.name)
        return (parts[0].casefold(), parts[1].casefold()) if self.folds_case else parts
