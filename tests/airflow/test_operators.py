"""The operators inside Airflow: whole DAG runs by `dag.test()`, with a runtime that comes to what the test says."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dpone_provider.adapters.process.dumpable import PR_SET_DUMPABLE, inspection_forbidden
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AirflowTry, Digest, OccurrenceId
from dpone_provider.domain.outcomes import Busy, DponeError, Failed, Problem, Refused, Unknown
from tests.airflow.deployments import OCCURRENCES, Built, DiskCache, built
from tests.airflow.fakes import Behaviour, Outcome, ScriptedRuntime, ended, instead

pytestmark = pytest.mark.usefixtures("airflow_home")

PROBLEM = Problem(reason="some_reason", subject="s", found="f", allowed="a", next_command="dpone status")
SLOTS_IN_USE = Problem(reason="slots_in_use", subject="s", found="f", allowed="a", next_command="wait")
SUCCEEDED = ended(AttemptState.SUCCEEDED)


@dataclass(slots=True)
class Ran:
    """What a DAG run came to."""

    state: str
    tasks: dict[str, str]
    returned: dict[str, Any]
    runtime: ScriptedRuntime

    @property
    def tries(self) -> list[int]:
        return [binding.airflow.try_number for binding in self.runtime.tries]


@pytest.fixture
def run(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the only DAG of a deployment, its tasks coming to the given outcomes one after the other."""

    def running(deployment: Built, *outcomes: Behaviour) -> Ran:
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        from dpone_provider.airflow import operators
        from dpone_provider.airflow.configuration import cache_place
        from dpone_provider.airflow.loader import load_dags

        runtime = ScriptedRuntime(outcomes)
        monkeypatch.setattr(operators, "open_runtime", lambda told: runtime)
        cache.point(deployment)
        (dag,) = load_dags(cache_place()).values()
        dag_run = dag.test()
        with create_session() as session:
            tasks = {one.task_id: str(one.state) for one in dag_run.get_task_instances(session=session)}
            xcoms = session.scalars(select(XComModel).where(XComModel.run_id == dag_run.run_id))
            returned = {one.task_id: XComModel.deserialize_value(one) for one in xcoms}
        return Ran(state=str(dag_run.state), tasks=tasks, returned=returned, runtime=runtime)

    return running


def test_a_run_executes_each_task_in_order_and_leaves_figures(run: Callable[..., Ran]) -> None:
    ran = run(built(tasks=2, name="plain"), SUCCEEDED)
    assert ran.state == "success"
    asked = [(one.workload_id, one.occurrence_id, one.airflow.task_id) for one in ran.runtime.tries]
    assert asked == [
        ("ordinary.t000_0000", OCCURRENCES[0], "t000_0000"),
        ("ordinary.t000_0001", OCCURRENCES[0], "t000_0001"),
    ]
    first = ran.runtime.tries[0]
    assert ran.returned["t000_0000"] == {
        "attempt_id": first.attempt_id,
        "state": "SUCCEEDED",
        "followed": False,
        "metrics": {"rows": 12, "content_digest": "sha256:" + "0" * 64},
    }


def test_the_try_is_airflows_own(run: Callable[..., Ran]) -> None:
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    ran = run(built(tasks=1, name="try"), SUCCEEDED)
    tried = ran.runtime.tries[0].airflow
    with create_session() as session:
        row = session.scalars(select(TaskInstance).where(TaskInstance.id == tried.task_instance_id)).one()
        assert (row.dag_id, row.run_id, row.task_id) == (tried.dag_id, tried.run_id, tried.task_id)
        assert (row.map_index, row.try_number) == (tried.map_index, tried.try_number) == (-1, 1)


@pytest.mark.parametrize(
    "behaviour",
    [instead(Refused(PROBLEM)), instead(Unknown(PROBLEM)), ended(AttemptState.COMMIT_UNKNOWN, Unknown(PROBLEM))],
    ids=["refused", "unknown", "commit_unknown"],
)
def test_refused_and_unknown_burn_no_retry(
    run: Callable[..., Ran], behaviour: Behaviour, request: pytest.FixtureRequest
) -> None:
    ran = run(built(tasks=2, retries=2, name=f"final_{request.node.callspec.id}"), behaviour)
    assert ran.state == "failed"
    assert ran.tasks == {"t000_0000": "failed", "t000_0001": "upstream_failed"}
    assert ran.tries == [1]
    assert ran.returned == {}


def test_a_failure_is_tried_again_as_another_task_instance(run: Callable[..., Ran]) -> None:
    failed = ended(AttemptState.FAILED, Failed(PROBLEM))
    ran = run(built(tasks=1, retries=2, name="again"), failed, failed, SUCCEEDED)
    assert ran.state == "success"
    assert ran.tries == [1, 2, 3]
    assert len({one.airflow.task_instance_id for one in ran.runtime.tries}) == 3
    assert len({one.attempt_id for one in ran.runtime.tries}) == 3
    assert len({one.airflow.task_key for one in ran.runtime.tries}) == 1


def test_busy_waits_as_the_same_try_of_the_same_task_instance(run: Callable[..., Ran]) -> None:
    busy = instead(Busy(SLOTS_IN_USE, "somebody"))
    ran = run(built(tasks=1, retries=0, name="busy"), busy, busy, SUCCEEDED)
    assert ran.state == "success"
    assert ran.tries == [1, 1, 1]
    assert len({one.attempt_id for one in ran.runtime.tries}) == 1


def test_busy_waits_no_longer_than_it_is_allowed(run: Callable[..., Ran]) -> None:
    ran = run(built(tasks=1, retries=0, name="too_busy"), instead(Busy(SLOTS_IN_USE, "somebody")))
    assert ran.state == "failed"
    assert ran.tries == [1, 1, 1]


def test_a_redelivered_attempt_succeeds_with_its_winner(run: Callable[..., Ran]) -> None:
    ran = run(built(tasks=1, name="followed"), ended(AttemptState.SUCCEEDED, followed=True))
    assert ran.state == "success"
    assert ran.returned["t000_0000"]["followed"] is True


@dataclass(slots=True)
class StoppedRuntime:
    """Is told to end by SIGTERM while it executes, and closes the attempt on the way out, as the runner does.

    ``sealed`` is what the front door finds then.
    """

    sealed: AttemptState
    closed: list[AirflowTry] = field(default_factory=list)

    def run_workload(
        self, occurrence_id: OccurrenceId, deployment_id: Digest, workload_id: str, tried: AirflowTry
    ) -> Outcome:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError("SIGTERM did not unwind the execution")
        except DponeError as error:
            os.kill(os.getpid(), signal.SIGTERM)  # a second one changes nothing
            self.closed.append(tried)
            problem = None if self.sealed is AttemptState.SUCCEEDED else error.failure
            scripted = ScriptedRuntime([ended(self.sealed, problem)])
            return scripted.run_workload(occurrence_id, deployment_id, workload_id, tried)


@pytest.mark.parametrize(
    ("sealed", "state", "tries"),
    [(AttemptState.FAILED, "failed", 2), (AttemptState.SUCCEEDED, "success", 1)],
    ids=["stopped", "already_committed"],
)
def test_a_signal_to_end_unwinds_the_execution_and_the_attempt_is_closed(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, sealed: AttemptState, state: str, tries: int
) -> None:
    from dpone_provider.airflow import operators
    from dpone_provider.airflow.configuration import cache_place
    from dpone_provider.airflow.loader import load_dags

    runtime = StoppedRuntime(sealed)
    monkeypatch.setattr(operators, "open_runtime", lambda told: runtime)
    cache.point(built(tasks=1, retries=1, name=f"signal_{sealed.lower()}"))
    (dag,) = load_dags(cache_place()).values()
    before = signal.getsignal(signal.SIGTERM)
    try:
        dag_run = dag.test()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert str(dag_run.state) == state
    assert [tried.try_number for tried in runtime.closed] == list(range(1, tries + 1))


@dataclass(slots=True)
class WorkingRuntime:
    """Runs a child that ignores SIGTERM, and is told to end a moment after the child has begun."""

    left_after: float = 0.0
    exit_code: int | None = None

    def run_workload(
        self, occurrence_id: OccurrenceId, deployment_id: Digest, workload_id: str, tried: AirflowTry
    ) -> Outcome:
        program = "import os, signal, time; signal.signal(15, signal.SIG_IGN);"
        program += "os.write(int(os.environ['DPONE_EVENTS_FD']), b'{}\\n'); time.sleep(600)"
        command = ChildCommand(
            argv=(sys.executable, "-c", program),
            environment={},
            secret_environment={},
            standard_input=None,
            directory=Path("/"),
        )
        told_at = 0.0
        try:
            with GuardedChildren().start(command, Deadline.after(SystemClock(), 600)) as child:
                events = child.events()
                next(events)
                told_at = time.monotonic()
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
                for _ in events:
                    raise AssertionError("the child ended by itself")
        except DponeError as error:
            self.left_after, self.exit_code = time.monotonic() - told_at, child.exit_code()
            return error.failure
        raise AssertionError("SIGTERM did not unwind the execution")


def test_a_signal_to_end_leaves_no_child_within_the_five_seconds_of_airflow(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpone_provider.airflow import operators
    from dpone_provider.airflow.configuration import cache_place
    from dpone_provider.airflow.loader import load_dags

    runtime = WorkingRuntime()
    monkeypatch.setattr(operators, "open_runtime", lambda told: runtime)
    cache.point(built(tasks=1, retries=0, name="working"))
    (dag,) = load_dags(cache_place()).values()
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert str(dag.test().state) == "failed"
    finally:
        signal.signal(signal.SIGTERM, before)
    assert runtime.exit_code == -signal.SIGKILL
    assert runtime.left_after < 5.0


def test_missing_settings_fail_for_good(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpone_provider.airflow.configuration import cache_place
    from dpone_provider.airflow.loader import load_dags

    cache.point(built(tasks=1, retries=3, name="unset"))
    (dag,) = load_dags(cache_place()).values()
    dag.test(run_conf={})  # the authority's reference names a variable that is not set
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        row = session.scalars(select(TaskInstance).where(TaskInstance.dag_id == "unset.dag000")).one()
        assert (str(row.state), row.try_number) == ("failed", 1)


def test_nobody_may_look_into_a_task_once_it_knows_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, since it is for good: it is so before the first reference is resolved."""
    from dpone_provider.adapters.secrets.references import ReferencedCredentials
    from dpone_provider.airflow.operators import open_runtime

    seen: list[bool] = []
    resolve = ReferencedCredentials.resolve

    def resolving(credentials: ReferencedCredentials, reference: str) -> object:
        seen.append(inspection_forbidden())
        return resolve(credentials, reference)

    def task() -> object:
        # Another test of this process may have forbidden it.
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
        before = inspection_forbidden()
        with pytest.raises(DponeError) as caught:
            open_runtime(print)
        return caught.value.failure.problem.reason, before, seen

    monkeypatch.setattr(ReferencedCredentials, "resolve", resolving)
    assert in_a_fork(task) == ["credential_missing", False, [True]]


def in_a_fork(act: Callable[[], object]) -> object:
    """Do something in a copy of this process, and return what it came to."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writable, json.dumps(act()).encode())
        finally:
            os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as answer:
        said = answer.read()
    os.waitpid(pid, 0)
    return json.loads(said)
