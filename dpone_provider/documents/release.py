"""``dpone.release.v3``: the parent, independent of environments. Its digest is the release id."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from dpone_provider.documents.constituent import Constituent, DagEntry, Files, PackEntry
from dpone_provider.documents.model import Document, invalid, ordered
from dpone_provider.documents.scalars import Name


class ReleaseV3(Document):
    """Both constituents, and every file that they bring. One constituent may be declared empty, not both."""

    schema_id: Literal["dpone.release.v3"] = Field(default="dpone.release.v3", alias="schema")
    name: Name
    constituents: Annotated[
        tuple[Constituent, ...], AfterValidator(lambda them: ordered(them, lambda each: each.kind, "constituent"))
    ]
    files: Files

    @model_validator(mode="after")
    def _is_complete(self) -> ReleaseV3:
        if [each.kind for each in self.constituents] != ["native", "ordinary"]:
            raise invalid("exactly the constituents native and ordinary; one may be declared empty")
        if all(each.empty for each in self.constituents):
            raise invalid("at least one constituent that is not empty")
        listed = {file.path: file.digest for file in self.files}
        named = [(pack.file, pack.digest) for pack in self.packs] + [(dag.file, dag.digest) for dag in self.dags]
        for file, digest in named:
            if listed.get(file) != digest:
                raise invalid(f"every pack and DAG among the files, with the same digest; {file} is not")
        if len({dag.dag_id for dag in self.dags}) != len(self.dags):
            raise invalid("each DAG id once")
        return self

    @property
    def packs(self) -> tuple[PackEntry, ...]:
        """Every pack of both constituents, in workload order within each."""
        return tuple(pack for each in self.constituents for pack in each.packs)

    @property
    def dags(self) -> tuple[DagEntry, ...]:
        """Every DAG of both constituents, in order of id within each."""
        return tuple(dag for each in self.constituents for dag in each.dags)
