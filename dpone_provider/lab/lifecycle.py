"""Start a lab.

``up`` leaves it running behind the command, ``running`` ties it to a block of the caller's code; ``postgres_only`` and
``clickhouse_only`` are the smallest labs, for tests. All start the same supervisor and differ in what they do once it
has answered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab import clickhouse_provisioning, provisioning
from dpone_provider.lab.account import engine_account
from dpone_provider.lab.admin import ADMIN, postgres_url
from dpone_provider.lab.clickhouse_program import find_program
from dpone_provider.lab.clickhouse_provisioning import ClickhousePlan
from dpone_provider.lab.clickhouse_users import ClickhouseUser
from dpone_provider.lab.condition import claimed, status, sweep
from dpone_provider.lab.flights import load_flights
from dpone_provider.lab.held import Held, held
from dpone_provider.lab.places import Places, places_for
from dpone_provider.lab.ports import LOOPBACK
from dpone_provider.lab.state import (
    EngineState,
    GivenState,
    LabState,
    write_credentials,
    write_pool,
    write_state,
)
from dpone_provider.lab.supervisor import Job

if TYPE_CHECKING:
    from dpone_provider.lab.mssql.given import GivenServer

Progress = Callable[[str], None]


def silent(message: str) -> None:
    """Take a progress message and say nothing."""


def up(root: Path, *, given: GivenServer | None = None, progress: Progress = silent) -> LabState:
    """Start the lab at ``root`` with its source data and leave it running; a running one is returned as it is.

    ``given``: a SQL Server that shall be warehouse and authority in the place of the lab's PostgreSQL.

    Raises:
        DponeError: busy (it is starting or ending), refused (a package is missing, the given server lacks something, a
            lab with another warehouse is up), failed (an engine did not start; nothing of it is left running).
    """
    found = status(root)
    if found.state is not None:
        _require_same_warehouse(found.state, given)
        progress(f"the lab at {found.root} is already up")
        return found.state
    with _started(root, progress, given) as (lab, state):
        progress("loading the flights of New York 2013")
        load_flights(state)
        # Only now: whoever finds a state document finds a lab that is ready.
        write_state(state)
        lab.detach()
    return state


@contextmanager
def running(root: Path, *, given: GivenServer | None = None, progress: Progress = silent) -> Iterator[LabState]:
    """Run a whole lab, without its source data, while the block runs; nothing of it is left afterwards.

    ``given``: as for ``up``.

    Raises:
        DponeError: as ``up``; busy also when a lab is up there.
    """
    with _started(root, progress, given) as (_, state):
        write_state(state)
        yield state
    sweep(places_for(root, engine_account()))


@contextmanager
def postgres_only(root: Path) -> Iterator[LabState]:
    """Run a bare PostgreSQL with the lab's roles while the block runs (0.9 s to start).

    Its credentials are ``postgres_admin``, ``dpone_controller``, ``shop_reader`` and ``warehouse_reader``, each for the
    database ``postgres``.
    """
    password = provisioning.new_secret()
    with claimed(root) as (places, lock):
        job = Job(places=places, starter=os.getpid(), postgres_password=password)
        with held(job, lock) as lab:
            postgres = _postgres_state(lab, password)
            write_credentials(places.credentials, provisioning.provision_roles(postgres, password))
            state = _state(places, lab, postgres=postgres, clickhouse=None)
            write_state(state)
            yield state
    sweep(places)


@contextmanager
def clickhouse_only(root: Path, *, extra: Sequence[ClickhouseUser] = ()) -> Iterator[LabState]:
    """Run the lab's ClickHouse alone while the block runs (0.6 s to start), with ``extra`` users of a test's own."""
    plan = clickhouse_provisioning.new_plan(find_program(engine_account(), os.environ), extra=extra)
    with claimed(root) as (places, lock):
        job = Job(places=places, starter=os.getpid(), clickhouse=plan.job())
        with held(job, lock) as lab:
            state = _state(places, lab, postgres=None, clickhouse=_provisioned_clickhouse(places, lab, plan))
            write_state(state)
            yield state
    sweep(places)


@contextmanager
def _started(root: Path, progress: Progress, given: GivenServer | None) -> Iterator[tuple[Held, LabState]]:
    # Before anything is started or made.
    version = None if given is None else _version_of(given, progress)
    account = engine_account()
    plan = clickhouse_provisioning.new_plan(find_program(account, os.environ))
    password = provisioning.new_secret()
    with claimed(root) as (places, lock):
        job = Job(places=places, starter=os.getpid(), postgres_password=password, clickhouse=plan.job())
        progress("starting PostgreSQL and ClickHouse")
        with held(job, lock) as lab:
            progress("making databases and roles")
            postgres = _postgres_state(lab, password)
            write_credentials(places.credentials, provisioning.provision(postgres, password))
            clickhouse = _provisioned_clickhouse(places, lab, plan)
            state = _state(places, lab, postgres=postgres, clickhouse=clickhouse)
            if given is None or version is None:
                yield lab, state
            else:
                progress(f"making databases and logins on {given.address}")
                yield lab, replace(state, mssql=_made_on(given, version, places))


def _version_of(given: GivenServer, progress: Progress) -> str:
    from dpone_provider.lab.mssql.fitness import require_fit

    progress(f"asking {given.address} for what the lab needs of it")
    return require_fit(given)


def _made_on(given: GivenServer, version: str, places: Places) -> GivenState:
    from dpone_provider.lab.mssql.making import make

    names, credentials = make(given, places.given)
    # They take the places of those of the PostgreSQL database that is the warehouse otherwise.
    write_credentials(places.credentials, credentials)
    at = given.endpoint
    return GivenState(host=at.host, port=at.port, tls=at.tls.value, version=version, **asdict(names))


def _require_same_warehouse(state: LabState, given: GivenServer | None) -> None:
    up_with = None if state.mssql is None else (state.mssql.host, state.mssql.port)
    asked = None if given is None else (given.endpoint.host, given.endpoint.port)
    if up_with != asked:
        unwind(
            refuse(
                "lab_with_another_warehouse",
                str(state.root),
                found=f"a lab with {_in_words(up_with)}",
                allowed=f"one with {_in_words(asked)}",
                next_command="dpone lab down, then the same command again",
            )
        )


def _in_words(at: tuple[str, int] | None) -> str:
    return "PostgreSQL of its own as warehouse" if at is None else f"SQL Server {at[0]}:{at[1]} as warehouse"


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


def _state(places: Places, lab: Held, *, postgres: EngineState | None, clickhouse: EngineState | None) -> LabState:
    return LabState(
        root=places.root,
        supervisor_pid=lab.process.pid,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        postgres=postgres,
        clickhouse=clickhouse,
    )
