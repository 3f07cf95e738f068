"""``dpone.dag-spec.v1``: one DAG, its tasks and the plan of each."""

from __future__ import annotations

from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from dpone_provider.documents.model import Document, Part, invalid, ordered
from dpone_provider.documents.scalars import Count, DagId, Digest, DocumentPath, Positive, TaskId, WorkloadId
from dpone_provider.documents.transfer_pack import Way
from dpone_provider.domain import identity


class PlannedTask(Part):
    """One task and, being its whole entry, its plan.

    ``retries`` are Airflow's; ``way`` is how a transfer publishes, null for dbt.
    """

    task_id: TaskId
    workload_id: WorkloadId
    operator: Literal["dbt", "transfer"]
    pack_file: DocumentPath
    pack_digest: Digest
    timeout_seconds: Positive
    retries: Count
    way: Way | None = None

    @cached_property
    def plan_digest(self) -> identity.Digest:
        """The digest over the entry's canonical form; it stands in the activation request. Made once."""
        return identity.digest_of(self.canonical_bytes())

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> PlannedTask:
        if (self.operator == "dbt") != self.workload_id.startswith("native."):
            raise invalid("operator dbt for native workloads, transfer for the others")
        if (self.operator == "dbt") != (self.way is None):
            raise invalid("a way for transfers, null for dbt")
        return self


class Edge(Part):
    """``down`` starts after ``up`` succeeded."""

    up: TaskId
    down: TaskId


class DagSpecV1(Document):
    """One DAG. ``schedule`` is null: synthetic DAGs are triggered explicitly."""

    schema_id: Literal["dpone.dag-spec.v1"] = Field(default="dpone.dag-spec.v1", alias="schema")
    dag_id: DagId
    constituent: Literal["native", "ordinary"]
    tasks: Annotated[
        tuple[PlannedTask, ...], AfterValidator(lambda them: ordered(them, lambda each: each.task_id, "task"))
    ] = Field(min_length=1)
    edges: Annotated[
        tuple[Edge, ...], AfterValidator(lambda them: ordered(them, lambda each: (each.up, each.down), "edge"))
    ]
    schedule: None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> DagSpecV1:
        known = {task.task_id for task in self.tasks}
        for edge in self.edges:
            if not {edge.up, edge.down} <= known:
                raise invalid(f"edges between tasks of the DAG; {edge.up} → {edge.down} is none")
        if len({task.workload_id for task in self.tasks}) != len(self.tasks):
            raise invalid("each workload in one task only")
        if not acyclic(known, self.edges):
            raise invalid("edges without a cycle")
        return self


def acyclic(tasks: set[str], edges: tuple[Edge, ...]) -> bool:
    """Tell whether the edges leave an order in which every task can run."""
    sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(tasks, ()))
    for edge in edges:
        sorter.add(edge.down, edge.up)
    try:
        sorter.prepare()
    except CycleError:
        return False
    return True
