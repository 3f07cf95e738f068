"""Start, look at and end a lab.

``up`` leaves it running behind the command, ``running`` ties it to a block of the caller's code, ``postgres_only`` is
the smallest lab, for tests. All three start the same supervisor and differ in what they do once it has answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpone_provider.domain.outcomes import busy, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab import provisioning
from dpone_provider.lab.account import EngineAccount, engine_account
from dpone_provider.lab.admin import ADMIN, postgres_url
from dpone_provider.lab.held import Held, held
from dpone_provider.lab.places import Places, discard_logs, places_for, prepare
from dpone_provider.lab.ports import LOOPBACK
from dpone_provider.lab.processes import holders, open_lock, try_lock
from dpone_provider.lab.state import (
    EngineState,
    LabState,
    write_credentials,
    write_state,
)
from dpone_provider.lab.supervisor import Job

Progress = Callable[[str], None]
DOWN_SECONDS = 30.0
KILL_SECONDS = 10.0


@contextmanager
def postgres_only(root: Path) -> Iterator[LabState]:
    """Run a bare PostgreSQL with the lab's roles while the block runs (1.2 s to start).

    Its credentials are ``postgres_admin``, ``dpone_controller``, ``shop_reader`` and ``warehouse_reader``, each for the
    database ``postgres``.
    """
    account = engine_account()
    password = provisioning.new_secret()
    with _claimed(root, account) as (places, lock):
        with held(Job(places=places, postgres_password=password), lock) as lab:
            postgres = _postgres_state(lab, password)
            write_credentials(places.credentials, provisioning.provision_roles(postgres, password))
            yield _written(places, lab, postgres=postgres, clickhouse=None)
        discard_logs(places)


@contextmanager
def _claimed(root: Path, account: EngineAccount) -> Iterator[tuple[Places, int]]:
    """Take the lab's lock and clean up after a dead one; busy when a lab runs there."""
    places = places_for(root, account)
    with open_lock(places.lock) as lock:
        if not try_lock(lock):
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
        yield places, lock


def _postgres_state(lab: Held, password: Secret) -> EngineState:
    told = lab.engines["postgres"]
    state = _engine_state(told, kind="embedded", version="unknown")
    admin_url = postgres_url(state, user=ADMIN, password=password, database="postgres")
    return _engine_state(told, kind="embedded", version=provisioning.server_version(admin_url))


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
