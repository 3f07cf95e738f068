"""``dpone.execution-pack.v2``: one native dbt workload."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from dpone_provider.documents.canonical import canonical_digest
from dpone_provider.documents.model import Document, Part, RelationText, invalid, ordered
from dpone_provider.documents.scalars import DbtName, Digest, Name, Positive, RelationName, ShortText, WorkloadId
from dpone_provider.domain.footprint import Role, WrittenRelation
from dpone_provider.domain.identity import EngineKind, Relation


class ExpectedNode(Part):
    """A node that the run must report: dbt's unique id, what it is, and what it leaves.

    ``rebuilt_whole`` tells that a next run builds it anew, whatever a killed run left. ``as_columnstore`` tells, on SQL
    Server, whether its table gets a clustered columnstore index; null for what makes no table of that kind.
    """

    id: ShortText
    resource_type: ShortText
    materialized: ShortText
    relation: RelationText | None = None
    rebuilt_whole: bool
    as_columnstore: bool | None = None


class AdapterVersion(Part):
    """One distribution that took part in compiling, with its version."""

    name: ShortText
    version: ShortText


class AdapterFlag(Part):
    """One behaviour flag of the adapter, as the project sets it or the adapter has it."""

    name: ShortText
    value: bool


class Adapter(Part):
    """The dbt adapter: its engine, the versions that compiled the project and its behaviour flags, each by name."""

    kind: EngineKind
    versions: Annotated[
        tuple[AdapterVersion, ...], AfterValidator(lambda them: ordered(them, lambda each: each.name, "distribution"))
    ]
    flags: Annotated[
        tuple[AdapterFlag, ...], AfterValidator(lambda them: ordered(them, lambda each: each.name, "flag"))
    ] = ()


class WrittenText(Part):
    """A relation that the workload may write, and why."""

    schema_name: RelationName = Field(alias="schema")
    name: RelationName
    role: Role

    @property
    def written(self) -> WrittenRelation:
        """The value of the domain."""
        return WrittenRelation(Relation(self.schema_name, self.name), self.role)

    @classmethod
    def of(cls, written: WrittenRelation) -> WrittenText:
        """Write ``written``."""
        return cls(schema_name=written.relation.schema, name=written.relation.name, role=written.role)


class ExecutionPackV2(Document):
    """One native dbt workload, everything that decides what it does and may touch.

    ``id`` is the workload id ``native.<project>.<id>``. ``bundle_digest`` and ``manifest_digest`` are over the bytes of
    ``project.tar.gz`` and ``manifest.json``; ``selection_digest`` is over the canonical list of the node ids, in order.
    ``writes`` are every relation that it may write, helpers included; ``reads`` every source and ref of the selected
    nodes that the workload itself does not write.
    """

    schema_id: Literal["dpone.execution-pack.v2"] = Field(default="dpone.execution-pack.v2", alias="schema")
    id: WorkloadId
    project: DbtName
    bundle_digest: Digest
    manifest_digest: Digest
    selection_digest: Digest
    selectors: tuple[ShortText, ...]
    nodes: Annotated[
        tuple[ExpectedNode, ...], AfterValidator(lambda them: ordered(them, lambda each: each.id, "node"))
    ] = Field(min_length=1)
    adapter: Adapter
    connection: Name
    database: RelationName | None = None
    target_schema: RelationName
    timeout_seconds: Positive
    threads: Positive
    writes: Annotated[
        tuple[WrittenText, ...],
        AfterValidator(lambda them: ordered(them, lambda each: each.written, "relation")),
    ] = Field(min_length=1)
    reads: Annotated[
        tuple[RelationText, ...],
        AfterValidator(lambda them: ordered(them, lambda each: each.relation, "relation")),
    ]

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> ExecutionPackV2:
        if not self.id.startswith(f"native.{self.project}."):
            raise invalid(f"an id that starts with native.{self.project}.")
        if self.selection_digest != selection_digest(tuple(node.id for node in self.nodes)):
            raise invalid("the selection digest of the nodes")
        return self


def selection_digest(node_ids: tuple[str, ...]) -> Digest:
    """Return the digest that locks a selection: over the canonical list of node ids in id order."""
    return canonical_digest(sorted(node_ids))
