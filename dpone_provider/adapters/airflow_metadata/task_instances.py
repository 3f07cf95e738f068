"""The ``TaskInstances`` port over Airflow 3.

A process of an operator or of the scheduler's machine reads Airflow's metadata database through Airflow's own models,
by the task instance's UUID. A task's process may not (Airflow 3 takes the database away from it) and asks the
supervisor that Airflow gave it. That one answers by DAG, run, task and map index, not by UUID, so it speaks of the
*newest* try: a state that cannot act proves every try dead, and one that can is taken as this try's. The error is on
the side of waiting, and only while a later try of the very same task lives, which ends the earlier one itself.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from dpone_provider.domain.identity import AirflowTry
from dpone_provider.domain.outcomes import Unknown, unknown

CAN_ACT: Final = frozenset({"queued", "running", "deferred", "restarting", "awaiting_input"})
"""States in which a process of this very task instance runs, or may still be started or resumed without another id.

Queued: an executor has it. Deferred and awaiting input: it comes back. Restarting: it was told to stop and may not have
heard it yet. Not among them: *scheduled*, *up for reschedule* and none (no executor has it; if it is delivered later,
its attempt id was spent and it only follows the row), *up for retry* (the next try gets a new UUID), and every end.
"""

SUPERVISED = "airflow.sdk.execution_time.task_runner"


class AirflowTaskInstances:
    """Asks whichever of the two this process may ask."""

    def alive(self, tried: AirflowTry) -> bool | Unknown:
        """Tell whether the task instance can still act; Unknown when Airflow cannot be asked, or knows no such DAG."""
        if getattr(sys.modules.get(SUPERVISED), "SUPERVISOR_COMMS", None) is not None:
            found = _by_supervisor(tried)
        else:
            found = _by_database(tried)
        return found if isinstance(found, Unknown) else found in CAN_ACT


def _by_database(tried: AirflowTry) -> str | Unknown | None:
    """Return the state of the row with this UUID, None when there is none (a later try or a clear has taken its place,
    or the run was deleted)."""
    try:
        from airflow.models.dag import DagModel
        from airflow.models.taskinstance import TaskInstance
        from airflow.utils.session import create_session
        from sqlalchemy import select
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        return _cannot_ask(tried, f"Airflow cannot be imported ({error.name})")
    try:
        with create_session() as session:
            state: str | None = session.scalar(
                select(TaskInstance.state).where(TaskInstance.id == tried.task_instance_id)
            )
            known = state is not None or session.get(DagModel, tried.dag_id) is not None
    except SQLAlchemyError as error:
        # Its text may hold the statement and the address; the kind says enough.
        return _cannot_ask(tried, f"the metadata database did not answer ({type(error).__name__})")
    except RuntimeError as error:
        return _cannot_ask(tried, str(error))
    return str(state) if state is not None else (None if known else _another_airflow(tried))


def _by_supervisor(tried: AirflowTry) -> str | Unknown | None:
    from airflow.sdk.api.client import ServerResponseError
    from airflow.sdk.exceptions import AirflowRuntimeError
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    try:
        by_run = RuntimeTaskInstance.get_task_states(
            dag_id=tried.dag_id, map_index=tried.map_index, task_ids=[tried.task_id], run_ids=[tried.run_id]
        )
        states: Mapping[str, Any] = by_run.get(tried.run_id, {})
        if not states and hasattr(RuntimeTaskInstance, "get_dag"):  # Airflow 3.3
            RuntimeTaskInstance.get_dag(tried.dag_id)
    # The second is what `dag.test()`, whose supervisor runs in the task's own process, lets through.
    except (AirflowRuntimeError, ServerResponseError) as error:
        return _cannot_ask(tried, f"Airflow's supervisor answered {type(error).__name__}: {error}")
    except (OSError, EOFError) as error:
        return _cannot_ask(tried, f"Airflow's supervisor did not answer ({type(error).__name__})")
    key = tried.task_id if tried.map_index < 0 else f"{tried.task_id}_{tried.map_index}"
    state = states.get(key)
    return None if state is None else str(state)


def _cannot_ask(tried: AirflowTry, found: str) -> Unknown:
    return unknown(
        "airflow_cannot_be_asked",
        f"task instance {tried.task_instance_id} ({tried.dag_id}.{tried.task_id}, run {tried.run_id})",
        found=found,
        allowed="an answer of the Airflow that ran it",
        next_command="run the command where Airflow's metadata database can be read (the scheduler's environment), or"
        " `dpone recover --attempt ID` if you know that the task is dead",
    )


def _another_airflow(tried: AirflowTry) -> Unknown:
    return _cannot_ask(tried, f"its metadata database has never seen DAG {tried.dag_id}: it is another Airflow's")
