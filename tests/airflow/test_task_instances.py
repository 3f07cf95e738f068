"""Whether a task instance can still act: asked from Airflow's database, and from inside a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import pytest

from dpone_provider.adapters.airflow_metadata.task_instances import CAN_ACT, AirflowTaskInstances
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AirflowTry, Digest, OccurrenceId
from dpone_provider.domain.outcomes import Unknown
from tests.airflow.deployments import DiskCache, built
from tests.airflow.fakes import Outcome, ScriptedRuntime, ended

pytestmark = pytest.mark.usefixtures("airflow_home")

Asked = Callable[[AirflowTry], bool | Unknown]
ALIVE = AirflowTaskInstances().alive


@dataclass(slots=True)
class AskingRuntime:
    """Asks about other tries while it runs in the task's process; ``about`` makes them from its own."""

    about: Callable[[AirflowTry], dict[str, AirflowTry]]
    answers: dict[str, bool | Unknown] = field(default_factory=dict)
    tries: list[AirflowTry] = field(default_factory=list)

    def run_workload(
        self, occurrence_id: OccurrenceId, deployment_id: Digest, workload_id: str, tried: AirflowTry
    ) -> Outcome:
        self.tries.append(tried)
        self.answers |= {name: ALIVE(other) for name, other in self.about(tried).items()}
        runtime = ScriptedRuntime([ended(AttemptState.SUCCEEDED)])
        return runtime.run_workload(occurrence_id, deployment_id, workload_id, tried)


def run(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, name: str, about: Callable[[AirflowTry], dict[str, AirflowTry]]
) -> AskingRuntime:
    from dpone_provider.airflow import operators
    from dpone_provider.airflow.configuration import cache_place
    from dpone_provider.airflow.loader import load_dags

    runtime = AskingRuntime(about)
    monkeypatch.setattr(operators, "open_runtime", lambda told: runtime)
    cache.point(built(tasks=2, name=name))
    (dag,) = load_dags(cache_place()).values()
    assert str(dag.test().state) == "success"
    return runtime


def put(state: str | None, task_instance_id: UUID) -> None:
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        session.execute(update(TaskInstance).where(TaskInstance.id == task_instance_id).values(state=state))


def test_every_state_of_airflow_is_decided(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.utils.state import TaskInstanceState

    tried = run(cache, monkeypatch, "states", lambda _: {}).tries[0]
    assert {str(state) for state in TaskInstanceState} > CAN_ACT
    found = {}
    for state in (None, *map(str, TaskInstanceState)):
        put(state, tried.task_instance_id)
        found[state] = ALIVE(tried)
    assert {state for state, alive in found.items() if alive} == CAN_ACT


def test_another_id_in_its_place_means_dead(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = run(cache, monkeypatch, "replaced", lambda _: {}).tries[0]
    put("running", tried.task_instance_id)
    assert ALIVE(tried) is True
    assert ALIVE(replace(tried, task_instance_id=uuid4())) is False
    assert ALIVE(replace(tried, run_id="deleted", task_instance_id=uuid4())) is False


def test_a_dag_that_this_airflow_never_saw_is_not_called_dead() -> None:
    tried = AirflowTry(
        dag_id="elsewhere.dag", run_id="r", task_id="t", map_index=-1, try_number=1, task_instance_id=uuid4()
    )
    found = ALIVE(tried)
    assert isinstance(found, Unknown)
    assert "elsewhere.dag" in found.problem.found
    assert "dpone recover --attempt" in found.problem.next_command


def test_a_database_that_cannot_be_read_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow import settings
    from sqlalchemy import create_engine
    from sqlalchemy.orm import sessionmaker

    tried = AirflowTry(dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=1, task_instance_id=uuid4())
    monkeypatch.setattr(settings, "Session", sessionmaker(create_engine("sqlite:////nonexistent/airflow.db")))
    found = ALIVE(tried)
    assert isinstance(found, Unknown)
    assert found.problem.found == "the metadata database did not answer (OperationalError)"
    monkeypatch.setattr(settings, "Session", None)
    assert isinstance(ALIVE(tried), Unknown)


def test_inside_a_task_the_supervisor_is_asked(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def about(tried: AirflowTry) -> dict[str, AirflowTry]:
        return {
            f"{tried.task_id}: itself": tried,
            f"{tried.task_id}: the other": replace(
                tried, task_id="t000_0001" if tried.task_id == "t000_0000" else "t000_0000"
            ),
            f"{tried.task_id}: an earlier try of itself": replace(tried, task_instance_id=uuid4()),
            f"{tried.task_id}: another run": replace(tried, run_id="never"),
            f"{tried.task_id}: another map index": replace(tried, map_index=3),
            f"{tried.task_id}: another DAG": replace(tried, dag_id="elsewhere.dag"),
        }

    answers = run(cache, monkeypatch, "inside", about).answers
    for task_id in ("t000_0000", "t000_0001"):
        assert answers[f"{task_id}: itself"] is True
        assert answers[f"{task_id}: the other"] is False  # not started yet, and ended
        # The supervisor knows no ids: while the task runs, no try of it is called dead.
        assert answers[f"{task_id}: an earlier try of itself"] is True
        assert answers[f"{task_id}: another run"] is False
        assert answers[f"{task_id}: another map index"] is False
        assert isinstance(answers[f"{task_id}: another DAG"], Unknown)


def test_inside_a_task_the_database_is_not_touched(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpone_provider.adapters.airflow_metadata import task_instances

    def forbidden(tried: AirflowTry) -> Unknown:
        raise AssertionError("a task's process reached for the metadata database")

    monkeypatch.setattr(task_instances, "_by_database", forbidden)
    assert run(cache, monkeypatch, "supervised", lambda tried: {"itself": tried}).answers == {"itself": True}
