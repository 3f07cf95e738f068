"""Plans against packs: every workload has exactly one task, and the task says what the pack says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, Never

from dpone_provider.application.parent import Pack
from dpone_provider.documents.constituent import Constituent
from dpone_provider.documents.dag_spec import DagSpecV1, PlannedTask
from dpone_provider.documents.transfer_pack import GeneratedOrigin, TransferPackV1
from dpone_provider.domain.outcomes import refuse, unwind

_NEXT: Final = "compile and compose the workspace again"


def require_plans(
    constituents: tuple[Constituent, ...], packs: Mapping[str, Pack], dags: Mapping[str, DagSpecV1], where: str
) -> None:
    """Require one task for each workload, in a DAG of its constituent, that names its pack; generated transfers after
    the workload that builds their model.

    Raises:
        DponeError: Refused ``workload_without_task``, ``plan_differs`` or ``generated_out_of_order``.
    """
    count = Counter(task.workload_id for dag in dags.values() for task in dag.tasks)
    for constituent in constituents:
        entries = {pack.workload_id: pack for pack in constituent.packs}
        for workload_id in entries:
            if count[workload_id] != 1:
                _refuse("workload_without_task", f"{where}: {workload_id}", f"{count[workload_id]} tasks", "one task")
        for dag in (dags[entry.dag_id] for entry in constituent.dags):
            for task in dag.tasks:
                entry = entries.get(task.workload_id)
                if entry is None or (entry.file, entry.digest) != (task.pack_file, task.pack_digest):
                    allowed = f"workloads of the {constituent.kind} constituent, with its files and digests"
                    _refuse("plan_differs", _named(dag, task, where), f"{task.workload_id}, {task.pack_file}", allowed)
                _require_as_packed(dag, task, packs[task.workload_id], where)


def _require_as_packed(dag: DagSpecV1, task: PlannedTask, pack: Pack, where: str) -> None:
    subject = _named(dag, task, where)
    way = pack.publication.way if isinstance(pack, TransferPackV1) else None
    if (task.timeout_seconds, task.way) != (pack.timeout_seconds, way):
        found = f"{task.timeout_seconds} seconds, way {task.way}"
        _refuse("plan_differs", subject, found, f"{pack.timeout_seconds} seconds, way {way}")
    if isinstance(pack, TransferPackV1) and isinstance(pack.origin, GeneratedOrigin):
        before = {edge.up for edge in dag.edges if edge.down == task.task_id}
        built_by = {each.task_id for each in dag.tasks if each.workload_id == pack.origin.workload_id}
        if not built_by or not built_by <= before:
            allowed = f"an edge from the task of {pack.origin.workload_id}"
            _refuse("generated_out_of_order", subject, f"after {sorted(before) or 'nothing'}", allowed)


def _named(dag: DagSpecV1, task: PlannedTask, where: str) -> str:
    return f"{where}: task {task.task_id} of DAG {dag.dag_id}"


def _refuse(reason: str, subject: str, found: str, allowed: str) -> Never:
    unwind(refuse(reason, subject, found=found, allowed=allowed, next_command=_NEXT))
