"""``dpone.workspace.v1``: what a team keeps in git, written as YAML.

Some fields exist only to be refused with their own reason (``query``, ``hooks``, ``route``): a person who writes them
should learn that they are not supported, not that they are misspelt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from dpone_provider.documents.model import Document, Part, invalid
from dpone_provider.documents.scalars import Count, DbtName, DocumentPath, Name, Positive, RelationName, ShortText
from dpone_provider.documents.transfer_pack import ColumnText, RefreshBounds, SchemaPolicy, StateDeclaration, Way

DEFAULT_BOUNDS = RefreshBounds(max_rows=1_000_000_000, max_bytes=2**40, batch_rows=65_536)
"""Bounds of a transfer that declares none: a thousand million rows, one tebibyte, batches of the measured best size."""


def _without_trailing_slash(path: object) -> object:
    return path.rstrip("/") if isinstance(path, str) and path != "/" else path


WorkspacePath = Annotated[DocumentPath, BeforeValidator(_without_trailing_slash)]
"""A path inside the workspace, written with or without a trailing slash."""


class TransferSource(Part):
    """Where an ordinary transfer reads. ``query`` is recognised and refused: only whole tables are read."""

    connection: Name
    schema_name: RelationName = Field(alias="schema")
    table: RelationName
    query: ShortText | None = None


class TransferTarget(Part):
    """Where a transfer writes: ``schema``, or ``database`` on ClickHouse, with the storage that only it has."""

    connection: Name
    schema_name: RelationName | None = Field(default=None, alias="schema")
    database: RelationName | None = None
    table: RelationName
    engine: ShortText = "MergeTree"
    order_by: tuple[ShortText, ...] | None = None
    partition_by: ShortText | None = None

    @property
    def namespace(self) -> str:
        """The schema or database, whichever was written."""
        return self.schema_name or self.database or ""

    @model_validator(mode="after")
    def _one_namespace(self) -> TransferTarget:
        if (self.schema_name is None) == (self.database is None):
            raise invalid("either schema or, on ClickHouse, database")
        return self


class Publish(Part):
    """A dbt model that a generated transfer takes to ClickHouse.

    Columns are, in this order of preference, the ones written here, or those of the model in the dbt project that have
    a ``data_type``, all of them.
    """

    model: DbtName
    to: TransferTarget
    columns: tuple[ColumnText, ...] | None = Field(default=None, min_length=1)
    key: tuple[RelationName, ...] = ()
    bounds: RefreshBounds = DEFAULT_BOUNDS
    schema_policy: SchemaPolicy = SchemaPolicy()
    timeout_seconds: Positive = 3600
    retries: Count = 1


class NativeWorkload(Part):
    """One dbt run: what it selects (dbt's own selection syntax, joined by union), and what is published of it."""

    id: Name
    select: tuple[ShortText, ...] = Field(min_length=1)
    publish: tuple[Publish, ...] = ()
    timeout_seconds: Positive = 3600
    retries: Count = 1


class NativeProject(Part):
    """One dbt project. ``schema`` is dbt's target schema; without one it is the workspace's name."""

    project: WorkspacePath
    connection: Name
    schema_name: RelationName | None = Field(default=None, alias="schema")
    threads: Positive = 2
    workloads: tuple[NativeWorkload, ...] = Field(min_length=1)


class OrdinaryTransfer(Part):
    """One transfer. Columns that are not declared are read from the source once, at compile, and pinned.

    ``key`` names NOT NULL columns; where neither key nor columns are declared, the source's primary key is taken.
    ``way`` is how the target is published; without one it is its engine's default.
    """

    id: Name
    source: TransferSource = Field(alias="from")
    to: TransferTarget
    strategy: Name
    state: StateDeclaration
    columns: tuple[ColumnText, ...] | None = Field(default=None, min_length=1)
    key: tuple[RelationName, ...] | None = None
    bounds: RefreshBounds = DEFAULT_BOUNDS
    schema_policy: SchemaPolicy = SchemaPolicy()
    timeout_seconds: Positive = 3600
    retries: Count = 1
    way: Way | None = None
    route: Literal["direct", "nested", "snapshot", "backfill"] = "direct"
    hooks: tuple[ShortText, ...] = ()


class WorkspaceV1(Document):
    """Everything that one parent is compiled from. An absent or empty list declares that constituent empty."""

    schema_id: Literal["dpone.workspace.v1"] = Field(default="dpone.workspace.v1", alias="schema")
    name: Name
    native: tuple[NativeProject, ...] = ()
    ordinary: tuple[OrdinaryTransfer, ...] = ()
    environments: Mapping[Name, WorkspacePath] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _ids_are_distinct(self) -> WorkspaceV1:
        transfers = [transfer.id for transfer in self.ordinary]
        if len(set(transfers)) != len(transfers):
            raise invalid("each id of an ordinary transfer once")
        for project in self.native:
            workloads = [workload.id for workload in project.workloads]
            if len(set(workloads)) != len(workloads):
                raise invalid(f"each workload id of {project.project} once")
            for workload in project.workloads:
                if len({publish.model for publish in workload.publish}) != len(workload.publish):
                    raise invalid(f"each model once in publish of workload {workload.id}")
        if len({project.project for project in self.native}) != len(self.native):
            raise invalid("each dbt project once")
        return self
