"""Start, look at and end a lab.

``up`` leaves it running behind the command, ``running`` ties it to a block of the caller's code; ``postgres_only`` and
``clickhouse_only`` are the smallest labs, for tests. All start the same supervisor and differ in what they do once it
has answered.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Never

from dpone_provider.domain.outcomes import busy, fail, refuse, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab import clickhouse_provisioning, provisioning
from dpone_provider.lab.account import engine_account
from dpone_provider.lab.admin import ADMIN, postgres_url
from dpone_provider.lab.clickhouse_program import find_program
from dpone_provider.lab.clickhouse_provisioning import ClickhousePlan
from dpone_provider.lab.clickhouse_users import ClickhouseUser
from dpone_provider.lab.flights import load_flights
from dpone_provider.lab.held import Held, held
from dpone_provider.lab.places import Places, discard, discard_logs, places_for, prepare
from dpone_provider.lab.ports import LOOPBACK
from dpone_provider.lab.processes import holders, runs_module, take_lock
from dpone_provider.lab.state import (
    EngineState,
    LabState,
    parse_state,
    write_credentials,
    write_pool,
    write_state,
)
from dpone_provider.lab.supervisor import Job

Progress = Callable[[str], None]
SUPERVISOR = "dpone_provider.lab.supervisor"
GLANCE_SECONDS = 0.5
END_SECONDS = 30.0
KILL_SECONDS = 10.0


class LabCondition(StrEnum):
    """What a lab's directory tells. ``dead`` left files behind; the next ``up`` or ``down`` removes them."""

    DOWN = "down"
    STARTING = "starting or ending"
    UP = "up"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabStatus:
    """A lab's condition, and its state document when it is up."""

    root: Path
    condition: LabCondition
    state: LabState | None = None


def silent(message: str) -> None:
    """Take a progress message and say nothing."""


def up(root: Path, *, progress: Progress = silent) -> LabState:
    """Start the lab at ``root`` with its source data and leave it running; a running one is returned as it is.

    Raises:
        DponeError: busy (it is starting or ending), refused (a package is missing), failed (an engine did not start;
            nothing of it is left running).
    """
    found = status(root)
    if found.state is not None:
        progress(f"the lab at {found.root} is already up")
        return found.state
    with _started(root, progress) as (lab, state):
        progress("loading the flights of New York 2013")
        load_flights(state)
        lab.detach()
    return state


@contextmanager
def running(root: Path, *, progress: Progress = silent) -> Iterator[LabState]:
    """Run a whole lab, without its source data, while the block runs; nothing of it is left afterwards.

    Raises:
        DponeError: as ``up``; busy also when a lab is up there.
    """
    with _started(root, progress) as (_, state):
        yield state
    sweep(places_for(root, engine_account()))


@contextmanager
def postgres_only(root: Path) -> Iterator[LabState]:
    """Run a bare PostgreSQL with the lab's roles while the block runs (0.9 s to start).

    Its credentials are ``postgres_admin``, ``dpone_controller``, ``shop_reader`` and ``warehouse_reader``, each for the
    database ``postgres``.
    """
    password = provisioning.new_secret()
    places, lock = claim(root)
    with held(Job(places=places, starter=os.getpid(), postgres_password=password), lock) as lab:
        postgres = _postgres_state(lab, password)
        write_credentials(places.credentials, provisioning.provision_roles(postgres, password))
        yield _written(places, lab, postgres=postgres, clickhouse=None)
    sweep(places)


@contextmanager
def clickhouse_only(root: Path, *, extra: Sequence[ClickhouseUser] = ()) -> Iterator[LabState]:
    """Run the lab's ClickHouse alone while the block runs (0.6 s to start), with ``extra`` users of a test's own."""
    plan = clickhouse_provisioning.new_plan(find_program(engine_account(), os.environ), extra=extra)
    places, lock = claim(root)
    with held(Job(places=places, starter=os.getpid(), clickhouse=plan.job()), lock) as lab:
        yield _written(places, lab, postgres=None, clickhouse=_provisioned_clickhouse(places, lab, plan))
    sweep(places)


def status(root: Path) -> LabStatus:
    """Return the condition of the lab at ``root``; changes nothing.

    Raises:
        DponeError: its state document cannot be read.
    """
    root = root.resolve()
    places = Places(root, root / "engines")
    if not places.lock.exists():
        return LabStatus(root=root, condition=LabCondition.DOWN)
    lock = take_lock(places.lock, seconds=0)
    if lock is not None:
        os.close(lock)
        condition = LabCondition.DEAD if places.credentials.exists() else LabCondition.DOWN
        return LabStatus(root=root, condition=condition)
    try:
        text = places.state.read_text()
    except FileNotFoundError:
        return LabStatus(root=root, condition=LabCondition.STARTING)
    return LabStatus(root=root, condition=LabCondition.UP, state=parse_state(text, path=places.state))


def read_state(root: Path) -> LabState:
    """Return the state of the lab that is up at ``root``.

    Raises:
        DponeError: none is up there.
    """
    found = status(root)
    if found.state is None:
        unwind(
            refuse(
                "lab_is_not_up",
                str(found.root),
                found=f"a lab that is {found.condition}",
                allowed="a lab that is up",
                next_command="dpone lab up",
            )
        )
    return found.state


def down(root: Path) -> bool:
    """End the lab at ``root`` and remove all of it; return False when there was nothing.

    Asks the supervisor first, which stops the engines in order; whatever still holds the lab's lock after
    ``END_SECONDS`` is killed.

    Raises:
        DponeError: a process outlived even that.
    """
    if not (root / "lab.lock").exists():
        return False
    places = places_for(root, engine_account())
    _signal([pid for pid in holders(places.lock) if runs_module(pid, SUPERVISOR)], signal.SIGTERM)
    if not sweep(places, seconds=END_SECONDS):
        _signal(holders(places.lock), signal.SIGKILL)
        if not sweep(places, seconds=KILL_SECONDS):
            _outlived(places)
    return True


def claim(root: Path) -> tuple[Places, int]:
    """Take the lock of the lab at ``root`` and clean up after a dead one; the descriptor holds the lock.

    Raises:
        DponeError: busy: a lab lives there.
    """
    account = engine_account()
    places = places_for(root, account)
    lock = take_lock(places.lock, seconds=GLANCE_SECONDS)
    if lock is None:
        unwind(
            busy(
                "lab_is_up",
                str(places.root),
                holder=f"process {', '.join(map(str, holders(places.lock))) or 'unknown'}",
                allowed="one lab per directory",
                next_command="dpone lab status; dpone lab down",
            )
        )
    prepare(places, account)
    return places, lock


def sweep(places: Places, *, seconds: float = GLANCE_SECONDS) -> bool:
    """Remove everything of a lab once none of its processes lives; False when one still does after ``seconds``."""
    lock = take_lock(places.lock, seconds=seconds)
    if lock is None:
        return False
    try:
        discard(places, engine_account())
        discard_logs(places)
        places.lock.unlink()
    finally:
        os.close(lock)
    return True


@contextmanager
def _started(root: Path, progress: Progress) -> Iterator[tuple[Held, LabState]]:
    account = engine_account()
    plan = clickhouse_provisioning.new_plan(find_program(account, os.environ))
    password = provisioning.new_secret()
    places, lock = claim(root)
    job = Job(places=places, starter=os.getpid(), postgres_password=password, clickhouse=plan.job())
    progress("starting PostgreSQL and ClickHouse")
    with held(job, lock) as lab:
        progress("making databases and roles")
        postgres = _postgres_state(lab, password)
        write_credentials(places.credentials, provisioning.provision(postgres, password))
        clickhouse = _provisioned_clickhouse(places, lab, plan)
        yield lab, _written(places, lab, postgres=postgres, clickhouse=clickhouse)


def _postgres_state(lab: Held, password: Secret) -> EngineState:
    told = lab.engines["postgres"]
    state = _engine_state(told, kind="embedded", version="unknown")
    admin_url = postgres_url(state, user=ADMIN, password=password, database="postgres")
    return _engine_state(told, kind="embedded", version=provisioning.server_version(admin_url))


def _provisioned_clickhouse(places: Places, lab: Held, plan: ClickhousePlan) -> EngineState:
    told = lab.engines["clickhouse"]
    version = clickhouse_provisioning.provision(plan, told["port"], places.engines / "clickhouse" / "users.xml")
    state = _engine_state(told, kind=plan.kind, version=version)
    write_credentials(places.credentials, clickhouse_provisioning.credentials(plan, state))
    if plan.pool:
        write_pool(places.credentials, plan.pool)
    return state


def _engine_state(told: dict[str, Any], *, kind: str, version: str) -> EngineState:
    return EngineState(
        kind=kind, host=LOOPBACK, port=told["port"], pid=told["pid"], version=version, facts=told["facts"]
    )


def _written(places: Places, lab: Held, *, postgres: EngineState | None, clickhouse: EngineState | None) -> LabState:
    state = LabState(
        root=places.root,
        supervisor_pid=lab.process.pid,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        postgres=postgres,
        clickhouse=clickhouse,
    )
    write_state(places.state, state)
    return state


def _signal(processes: Sequence[int], number: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _outlived(places: Places) -> Never:
    unwind(
        fail(
            "lab_outlived_its_end",
            str(places.root),
            found=f"processes {holders(places.lock)} still alive {KILL_SECONDS:.0f} s after SIGKILL",
            allowed="no process that holds the lab's lock",
            next_command="dpone lab down",
        )
    )
