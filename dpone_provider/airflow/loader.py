"""From the deployment cache to DAGs. One DAG for each DAG spec of the deployment, none of them scheduled.

Whatever keeps the deployment from being read raises, so that Airflow shows an import error with the way out: a cache
that cannot be read must never look like one without DAGs. Nothing that only execution needs is imported here, because
the DAG processor parses again and again, and every task once more.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.compat.sdk import DAG, get_parsing_context

from dpone_provider.airflow.configuration import task_settings
from dpone_provider.airflow.operators import DponeDbtOperator, DponeTransferOperator, DponeWorkloadOperator
from dpone_provider.airflow.pin import Pin
from dpone_provider.airflow.shown import Place, ShownDag, ShownTask, current_pin, shown_dags
from dpone_provider.domain.outcomes import refuse, unwind


def load_dags(place: Place) -> dict[str, DAG]:
    """Return the DAGs of the deployment that the environment's pointer names, by id.

    Raises:
        DponeError: Refused: no pointer, or a cache that is missing, broken or unreadable; the message names the fix.
    """
    pin = current_pin(place)
    if pin is None:
        unwind(
            refuse(
                "no_current_deployment",
                f"environment {place.environment} in cache {place.cache_root}",
                found="no current pointer",
                allowed="a deployment that was promoted on this machine",
                next_command="dpone airflow cache-sync; if it was promoted elsewhere, run it here too: it follows",
            )
        )
    return _dags(place, pin)


def load_pinned(place: Place, version: str) -> dict[str, DAG]:
    """Return the DAGs of the deployment that a bundle version names, whatever is current now.

    Raises:
        DponeError: Refused: no version of ours, or this machine's cache no longer holds its deployment.
    """
    return _dags(place, Pin.parse(version))


def _dags(place: Place, pin: Pin) -> dict[str, DAG]:
    # When Airflow parses for a task, it says which DAG it wants, and the others need not be made.
    shown = shown_dags(place, pin, get_parsing_context().dag_id)
    retry_delay = task_settings().retry_delay
    return {each.dag_id: _dag(each, place.environment, pin, retry_delay) for each in shown}


def _dag(shown: ShownDag, environment: str, pin: Pin, retry_delay: timedelta | None) -> DAG:
    dag = DAG(
        dag_id=shown.dag_id,
        schedule=None,
        catchup=False,
        max_active_runs=1,
        # Nothing starts it but a person or a caller: paused, it would only keep what they triggered waiting.
        is_paused_upon_creation=False,
        tags=["dpone", environment, shown.constituent],
        doc_md=_doc(shown, environment, pin),
    )
    tasks = {task.task_id: _task(dag, task, pin, retry_delay) for task in shown.tasks}
    for up, down in shown.edges:
        tasks[up].set_downstream(tasks[down])
    return dag


def _task(dag: DAG, shown: ShownTask, pin: Pin, retry_delay: timedelta | None) -> DponeWorkloadOperator:
    operator = DponeDbtOperator if shown.operator == "dbt" else DponeTransferOperator
    delay = {} if retry_delay is None else {"retry_delay": retry_delay}
    return operator(
        dag=dag,
        task_id=shown.task_id,
        occurrence_id=pin.occurrence_id,
        deployment_id=pin.deployment_id,
        workload_id=shown.workload_id,
        retries=shown.retries,
        **delay,
    )


def _doc(shown: ShownDag, environment: str, pin: Pin) -> str:
    """Say what the DAG shows. That makes two occurrences different DAGs to Airflow even where their tasks are the same;
    else it would take the later one for the earlier and move the earlier one's version on (``SerializedDagModel``)."""
    workloads = "\n".join(f"| {task.task_id} | {task.workload_id} | {task.operator} |" for task in shown.tasks)
    return f"""\
Triggered explicitly: this DAG has no schedule.

| | |
|---|---|
| environment | {environment} |
| deployment | {pin.deployment_id} |
| release | {shown.release_id} |
| occurrence | {pin.occurrence_id} |
| generation | {pin.generation} |

| task | workload | kind |
|---|---|---|
{workloads}
"""
