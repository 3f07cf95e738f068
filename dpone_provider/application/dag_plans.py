"""Synthetic DAGs: one for each ordinary transfer, one for each dbt project with what is generated from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpone_provider.application.parent import Pack
from dpone_provider.documents.dag_spec import DagSpecV1, Edge, PlannedTask
from dpone_provider.documents.model import in_order
from dpone_provider.documents.transfer_pack import GeneratedOrigin, TransferPackV1


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A pack with the file that it is written to, and Airflow's retries for its task."""

    pack: Pack
    file: str
    retries: int

    @property
    def task_id(self) -> str:
        """The workload id without its kind and, for dbt, the project: unique within its DAG."""
        parts = self.pack.id.split(".")
        return parts[1] if parts[0] == "ordinary" else ".".join(parts[2:])

    @property
    def task(self) -> PlannedTask:
        """The task, which is the plan."""
        is_transfer = isinstance(self.pack, TransferPackV1)
        return PlannedTask(
            task_id=self.task_id,
            workload_id=self.pack.id,
            operator="transfer" if is_transfer else "dbt",
            pack_file=self.file,
            pack_digest=self.pack.digest,
            timeout_seconds=self.pack.timeout_seconds,
            retries=self.retries,
            way=self.pack.publication.way if isinstance(self.pack, TransferPackV1) else None,
        )


def transfer_dag(workspace: str, planned: Planned) -> DagSpecV1:
    """Return the DAG of one ordinary transfer: ``<workspace>.<transfer>``."""
    return DagSpecV1(dag_id=f"{workspace}.{planned.task_id}", constituent="ordinary", tasks=(planned.task,), edges=())


def project_dag(workspace: str, project: str, planned: Iterable[Planned]) -> DagSpecV1:
    """Return the DAG of one dbt project: ``<workspace>.<project>``, each generated transfer after its dbt workload.

    dbt workloads of one project have no order between them: who needs one selects it in one workload.
    """
    them = tuple(planned)
    tasks = {each.pack.id: each.task_id for each in them}
    edges = (
        Edge(up=tasks[each.pack.origin.workload_id], down=each.task_id)
        for each in them
        if isinstance(each.pack, TransferPackV1) and isinstance(each.pack.origin, GeneratedOrigin)
    )
    return DagSpecV1(
        dag_id=f"{workspace}.{project}",
        constituent="native",
        tasks=in_order((each.task for each in them), lambda task: task.task_id),
        edges=in_order(edges, lambda edge: (edge.up, edge.down)),
    )
