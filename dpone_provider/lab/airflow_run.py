"""A real Airflow while a block of code runs: scheduler with LocalExecutor, DAG processor, API server, SQLite.

This is the smallest set that is a real scheduler in Airflow 3: tasks report to the execution API, which only the API
server has, and DAGs reach the scheduler through the DAG processor. No triggerer, because nothing here is deferred.
Each process has a guard of its own (adapters/process), which ends everything that it started when we end, however we
end.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.process import ChildCommand, ChildProcess
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import Failed, fail, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.airflow_api import AirflowApi
from dpone_provider.lab.airflow_home import AirflowHome
from dpone_provider.lab.ports import free_port
from dpone_provider.lab.processes import tail

MIGRATE = ("db", "migrate")
PROCESSES: Mapping[str, Sequence[str]] = {
    "api-server": ("api-server", "--apps", "core,execution"),
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
}
MIGRATE_SECONDS = 120.0
READY_SECONDS = 120.0
LONGEST_SECONDS = 12 * 3600.0
STOP_GRACE_SECONDS = 1.0
"""Between SIGTERM and SIGKILL: nothing of it is needed afterwards but its logs, which are written by then."""
HEALTHY = ("metadatabase", "scheduler", "dag_processor")


def prepare(home: AirflowHome) -> None:
    """Make the metadata database, where it is not there yet: about ten seconds, which need no engine.

    Raises:
        DponeError: Airflow could not make it.
    """
    home.make()
    if home.is_migrated():
        return
    with _started("migrate", MIGRATE, home, _environment(home, 0, {}), MIGRATE_SECONDS) as process:
        for _ in process.events():
            pass
        if process.exit_code() != 0:
            unwind(_ended("airflow db migrate", home.logs / "migrate.log"))
    home.set_migrated()


@contextmanager
def airflow_running(
    root: Path, product: Mapping[str, str], *, told: Callable[[str], None] = lambda _: None
) -> Iterator[AirflowApi]:
    """Run Airflow with its home at ``root`` while the block runs; nothing of it runs afterwards.

    ``product``: the variables that our code reads in Airflow's processes (``DPONE_…``, and those that credential
    references name). The home stays, with logs and database: running it again there takes up the same Airflow.

    Raises:
        DponeError: a process of it ended, or it was not ready within two minutes.
    """
    home = AirflowHome(root.resolve())
    told("making Airflow's database")
    prepare(home)
    password = home.make()
    port = free_port()
    environment = _environment(home, port, product)
    with ExitStack() as stack:
        told("starting Airflow")
        running: dict[str, ChildProcess] = {}
        for name, arguments in PROCESSES.items():
            running[name] = stack.enter_context(_started(name, arguments, home, environment, LONGEST_SECONDS))
            stack.callback(stop_together, running)
        api = AirflowApi(port, password, partial(_require_alive, running, home))
        _wait_until_ready(api)
        yield api


def _wait_until_ready(api: AirflowApi) -> None:
    api.until(lambda: api.health(), what="the API server to answer", seconds=READY_SECONDS)
    api.until(lambda: api.warm() or None, what="the execution API to answer", seconds=READY_SECONDS)

    def ready() -> bool | None:
        health = api.health() or {}
        return all((health.get(part) or {}).get("status") == "healthy" for part in HEALTHY) or None

    api.until(ready, what="scheduler and DAG processor to be healthy", seconds=READY_SECONDS)


@dataclass(frozen=True, slots=True)
class _Environment:
    """What a process gets: variables that anybody may read, and secrets."""

    plain: Mapping[str, str]
    secret: Mapping[str, Secret]


def _environment(home: AirflowHome, port: int, product: Mapping[str, str]) -> _Environment:
    jwt = Secret(secrets.token_hex(32))
    return _Environment(home.variables(port, product), {"AIRFLOW__API_AUTH__JWT_SECRET": jwt})


@contextmanager
def _started(
    name: str, arguments: Sequence[str], home: AirflowHome, environment: _Environment, seconds: float
) -> Iterator[ChildProcess]:
    with (home.logs / f"{name}.log").open("a", encoding="utf-8", buffering=1) as log:
        command = ChildCommand(
            argv=(sys.executable, "-m", "airflow", *arguments),
            environment=environment.plain,
            secret_environment=environment.secret,
            standard_input=None,
            directory=home.root,
        )
        with GuardedChildren(partial(_write, log)).start(command, Deadline.after(SystemClock(), seconds)) as process:
            yield process


def stop_together(running: Mapping[str, ChildProcess]) -> None:
    """Ask all of them to end at once: one after the other, each would take its own grace."""
    with ThreadPoolExecutor(len(running)) as pool:
        for stopped in [pool.submit(process.stop, STOP_GRACE_SECONDS) for process in running.values()]:
            stopped.result()


def _write(log: TextIO, line: str) -> None:
    log.write(line + "\n")


def _require_alive(running: Mapping[str, ChildProcess], home: AirflowHome) -> None:
    for name, process in running.items():
        if process.exit_code() is not None:
            unwind(_ended(f"airflow {name}", home.logs / f"{name}.log"))


def _ended(what: str, log: Path) -> Failed:
    return fail(
        "airflow_process_ended",
        what,
        found=f"it ended; its log ends: {tail(log)}",
        allowed="a process of Airflow that does its work",
        next_command=f"read {log}",
    )
