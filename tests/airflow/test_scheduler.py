"""A real Airflow: DAGs reach the scheduler through the bundle, runs keep their deployment, nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpone_provider.domain.secret import Secret
from dpone_provider.lab.airflow_api import AirflowApi
from dpone_provider.lab.airflow_home import USER, AirflowHome
from dpone_provider.lab.processes import package_path
from tests.airflow.deployments import ENVIRONMENT, DiskCache, built
from tests.waiting import wait_until

pytestmark = [pytest.mark.scheduler, pytest.mark.timeout(300)]

HOLDER = """
import json, sys
from pathlib import Path
from dpone_provider.lab.airflow_run import airflow_running
with airflow_running(Path(sys.argv[1]), json.loads(sys.argv[2])) as api:
    print(api.port, flush=True)
    sys.stdin.read()
"""
SECONDS = 60.0


@contextmanager
def held(home: AirflowHome, cache: DiskCache) -> Iterator[tuple[subprocess.Popen[str], AirflowApi]]:
    """Airflow, held by a process of its own that ends it when its input ends."""
    product = {
        "DPONE_CACHE_ROOT": str(cache.root),
        "DPONE_ENVIRONMENT": ENVIRONMENT,
        "DPONE_AUTHORITY_CONNECTION_REF": "env:NO_SUCH_AUTHORITY",
    }
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home.root), json.dumps(product)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | package_path(),
        start_new_session=True,
    ) as holder:
        assert holder.stdout is not None
        try:
            port = int(holder.stdout.readline())
            password = json.loads(home.passwords.read_text())[USER]
            yield holder, AirflowApi(port, Secret(password), lambda: None)
        finally:
            holder.kill()


def living(home: AirflowHome) -> list[int]:
    """The processes that were started in the home, as far as we may look."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                inside = (process / "cwd").readlink().is_relative_to(home.root)
            except OSError:
                continue
            if inside:
                found.append(int(process.name))
    return found


def test_a_scheduler_runs_what_is_current_and_a_run_keeps_what_it_began_with(tmp_path: Path) -> None:
    home = AirflowHome(tmp_path / "airflow")
    cache = DiskCache(root=tmp_path / "cache", sources=tmp_path / "sources")
    cache.point(built(tasks=2, retries=3, name="sales"))
    with held(home, cache) as (holder, api):
        dag_id = "sales.dag000"
        api.wait_for_dags([dag_id], generation=1, seconds=SECONDS)
        first = str(api.dags()[dag_id])

        # No authority can be reached by that reference: refused, so that no retry is burnt.
        run = api.trigger(dag_id)
        assert api.wait(run, seconds=SECONDS) == "failed"
        tasks = api.task_states(run)
        assert (tasks["t000_0000"].state, tasks["t000_0000"].try_number) == ("failed", 1)
        assert tasks["t000_0001"].state == "upstream_failed"
        log = api.logs(run, "t000_0000")
        assert "credential_missing" in log
        assert first in log

        cache.point(built(tasks=3, retries=0, name="sales"), generation=2)
        api.wait_for_dags([dag_id], generation=2, seconds=SECONDS)
        second = str(api.dags()[dag_id])

        api.clear(run, "t000_0000")
        again = api.until(
            lambda: True if api.task_states(run)["t000_0000"].try_number == 2 else None, what="try 2", seconds=SECONDS
        )
        assert again
        assert api.wait(run, seconds=SECONDS) == "failed"
        assert first in api.logs(run, "t000_0000", 2)

        new = api.trigger(dag_id)
        assert api.wait(new, seconds=SECONDS) == "failed"
        assert sorted(api.task_states(new)) == ["t000_0000", "t000_0001", "t000_0002"]
        assert second in api.logs(new, "t000_0000")

        (cache.root / "current" / f"{ENVIRONMENT}.json").write_text("{}")
        (error,) = api.until(lambda: api.import_errors() or None, what="the import error", seconds=SECONDS)
        assert "Next: " in error

        assert len(living(home)) >= 7
        holder.send_signal(signal.SIGKILL)
        wait_until(lambda: not living(home), what="the end of every process of Airflow")
