"""Running a DAG's workloads without Airflow: what a page's reader does with it, at a hundredth of its time.

The workloads run as the DAG orders them, through the product's own runtime, with the ids that Airflow would have given.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from uuid import uuid4

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.ledger.calls import settled
from dpone_provider.assembly.runtime import runtime_of
from dpone_provider.assembly.settings import Settings
from dpone_provider.documents.dag_spec import DagSpecV1
from dpone_provider.domain.identity import AirflowTry


class NoAirflow:
    """No task instance lives."""

    def alive(self, tried: AirflowTry) -> bool:
        """Tell that it does not."""
        return False


def trigger(line: str, environment: Mapping[str, str]) -> None:
    """Run what ``airflow dags trigger DAG --run-id RUN`` would have Airflow run, with the session's settings.

    Raises:
        AssertionError: a workload did not succeed.
    """
    words = shlex.split(line)
    assert words[:3] == ["airflow", "dags", "trigger"], line
    dag_id, run_id = words[3], words[words.index("--run-id") + 1]
    at = runtime_of(settled(Settings.from_environment(environment)), lambda _: None, NoAirflow())
    pointer = settled(at.cache.pointer(at.settings.environment))
    assert pointer is not None
    dag = at.current().dags[dag_id]
    for task_id, workload_id in in_order(dag):
        tried = AirflowTry(
            dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=-1, try_number=1, task_instance_id=uuid4()
        )
        report = at.run_workload(pointer.occurrence_id, pointer.deployment_id, workload_id, tried)
        assert isinstance(report, AttemptReport), report
        assert report.problem is None, report.problem


def in_order(dag: DagSpecV1) -> Iterator[tuple[str, str]]:
    """Yield task and workload ids, each after those that it waits for."""
    waiting = {task.task_id: {edge.up for edge in dag.edges if edge.down == task.task_id} for task in dag.tasks}
    workloads = {task.task_id: task.workload_id for task in dag.tasks}
    while waiting:
        ready = [each for each, before in waiting.items() if not before & waiting.keys()]
        for task_id in reversed(ready):  # of tasks without an order any will do
            del waiting[task_id]
            yield task_id, workloads[task_id]
