"""``dpone.constituent.v1``: what compiling one half of a workspace gives, before it is composed into a release."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from dpone_provider.documents.model import Document, FileEntry, Part, invalid, ordered
from dpone_provider.documents.scalars import CommitId, DagId, Digest, DocumentPath, Name, WorkloadId
from dpone_provider.documents.transfer_pack import StateDeclaration

ConstituentKind = Literal["native", "ordinary"]


class PackEntry(Part):
    """A pack by workload and file. ``state`` is what the workspace declared for a transfer, null for dbt."""

    workload_id: WorkloadId
    kind: Literal["execution", "transfer"]
    file: DocumentPath
    digest: Digest
    state: StateDeclaration | None = None

    @model_validator(mode="after")
    def _state_is_a_transfers(self) -> PackEntry:
        if (self.kind == "execution") != self.workload_id.startswith("native."):
            raise invalid("kind execution for native workloads, transfer for the others")
        if (self.kind == "transfer") != (self.state is not None):
            raise invalid("a state declaration for transfers, null for dbt")
        return self


class DagEntry(Part):
    """A DAG spec by id and file."""

    dag_id: DagId
    file: DocumentPath
    digest: Digest


Packs = Annotated[
    tuple[PackEntry, ...], AfterValidator(lambda them: ordered(them, lambda each: each.workload_id, "workload"))
]
Dags = Annotated[tuple[DagEntry, ...], AfterValidator(lambda them: ordered(them, lambda each: each.dag_id, "DAG"))]
Files = Annotated[tuple[FileEntry, ...], AfterValidator(lambda them: ordered(them, lambda each: each.path, "file"))]


class Constituent(Part):
    """One half of a parent. ``empty`` is declared, never a guess from empty lists.

    ``source_commit`` is the git commit of the source tree, null where there is none; ``tree_digest`` is over the tree.
    """

    kind: ConstituentKind
    empty: bool
    source_commit: CommitId | None = None
    tree_digest: Digest
    packs: Packs
    dags: Dags

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Constituent:
        if self.empty != (not self.packs) or self.empty != (not self.dags):
            raise invalid("packs and DAGs, or none of both and declared empty")
        first = {"native": ("native.", "generated."), "ordinary": ("ordinary.",)}[self.kind]
        for pack in self.packs:
            if not pack.workload_id.startswith(first):
                raise invalid(f"workloads of the {self.kind} constituent; {pack.workload_id} is none")
        return self


class ConstituentV1(Document):
    """A compiled constituent of one workspace with all its files, ``constituent.json`` itself excepted."""

    schema_id: Literal["dpone.constituent.v1"] = Field(default="dpone.constituent.v1", alias="schema")
    workspace: Name
    constituent: Constituent
    files: Files
