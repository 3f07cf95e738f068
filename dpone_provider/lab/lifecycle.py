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
from dpone_provider.lab.condition import claimed, clear_dead, status, sweep
from dpone_provider.lab.flights import load_flights
from dpone_provider.lab.held import Held, held
from dpone_provider.lab.places import Places, places_for
from dpone_provider.lab.ports import LOOPBACK
from dpone_provider.lab.state import (
    EngineState,
    GivenAnalytics,
    GivenState,
    LabState,
    write_credentials,
    write_pool,
    write_state,
)
from dpone_provider.lab.supervisor import Job

if TYPE_CHECKING:
    from dpone_provider.lab.clickhouse.given import GivenClickhouse
    from dpone_provider.lab.mssql.given import GivenServer

Progress = Callable[[str], None]


def silent(message: str) -> None:
    """Take a progress message and say nothing."""


def up(
    root: Path,
    *,
    given: GivenServer | None = None,
    analytics: GivenClickhouse | None = None,
    progress: Progress = silent,
) -> LabState:
    """Start the lab at ``root`` with its source data and leave it running; a running one is returned as it is.

    ``given``: a SQL Server that shall be warehouse and authority in the place of the lab's PostgreSQL. ``analytics``: a
    ClickHouse in the place of the lab's.

    Raises:
        DponeError: busy (it is starting or ending), refused (a package is missing, a given server lacks something, a
            lab with other servers is up), failed (an engine did not start; nothing of it is left running).
    """
    found = status(root)
    if found.state is not None:
        _require_same_servers(found.state, given, analytics)
        progress(f"the lab at {found.root} is already up")
        return found.state
    with _started(root, progress, given, analytics) as (lab, state):
        progress("loading the flights of New York 2013")
        load_flights(state)
        # Only now: whoever finds a state document finds a lab that is ready.
        write_state(state)
        lab.detach()
    return state


@contextmanager
def running(
    root: Path,
    *,
    given: GivenServer | None = None,
    analytics: GivenClickhouse | None = None,
    progress: Progress = silent,
) -> Iterator[LabState]:
    """Run a whole lab, without its source data, while the block runs; nothing of it is left afterwards.

    ``given`` and ``analytics``: as for ``up``.

    Raises:
        DponeError: as ``up``; busy also when a lab is up there.
    """
    with _started(root, progress, given, analytics) as (_, state):
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
def _started(
    root: Path, progress: Progress, given: GivenServer | None, analytics: GivenClickhouse | None
) -> Iterator[tuple[Held, LabState]]:
    clear_dead(root)
    # Before anything is started or made.
    version = None if given is None else _version_of(given, progress)
    analytics_version = None if analytics is None else _analytics_version(analytics, progress)
    plan = None
    if analytics is None:
        plan = clickhouse_provisioning.new_plan(find_program(engine_account(), os.environ))
    password = provisioning.new_secret()
    with claimed(root) as (places, lock):
        job = Job(
            places=places,
            starter=os.getpid(),
            postgres_password=password,
            clickhouse=None if plan is None else plan.job(),
        )
        progress("starting PostgreSQL" if plan is None else "starting PostgreSQL and ClickHouse")
        with held(job, lock) as lab:
            progress("making databases and roles")
            postgres = _postgres_state(lab, password)
            write_credentials(places.credentials, provisioning.provision(postgres, password))
            clickhouse = None if plan is None else _provisioned_clickhouse(places, lab, plan)
            state = _state(places, lab, postgres=postgres, clickhouse=clickhouse)
            if given is not None and version is not None:
                progress(f"making databases and logins on {given.address}")
                state = replace(state, mssql=_made_on(given, version, places))
            if analytics is not None and analytics_version is not None:
                progress(f"making databases and a reader on {analytics.address}")
                state = replace(state, analytics=_analytics_on(analytics, analytics_version, places))
            yield lab, state


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


def _analytics_version(given: GivenClickhouse, progress: Progress) -> str:
    from dpone_provider.lab.clickhouse.fitness import require_fit

    progress(f"asking {given.address} for what the lab needs of it")
    return require_fit(given)


def _analytics_on(given: GivenClickhouse, version: str, places: Places) -> GivenAnalytics:
    from dpone_provider.lab.clickhouse.making import make

    names, credentials = make(given, places.given_analytics)
    write_credentials(places.credentials, credentials)
    at = given.endpoint
    return GivenAnalytics(
        host=at.host,
        port=at.port,
        tls=at.tls.value,
        version=version,
        controller=given.credential.user,
        reader=names.reader,
    )


def _require_same_servers(state: LabState, given: GivenServer | None, analytics: GivenClickhouse | None) -> None:
    warehouse = _in_words("SQL Server", state.mssql, given, "PostgreSQL of its own as warehouse")
    marts = _in_words("ClickHouse", state.analytics, analytics, "ClickHouse of its own as analytics")
    for reason, (found, asked) in (("lab_with_another_warehouse", warehouse), ("lab_with_another_analytics", marts)):
        if found != asked:
            unwind(
                refuse(
                    reason,
                    str(state.root),
                    found=f"a lab with {found}",
                    allowed=f"one with {asked}",
                    next_command="dpone lab down, then the same command again",
                )
            )


def _in_words(
    product: str,
    up_with: GivenState | GivenAnalytics | None,
    asked: GivenServer | GivenClickhouse | None,
    own: str,
) -> tuple[str, str]:
    """Return what the lab that is up has, and what is asked for."""
    at = (up_with, None if asked is None else asked.endpoint)
    found, wanted = (own if one is None else f"{product} {one.host}:{one.port}" for one in at)
    return found, wanted


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
