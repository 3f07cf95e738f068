"""An enrolled ClickHouse of the lab, and what one transfer's attempt needs there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from dpone_provider import lab
from dpone_provider.adapters.clickhouse.enrolment import EnrolmentOrder, Marker, enrol
from dpone_provider.adapters.clickhouse.gate import GateOption, login_gate
from dpone_provider.adapters.clickhouse.publisher import ClickHousePublisher
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.adapters.clickhouse.sql_users import SqlUsers
from dpone_provider.adapters.clickhouse.staging import ClickHouseStagingWriter
from dpone_provider.adapters.clickhouse.user_pool import UserPool
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ports.gate import GrantPlan, LoginGate
from dpone_provider.application.ports.tables import PublishJob, StagedContent, TargetBinding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import (
    AttemptId,
    EngineKind,
    Family,
    OccurrenceId,
    Relation,
    ServiceId,
    SlotId,
    digest_of,
    hex_id,
    staged_name,
)
from dpone_provider.domain.publication import Publication, PublicationState
from dpone_provider.domain.schema.tables import Column, Storage, Table
from dpone_provider.domain.schema.types import parse_logical_type
from dpone_provider.domain.secret import Secret

AUTHORITY = EnrolmentOrder(
    authority_id="authority-1", authority_incarnation="first", family=Family.NONPRODUCTION, database="mart"
)
_NUMBERS = itertools.count(1)
_RUN = token_hex(8)
"""Names of logins are used once, on a server that stays too."""


def server_of(state: lab.LabState, name: str) -> ClickHouseServer:
    """Return the server with one of the lab's credentials."""
    url = urlsplit(state.url(name).reveal())
    assert url.hostname
    assert url.port
    endpoint = Endpoint(
        kind=EngineKind.CLICKHOUSE, host=url.hostname, port=url.port, database="mart", tls=TlsMode.DISABLED
    )
    return ClickHouseServer(
        endpoint=endpoint, credential=Credential(url.username or "", Secret(url.password or "")), statement_seconds=20
    )


def column(name: str, kind: str, *, nullable: bool = False, comment: str | None = None) -> Column:
    """Build a column from a type's text."""
    return Column(name=name, type=parse_logical_type(kind), nullable=nullable, comment=comment)


def table(name: str, *columns: Column, order_by: Sequence[str] = ("id",), partition_by: str | None = None) -> Table:
    """Build a declared table of the mart; without columns it has ``id int64`` and a nullable ``name``."""
    return Table(
        schema="mart",
        name=name,
        columns=columns or (column("id", "int64"), column("name", "string", nullable=True)),
        storage=Storage(engine="MergeTree", order_by=tuple(order_by), partition_by=partition_by),
    )


def rows(*ids: int) -> pa.RecordBatch:
    """Build a batch of the default table."""
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{i}" for i in ids], pa.string())})


@dataclass(slots=True, kw_only=True)
class Enrolled:
    """A ClickHouse with its marker; ``controller`` and ``reader`` are its standing users. A given one has no lab."""

    state: lab.LabState | None
    controller: ClickHouseServer
    reader: ClickHouseServer
    marker: Marker
    clock: SystemClock = field(default_factory=SystemClock)
    used: set[str] = field(default_factory=set)

    @property
    def service_id(self) -> ServiceId:
        """The service's id."""
        return ServiceId(self.marker.service_id)

    def gate(self) -> LoginGate:
        """Return the gate over the lab's pool, or by SQL where the server has users made by SQL."""
        option: GateOption = SqlUsers(entropy=SystemEntropy())
        if self.state is not None and self.state.pool():
            option = UserPool(file=self.state.credential("analytics_pool.json"))
        return login_gate(self.controller, self.service_id, option)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Read as the controller."""
        session = Session(self.controller)
        try:
            return session.rows(sql)
        finally:
            session.release()

    def run(self, sql: str) -> None:
        """Change something as the controller."""
        Session(self.controller).mutate(sql, query_id=f"test-{next(_NUMBERS)}")

    def name(self, prefix: str = "t") -> str:
        """Return a table name that no other test has."""
        return f"{prefix}_{next(_NUMBERS)}"

    def login(self, *staged: Relation) -> Credential:
        """Issue a login that no other test has, for these staged tables."""
        gate = self.gate()
        principal = gate.propose(new_attempt(), self.used)
        assert not hasattr(principal, "problem"), principal
        self.used.add(principal.name)
        secret = gate.create(principal, GrantPlan(staged_tables=staged), None)
        assert isinstance(secret, Secret)
        gate.enable(principal)
        return Credential(principal.name, secret)

    def deadline(self, seconds: float = 30.0) -> Deadline:
        """Return a deadline from now."""
        return Deadline.after(self.clock, seconds)


def new_attempt() -> AttemptId:
    """Return an attempt id that no other test has."""
    return AttemptId(hex_id("attempt", _RUN, str(next(_NUMBERS))))


def job_for(declared: Table, *, slot: str | None = None) -> PublishJob:
    """Return the job of a new attempt on the declared table."""
    attempt = new_attempt()
    slot_id = SlotId(hex_id("slot", slot or declared.name))
    return PublishJob(
        attempt_id=attempt,
        occurrence_id=OccurrenceId("11111111-1111-4111-8111-111111111111"),
        slot_id=slot_id,
        epoch=1,
        target=declared.relation,
        staged=Relation("dpone_stage", staged_name(slot_id, attempt)),
        declared=declared,
    )


@dataclass(slots=True, kw_only=True)
class Refresh:
    """One refresh, step by step as the use case orders them. ``server`` may lie behind a proxy."""

    enrolled: Enrolled
    job: PublishJob
    server: ClickHouseServer
    binding: TargetBinding | None = None
    publication: Publication | None = None

    @classmethod
    def of(cls, enrolled: Enrolled, declared: Table, *, server: ClickHouseServer | None = None) -> Refresh:
        """Return the refresh of a new attempt."""
        return cls(enrolled=enrolled, job=job_for(declared), server=server or enrolled.controller)

    @property
    def publisher(self) -> ClickHousePublisher:
        """The controller's publisher."""
        return ClickHousePublisher(self.server)

    def begin(self) -> TargetBinding:
        """Bind and create what is staged."""
        bound = self.publisher.bind(self.job)
        assert isinstance(bound, TargetBinding), bound
        created = self.publisher.create_staged(self.job, bound)
        assert created is None, created
        self.binding = bound
        self.publication = Publication(
            attempt_id=self.job.attempt_id,
            slot_id=self.job.slot_id,
            service_id=self.enrolled.service_id,
            epoch=1,
            verb=bound.verb,
            staged_identity=bound.staged_identity,
            target_identity=bound.target_identity,
            state=PublicationState.INTENDED,
            definition_digest=digest_of(b"pack"),
        )
        return bound

    def load(self, batches: Sequence[pa.RecordBatch]) -> StagedContent:
        """Stage batches as a worker does, with an issued login."""
        worker = replace(self.enrolled.controller, credential=self.enrolled.login(self.job.staged))
        writer = ClickHouseStagingWriter(worker, self.job, key=("id",))
        for batch in batches:
            writer.write(batch)
        staged = writer.finish(self.enrolled.deadline())
        assert isinstance(staged, StagedContent), staged
        return staged

    def verified(self, claimed: StagedContent) -> Publication:
        """Verify and return the publication as it is journaled for dispatch."""
        found = self.publisher.verify(self.job, claimed, self.enrolled.deadline())
        assert found == claimed, found
        assert self.publication is not None
        self.publication = replace(
            self.publication,
            state=PublicationState.DISPATCHED,
            rows=claimed.rows,
            content_digest=claimed.content_digest,
        )
        return self.publication

    def whole(self, batches: Sequence[pa.RecordBatch]) -> object:
        """Run the refresh from begin to settle; return what the target shows."""
        self.begin()
        publication = self.verified(self.load(batches))
        assert self.publisher.dispatch(self.job, publication, self.enrolled.deadline()) is None
        return self.settle()

    def settle(self) -> object:
        """Drop the attempt's name, read it back as gone, then look."""
        assert self.publication is not None
        gone = self.publisher.discard_staged(self.job)
        assert gone is None, gone
        return self.publisher.observe(self.job, self.publication)


def enrolled_lab(state: lab.LabState) -> Enrolled:
    """Enrol the lab's mart."""
    controller = server_of(state, "analytics_controller")
    marker = enrol(controller, AUTHORITY)
    assert isinstance(marker, Marker), marker
    return Enrolled(state=state, controller=controller, reader=server_of(state, "analytics_reader"), marker=marker)


def with_port(server: ClickHouseServer, port: int) -> ClickHouseServer:
    """Return the same server as seen through another port of this machine."""
    return replace(server, endpoint=replace(server.endpoint, port=port))
