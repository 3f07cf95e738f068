"""One refresh of a PostgreSQL target from bind to observation, with a login that its gate issued."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from dpone_provider.adapters.postgres.gate import PostgresGate
from dpone_provider.adapters.postgres.publisher import PostgresPublisher
from dpone_provider.adapters.postgres.writer import PostgresFencedPublisher, PostgresStagingWriter
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ports.gate import GrantPlan
from dpone_provider.application.ports.tables import (
    NotPublished,
    Published,
    PublishJob,
    StagedContent,
    TargetBinding,
)
from dpone_provider.application.ports.time import Deadline
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import Digest, Principal, Relation, stage_name
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from dpone_provider.domain.publication import Publication, PublicationState
from dpone_provider.domain.schema.tables import Column, Table
from dpone_provider.domain.schema.types import parse_logical_type
from dpone_provider.domain.secret import Secret
from tests.adapters.postgres.enrolled import DIGEST, Enrolled, Written, new_hex

CLOCK = SystemClock()


def column(name: str, logical: str, *, nullable: bool = False, comment: str | None = None) -> Column:
    """Return a column of a type in its text form."""
    return Column(name=name, type=parse_logical_type(logical), nullable=nullable, comment=comment)


def table(*columns: Column, name: str | None = None, schema: str = "stage", **aspects: Any) -> Table:
    """Return a declared table: by default of a new name, with a key and a name."""
    name = name or f"t_{new_hex()[:12]}"
    given = columns or (column("id", "int64"), column("name", "string", nullable=True))
    return Table(schema=schema, name=name, columns=given, **aspects)


def batch(declared: Table, *rows: tuple[object, ...]) -> pa.RecordBatch:
    """Return rows of a table as one canonical batch."""
    schema = arrow_schema(declared.columns)
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def deadline(seconds: float = 30) -> Deadline:
    """Return a deadline from now."""
    return Deadline.after(CLOCK, seconds)


def gate_of(enrolled: Enrolled) -> PostgresGate:
    """Return the gate of an enrolled database."""
    return PostgresGate(
        endpoint=enrolled.endpoint,
        credential=enrolled.controller,
        service_id=enrolled.service_id,
        control_schema="dpone_control",
        entropy=SystemEntropy(),
    )


def issue(enrolled: Enrolled, written: Written, *schemas: str) -> Credential:
    """Issue the login of an attempt, READY."""
    gate = gate_of(enrolled)
    principal = gate.propose(written.attempt_id, ())
    assert isinstance(principal, Principal)
    enrolled.journal(written.attempt_id, principal)
    with enrolled.connected("dpone_controller", autocommit=False) as ledger:
        ledger.execute("SELECT 1")
        secret = gate.create(principal, GrantPlan(writer_schemas=schemas or ("stage",)), ledger)
        assert isinstance(secret, Secret), secret
        ledger.execute(
            "UPDATE dpone_control.login_gate SET gate_state = 'READY' WHERE principal_name = %s", [principal.name]
        )
    return Credential(principal.name, secret)


@dataclass(slots=True, kw_only=True)
class Refresh:
    """One attempt's refresh of ``declared``. ``worker_endpoint`` may lead through a proxy."""

    enrolled: Enrolled
    declared: Table
    written: Written
    login: Credential
    worker_endpoint: Endpoint
    binding: TargetBinding | None = None

    @classmethod
    def of(cls, enrolled: Enrolled, declared: Table, *, slot_id: str | None = None) -> Refresh:
        """Admit an attempt and issue its login."""
        written = enrolled.attempt(slot_id=slot_id)
        login = issue(enrolled, written, declared.schema)
        return cls(
            enrolled=enrolled, declared=declared, written=written, login=login, worker_endpoint=enrolled.endpoint
        )

    @property
    def job(self) -> PublishJob:
        """Return the job, as its attempt fixes it."""
        return PublishJob(
            attempt_id=self.written.attempt_id,
            occurrence_id=self.written.occurrence_id,
            slot_id=self.written.slot_id,
            epoch=self.written.epoch,
            target=self.declared.relation,
            staged=Relation(self.declared.schema, stage_name(self.written.slot_id)),
            declared=self.declared,
        )

    @property
    def publisher(self) -> PostgresPublisher:
        """Return the controller's side."""
        return PostgresPublisher(self.enrolled.endpoint, self.enrolled.controller)

    def bound(self) -> TargetBinding:
        """Bind."""
        binding = self.publisher.bind(self.job)
        assert isinstance(binding, TargetBinding), binding
        self.binding = binding
        return binding

    def staged(self, batches: Iterable[pa.RecordBatch]) -> StagedContent:
        """Stage batches and read them back."""
        writer = PostgresStagingWriter(self.enrolled.endpoint, self.login, self.job, key=("id",))
        for one in batches:
            writer.write(one)
        content = writer.finish(deadline())
        assert isinstance(content, StagedContent), content
        return content

    def published(self, staged: StagedContent, *, seconds: float = 30) -> Failed | Unknown | None:
        """Dispatch."""
        assert self.binding is not None
        worker = PostgresFencedPublisher(self.worker_endpoint, self.login, self.binding)
        return worker.publish(self.job, staged, deadline(seconds))

    def publication(self) -> Publication:
        """Return the journal's row, dispatched."""
        assert self.binding is not None
        return Publication(
            attempt_id=self.written.attempt_id,
            slot_id=self.written.slot_id,
            service_id=self.enrolled.service_id,
            epoch=self.written.epoch,
            verb=self.binding.verb,
            staged_identity=self.binding.staged_identity,
            target_identity=self.binding.target_identity,
            state=PublicationState.DISPATCHED,
            definition_digest=Digest(DIGEST),
        )

    def observed(self) -> Published | NotPublished | Unknown:
        """Look at the receipt."""
        return self.publisher.observe(self.job, self.publication())

    def sessions(self) -> list[tuple[object, ...]]:
        """Return what the server says of the login's sessions."""
        return self.enrolled.execute(
            "SELECT pid, backend_type, application_name, state, wait_event_type, wait_event, query, backend_xid,"
            " pg_blocking_pids(pid) FROM pg_stat_activity WHERE usename = %s",
            self.login.user,
        )

    def rows(self) -> list[tuple[object, ...]]:
        """Return what stands in the target, by its first column."""
        return self.enrolled.execute(f"SELECT * FROM {self.declared.relation} ORDER BY 1")

    def end(self) -> None:
        """Let the attempt end, so that another one can write the slot."""
        self.enrolled.execute(
            "UPDATE dpone_control.attempt SET state = 'FAILED' WHERE attempt_id = %s", self.written.attempt_id
        )
        self.enrolled.say(Principal(service_id=self.enrolled.service_id, name=self.login.user, sid="x"), "CLOSED")

    def whole(self, *batches: pa.RecordBatch) -> Published | NotPublished | Unknown:
        """Bind, stage, dispatch, observe, end."""
        self.bound()
        outcome = self.published(self.staged(batches))
        assert outcome is None, outcome
        shown = self.observed()
        self.end()
        return shown

    def again(self, declared: Table | None = None) -> Refresh:
        """Return the next attempt's refresh of the same slot."""
        return Refresh.of(self.enrolled, declared or self.declared, slot_id=self.written.slot_id)

    def refused(self) -> Refused:
        """Bind in vain."""
        refused = self.publisher.bind(self.job)
        assert isinstance(refused, Refused), refused
        return refused

    def through(self, port: int) -> Refresh:
        """Return the same with a worker that goes through another port."""
        return replace(self, worker_endpoint=replace(self.enrolled.endpoint, port=port))
