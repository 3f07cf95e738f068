"""One refresh of a target on the given server from bind to observation, with a login that its gate issued."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex
from typing import Any

import pyarrow as pa

from dpone_provider.adapters.mssql.publisher import MssqlPublisher
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.mssql.staging import MssqlStagingWriter
from dpone_provider.adapters.mssql.writer import MssqlFencedPublisher, Way
from dpone_provider.application.ports.tables import (
    NotPublished,
    Published,
    PublishJob,
    StagedContent,
    TargetBinding,
)
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import Principal, Relation, digest_of, stage_name
from dpone_provider.domain.outcomes import Failed, Unknown
from dpone_provider.domain.publication import Publication, PublicationState
from dpone_provider.domain.schema.tables import Column, Table
from dpone_provider.domain.schema.types import parse_logical_type
from tests.adapters.mssql.given_world import GivenWorld, deadline
from tests.adapters.mssql.installed import SCHEMA
from tests.adapters.mssql.killed import Publication as Told
from tests.conformance.ledger_world import WAREHOUSE, document


def column(name: str, logical: str, *, nullable: bool = False) -> Column:
    """Return a column of a type in its text form."""
    return Column(name=name, type=parse_logical_type(logical), nullable=nullable)


def table(*columns: Column, **aspects: Any) -> Table:
    """Return a declared table of a new name: by default with an id and a name."""
    given = columns or (column("id", "int64"), column("name", "string", nullable=True))
    return Table(schema=SCHEMA, name=f"t_{token_hex(6)}", columns=given, **aspects)


def batch(declared: Table, *rows: tuple[object, ...]) -> pa.RecordBatch:
    """Return rows of a table as one canonical batch."""
    schema = arrow_schema(declared.columns)
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


@dataclass(slots=True, kw_only=True)
class Refresh:
    """One attempt's refresh of ``declared``. ``at`` is the target as the worker reaches it: a test may put another."""

    world: GivenWorld
    declared: Table
    way: Way
    attempt: Attempt
    principal: Principal
    at: MssqlServer
    binding: TargetBinding | None = None

    @classmethod
    def of(cls, world: GivenWorld, declared: Table, way: Way = Way.INSERT) -> Refresh:
        """Admit an attempt and issue its login."""
        attempt = world.attempt()
        principal = world.journaled(attempt.attempt_id)
        login: Credential = world.issued(principal)
        return cls(
            world=world, declared=declared, way=way, attempt=attempt, principal=principal, at=world.worker(login)
        )

    @property
    def job(self) -> PublishJob:
        """Return the job, as its attempt fixes it."""
        ((slot_id, epoch),) = self.attempt.writes
        return PublishJob(
            attempt_id=self.attempt.attempt_id,
            occurrence_id=self.attempt.binding.occurrence_id,
            slot_id=slot_id,
            epoch=epoch,
            target=self.declared.relation,
            staged=Relation(SCHEMA, stage_name(slot_id)),
            declared=self.declared,
        )

    @property
    def publisher(self) -> MssqlPublisher:
        """Return the controller's side."""
        return MssqlPublisher(self.world.instance.target)

    def bound(self) -> TargetBinding:
        """Bind."""
        binding = self.publisher.bind(self.job)
        assert isinstance(binding, TargetBinding), binding
        self.binding = binding
        return binding

    def writer(self) -> MssqlStagingWriter:
        """Return the worker's hand on the staging table."""
        return MssqlStagingWriter(self.at, self.job, key=(self.declared.columns[0].name,))

    def staged(self, *batches: pa.RecordBatch) -> StagedContent:
        """Stage batches and read them back."""
        writer = self.writer()
        for one in batches:
            writer.write(one)
        content = writer.finish(deadline(60))
        assert isinstance(content, StagedContent), content
        return content

    def published(self, staged: StagedContent, *, seconds: float = 60) -> Failed | Unknown | None:
        """Dispatch."""
        assert self.binding is not None
        control = self.world.instance.values["control_database"]
        worker = MssqlFencedPublisher(self.at, self.binding, control_database=control, way=self.way)
        return worker.publish(self.job, staged, deadline(seconds))

    def told(self, staged: StagedContent) -> Told:
        """Return what a worker in another process is told, to dispatch it."""
        assert self.binding is not None
        return Told(
            endpoint=self.at.endpoint,
            user=self.at.credential.user,
            password=self.at.credential.password.reveal(),
            job=self.job,
            binding=self.binding,
            staged=staged,
            control_database=self.world.instance.values["control_database"],
            way=self.way,
        )

    def publication(self) -> Publication:
        """Return the journal's row, dispatched."""
        assert self.binding is not None
        return Publication(
            attempt_id=self.job.attempt_id,
            slot_id=self.job.slot_id,
            service_id=WAREHOUSE.service_id,
            epoch=self.job.epoch,
            verb=self.binding.verb,
            staged_identity=self.binding.staged_identity,
            target_identity=self.binding.target_identity,
            state=PublicationState.DISPATCHED,
            definition_digest=digest_of(document("definition")),
        )

    def observed(self) -> Published | NotPublished | Unknown:
        """Look at the receipt."""
        return self.publisher.observe(self.job, self.publication())

    def ended(self) -> Published | NotPublished | Unknown:
        """Close the gate, drop what is staged, look at the receipt, seal and collect."""
        self.world.closed(self.principal)
        assert self.publisher.discard_staged(self.job) is None
        shown = self.observed()
        self.world.end(self.principal)
        return shown

    def whole(self, *batches: pa.RecordBatch) -> Published | NotPublished | Unknown:
        """Bind, stage, dispatch, observe, end."""
        self.bound()
        outcome = self.published(self.staged(*batches))
        assert outcome is None, outcome
        return self.ended()

    def rows(self) -> list[tuple[object, ...]]:
        """Return what stands in the target, by its first column."""
        names = ", ".join(f"[{one.name}]" for one in self.declared.columns)
        return self.world.in_target(f"SELECT {names} FROM [{SCHEMA}].[{self.declared.name}] ORDER BY 1;")
