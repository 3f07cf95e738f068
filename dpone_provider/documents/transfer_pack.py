"""``dpone.transfer-pack.v1``: one transfer of one table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from dpone_provider.documents.model import Document, Part, invalid
from dpone_provider.documents.scalars import DbtName, Name, Positive, RelationName, ShortText, WorkloadId
from dpone_provider.domain.identity import EngineKind, Relation
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.tables import Column, Storage, Table
from dpone_provider.domain.schema.types import parse_logical_type


def _logical_type(text: str) -> str:
    try:
        parse_logical_type(text)
    except InvalidSchemaValue as error:
        raise PydanticCustomError("logical_type", "{allowed}", {"allowed": error.allowed}) from None
    return text


LogicalTypeText = Annotated[str, AfterValidator(_logical_type)]
"""A logical type in its one text form."""


class OrdinaryOrigin(Part):
    """Written by hand in the workspace's ``ordinary`` list."""

    kind: Literal["ordinary"] = "ordinary"


class GeneratedOrigin(Part):
    """Generated from a dbt model's ``publish`` entry: the workload that builds the model, and the model's unique id."""

    kind: Literal["generated"] = "generated"
    project: DbtName
    workload_id: WorkloadId
    model_id: ShortText


class SourceTable(Part):
    """Where the rows come from: an alias, its engine, schema and table."""

    connection: Name
    kind: EngineKind
    schema_name: RelationName = Field(alias="schema")
    table: RelationName

    @property
    def relation(self) -> Relation:
        """Schema and table."""
        return Relation(self.schema_name, self.table)


class StorageText(Part):
    """ClickHouse's ENGINE, ORDER BY and PARTITION BY."""

    engine: ShortText
    order_by: tuple[ShortText, ...]
    partition_by: ShortText | None = None

    @property
    def storage(self) -> Storage:
        """The value of the domain."""
        return Storage(engine=self.engine, order_by=self.order_by, partition_by=self.partition_by)


class TargetTable(Part):
    """Where the rows go. On ClickHouse ``schema`` is the database and ``storage`` is required, else null."""

    connection: Name
    kind: EngineKind
    schema_name: RelationName = Field(alias="schema")
    table: RelationName
    storage: StorageText | None = None

    @model_validator(mode="after")
    def _storage_is_clickhouse(self) -> TargetTable:
        if (self.kind is EngineKind.CLICKHOUSE) != (self.storage is not None):
            raise invalid("storage for a ClickHouse target, and for no other")
        return self

    @property
    def relation(self) -> Relation:
        """Schema and table."""
        return Relation(self.schema_name, self.table)


class ColumnText(Part):
    """One column: name, logical type in its text form, nullability."""

    name: RelationName
    type: LogicalTypeText
    nullable: bool

    @property
    def column(self) -> Column:
        """The value of the domain."""
        return Column(name=self.name, type=parse_logical_type(self.type), nullable=self.nullable)

    @classmethod
    def of(cls, column: Column) -> ColumnText:
        """Write ``column``; comments and renames are not part of a transfer."""
        return cls(name=column.name, type=str(column.type), nullable=column.nullable)


class StateDeclaration(Part):
    """How the transfer keeps its state. Supported is ``target_atomic``, ``external``; any other is refused by cell."""

    atomicity: Name
    provisioning: Name


class RefreshBounds(Part):
    """The limits of one refresh; passing one fails it before anything is published."""

    max_rows: Positive
    max_bytes: Positive
    batch_rows: Positive


Way = Literal["replace", "switch", "exchange"]
WAYS_OF: Final[Mapping[EngineKind, tuple[Way, ...]]] = MappingProxyType(
    {EngineKind.POSTGRES: ("replace",), EngineKind.MSSQL: ("replace", "switch"), EngineKind.CLICKHOUSE: ("exchange",)}
)
"""The ways in which a target of each kind can be published, its default first."""


class PublicationPolicy(Part):
    """How the content becomes visible: ``replace`` in one SQL transaction, ``exchange`` on ClickHouse.

    ``switch`` is SQL Server's ``ALTER TABLE … SWITCH`` in the place of DELETE and INSERT: metadata only, refused where
    staged and target are not alike, and it stops every reader for as long as the transaction lasts.
    """

    way: Way


class SchemaPolicy(Part):
    """What a refresh may change of the target's definition.

    ``sync`` allows what the rules call safe, and dropping exactly ``drop_columns``; ``refuse`` allows nothing.
    """

    changes: Literal["sync", "refuse"] = "sync"
    drop_columns: tuple[RelationName, ...] = ()


class TransferPackV1(Document):
    """One transfer: ``id`` is the workload id.

    ``key`` names the NOT NULL columns by which a message can name a row, and is the primary key of an SQL target; it
    may be empty.
    """

    schema_id: Literal["dpone.transfer-pack.v1"] = Field(default="dpone.transfer-pack.v1", alias="schema")
    id: WorkloadId
    origin: Annotated[OrdinaryOrigin | GeneratedOrigin, Field(discriminator="kind")]
    source: SourceTable
    target: TargetTable
    columns: tuple[ColumnText, ...] = Field(min_length=1)
    key: tuple[RelationName, ...]
    strategy: Name
    state: StateDeclaration
    bounds: RefreshBounds
    publication: PublicationPolicy
    schema_policy: SchemaPolicy
    timeout_seconds: Positive

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> TransferPackV1:
        if not self.id.startswith(f"{self.origin.kind}."):
            raise invalid(f"an id that starts with {self.origin.kind}.")
        ways = WAYS_OF[self.target.kind]
        if self.publication.way not in ways:
            raise invalid(f"way {' or '.join(ways)} for a target of kind {self.target.kind}")
        nullable = {column.name for column in self.columns if column.nullable}
        if nullable & set(self.key):
            raise invalid("key columns that are not nullable")
        if set(self.schema_policy.drop_columns) & {column.name for column in self.columns}:
            raise invalid("consent to drop only for columns that are not declared")
        try:
            _ = self.declared
        except InvalidSchemaValue as error:
            raise invalid(error.allowed + f" ({error.subject}: {error.found})") from None
        return self

    @cached_property
    def declared(self) -> Table:
        """The target as a declared table: columns, key and storage. Made once."""
        return Table(
            schema=self.target.schema_name,
            name=self.target.table,
            columns=tuple(column.column for column in self.columns),
            primary_key=self.key if self.key and self.target.storage is None else None,
            storage=self.target.storage.storage if self.target.storage else None,
        )
