"""One whole lab for the session, every engine behind a wire, and a place of its own for each test.

The ledger, the servers and the lab are shared; a place has an environment name, tables and a cache that no other test
touches. Nothing here is a stand-in except Airflow's word on who is alive, which a test gives itself.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

import yaml

from dpone_provider import lab
from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.promotion import PromotionOrder, PromotionReport, Told
from dpone_provider.application.release import release_workspace
from dpone_provider.application.times import AttemptTimes
from dpone_provider.assembly.compiling import compile_ports
from dpone_provider.assembly.runtime import Runtime, runtime_of
from dpone_provider.assembly.settings import Settings
from dpone_provider.domain.identity import AirflowTry, Digest, OccurrenceId
from dpone_provider.domain.outcomes import Failure
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.admin import connected_admin
from dpone_provider.lab.clickhouse.given import given_clickhouse
from dpone_provider.lab.clickhouse_session import ClickhouseSession
from dpone_provider.lab.enrolment import enrol_once
from dpone_provider.lab.provisioning import SHOP, WAREHOUSE
from dpone_provider.lab.state import write_private
from tests.acceptance.wire import Wire
from tests.interleaving.invariants import violations

ENGINES = {"shop": "postgres", "warehouse": "postgres", "analytics": "clickhouse"}
"""The connections of the lab's environment file, and the engine behind each."""
STATE = {"atomicity": "target_atomic", "provisioning": "external"}
TIMES = AttemptTimes(admission=5.0, execution=60.0, closing=20.0)


@dataclass(slots=True)
class Airflow:
    """``TaskInstances`` of a test: it says who lives."""

    living: set[UUID] = field(default_factory=set)

    def alive(self, tried: AirflowTry) -> bool:
        """Tell whether the task instance is among the living."""
        return tried.task_instance_id in self.living


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The lab, enrolled, and the wires in front of it. ``environment`` is the lab's own file, through the wires."""

    lab: lab.LabState
    root: Path
    environment: Mapping[str, Any]
    authority_ref: str
    wires: Mapping[str, Wire]
    """``authority``, ``shop``, ``warehouse`` and ``analytics``: connections that the product makes, by what for."""

    def sql(self, database: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement as the administrator, past every wire."""
        with connected_admin(self.lab, database) as connection:
            cursor = connection.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description is not None else []

    def clickhouse(self, statement: str) -> str:
        """Run one statement as ClickHouse's controller, past every wire."""
        return clickhouse_session(self.lab, "analytics_controller").ask(statement)

    def violations(self) -> list[str]:
        """Return what the ledger's rows violate."""
        with connected_admin(self.lab, WAREHOUSE) as connection:
            return violations(connection)

    def up(self) -> None:
        """Put every wire right."""
        for wire in self.wires.values():
            wire.up()


def clickhouse_session(state: lab.LabState, credential: str) -> ClickhouseSession:
    """Return a session of one of the lab's credentials for ClickHouse."""
    parts = urlsplit(state.url(credential).reveal())
    assert parts.hostname is not None
    assert parts.port is not None
    user, password = unquote(parts.username or ""), Secret(unquote(parts.password or ""))
    return ClickhouseSession(host=parts.hostname, port=parts.port, user=user, password=password)


@contextmanager
def world(root: Path) -> Iterator[World]:
    """Run the lab while the block runs: with the ClickHouse that is given, if any, in the place of its own."""
    with lab.running(root / "lab", analytics=given_clickhouse(os.environ)) as state, ExitStack() as held:
        enrolled = enrol_once(state, progress=lambda _: None)
        clickhouse = state.analytics or state.clickhouse
        assert state.postgres is not None
        assert clickhouse is not None
        engines = {"postgres": state.postgres, "clickhouse": clickhouse}
        at = {name: engines[engine] for name, engine in ENGINES.items()} | {"authority": state.postgres}
        wires = {name: held.enter_context(Wire(one.port, one.host)) for name, one in at.items()}
        (root / "credentials").mkdir(mode=0o700)
        environment = yaml.safe_load(enrolled.environment_file.read_text())
        for name in ENGINES:
            _through(wires[name], environment["connections"][f"{name}.lab"], root / "credentials" / name)
        authority = root / "credentials" / "authority"
        _rewire(Path(enrolled.authority_ref.removeprefix("file:")), authority, wires["authority"])
        yield World(lab=state, root=root, environment=environment, authority_ref=f"file:{authority}", wires=wires)


def _through(wire: Wire, connection: dict[str, Any], directory: Path) -> None:
    connection["endpoint"] |= {"host": "127.0.0.1", "port": wire.port}
    directory.mkdir()
    for role, reference in connection["credentials"].items():
        rewired = directory / role
        _rewire(Path(reference.removeprefix("file:")), rewired, wire)
        connection["credentials"][role] = f"file:{rewired}"


def _rewire(credential: Path, rewired: Path, wire: Wire) -> None:
    parts = urlsplit(credential.read_text().strip())
    netloc = parts.netloc.rpartition("@")[0] + f"@127.0.0.1:{wire.port}"
    write_private(rewired, parts._replace(netloc=netloc).geturl() + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One built deployment."""

    deployment_id: Digest
    directory: Path


_NUMBERS = itertools.count(1)


@dataclass(slots=True)
class Place:
    """An environment of one test: names, a cache, what was released and promoted there."""

    world: World
    root: Path
    name: str = field(default_factory=lambda: f"p{next(_NUMBERS):03d}")
    airflow: Airflow = field(default_factory=Airflow)
    times: AttemptTimes = TIMES
    environment: dict[str, Any] = field(default_factory=dict)
    _releases: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _runs: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        """Take the lab's environment under another name."""
        self.environment = copy.deepcopy(dict(self.world.environment)) | {"name": self.name}

    # names

    def table(self, name: str) -> str:
        """Return the place's own name for a table."""
        return f"{self.name}_{name}"

    @property
    def cache_root(self) -> Path:
        """The place's cache."""
        return self.root / "cache"

    @property
    def pointer(self) -> Path:
        """The place's pointer file, which need not exist."""
        return self.cache_root / "current" / f"{self.name}.json"

    # the source

    def source(self, name: str, rows: int = 5, columns: str = "id int PRIMARY KEY, word text, n numeric(12, 2)") -> str:
        """Make a table in the shop with so many rows (id, a word, a number); return its name."""
        table = self.table(name)
        self.world.sql(SHOP, f"CREATE TABLE {table} ({columns})")
        if rows:
            self.fill(name, rows)
        return table

    def fill(self, name: str, rows: int, first: int = 1) -> None:
        """Put rows with ids from ``first`` into a table of ``source``."""
        self.world.sql(
            SHOP,
            f"INSERT INTO {self.table(name)} SELECT i, 'word ' || i, i * 1.25 FROM generate_series(%s::int, %s::int) i",
            first,
            first + rows - 1,
        )

    def in_shop(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement in the shop; ``{name}`` stands for a table of the place."""
        return self.world.sql(SHOP, self._filled(statement))

    def in_warehouse(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement in the warehouse, likewise."""
        return self.world.sql(WAREHOUSE, self._filled(statement))

    def target(self, name: str) -> list[tuple[Any, ...]]:
        """Return the rows of a target in the warehouse, by their first column."""
        return self.in_warehouse(f"SELECT * FROM stage.{self.table(name)} ORDER BY 1")

    def mart(self, name: str, columns: str = "id, word, toDecimalString(n, 2)") -> list[str]:
        """Return the rows of a target in ClickHouse, each as a line, by their first column."""
        said = self.world.clickhouse(f"SELECT {columns} FROM mart.{self.table(name)} ORDER BY 1 FORMAT TSV")
        return said.splitlines()

    def _filled(self, statement: str) -> str:
        return statement.replace("{", self.name + "_").replace("}", "")

    # releasing

    def transfer(self, name: str, *, to: str | None = None, **more: Any) -> dict[str, Any]:
        """Return the declaration of a transfer from the shop to the warehouse, of one table under one name."""
        table = self.table(to or name)
        return {
            "id": name,
            "from": {"connection": "shop", "schema": "public", "table": self.table(name)},
            "to": {"connection": "warehouse", "schema": "stage", "table": table},
            "strategy": "full_refresh",
            "state": STATE,
            "retries": 0,
        } | more

    def onward(self, name: str, **more: Any) -> dict[str, Any]:
        """Return the declaration of a transfer from the shop to ClickHouse."""
        to = {"connection": "analytics", "database": "mart", "table": self.table(name), "order_by": ["id"]}
        return self.transfer(name, to=name) | {"to": to} | more

    def workspace(self, *transfers: Mapping[str, Any], **more: Any) -> Path:
        """Write a workspace with these transfers; return its directory."""
        directory = self.root / f"workspace-{next(self._releases)}"
        (directory / "environments").mkdir(parents=True)
        value = {
            "schema": "dpone.workspace.v1",
            "name": self.name,
            "ordinary": list(transfers),
            "environments": {self.name: "environments/here.yaml"},
        } | more
        (directory / "workspace.yaml").write_text(_plain_yaml(value))
        (directory / "environments" / "here.yaml").write_text(_plain_yaml(self.environment))
        return directory

    def release(self, *transfers: Mapping[str, Any], **more: Any) -> Deployment:
        """Release a workspace with these transfers."""
        return self.released(self.workspace(*transfers, **more))

    def released(self, workspace: Path) -> Deployment:
        """Release a workspace."""
        out = workspace.with_name(workspace.name + "-deployment")
        done = settled(release_workspace(workspace, self.name, out, compile_ports(None)))
        return Deployment(deployment_id=done.built.deployment_id, directory=out)

    # promoting and running

    @property
    def settings(self) -> Settings:
        """What a process of the place is told."""
        return Settings(
            cache_root=self.cache_root,
            environment=self.name,
            authority_connection_ref=self.world.authority_ref,
            grace=0.2,
            times=self.times,
        )

    def runtime(self, told: Told = lambda _: None) -> Runtime:
        """Return a new runtime, as another process would have it."""
        return runtime_of(self.settings, told, self.airflow)

    def order(self, deployment: Deployment, **more: Any) -> PromotionOrder:
        """Return the order to promote a deployment."""
        plain = PromotionOrder(
            source=deployment.directory,
            deployment_id=deployment.deployment_id,
            environment=self.name,
            expect_current=None,
            drain_timeout=10.0,
            promoted_by=None,
        )
        return replace(plain, **more)

    def promote(self, deployment: Deployment, **more: Any) -> PromotionReport:
        """Promote a deployment, which must succeed."""
        return settled(self.try_to_promote(deployment, **more))

    def try_to_promote(
        self, deployment: Deployment, told: Told = lambda _: None, **more: Any
    ) -> PromotionReport | Failure:
        """Promote a deployment."""
        return self.runtime(told).promote(self.order(deployment, **more))

    def tried(self, run_id: str | None = None, *, task: str = "t", number: int = 1) -> AirflowTry:
        """Return a new try of a task of a run (by default a new one)."""
        return AirflowTry(
            dag_id=self.name,
            run_id=run_id or f"run {next(self._runs)}",
            task_id=task,
            map_index=-1,
            try_number=number,
            task_instance_id=uuid4(),
        )

    def run(
        self, promoted: PromotionReport, name: str, tried: AirflowTry | None = None, runtime: Runtime | None = None
    ) -> AttemptReport | Failure:
        """Run one attempt of a workload of a promoted deployment: of an ordinary transfer by its name alone."""
        at = runtime or self.runtime()
        occurrence_id = OccurrenceId(str(promoted.occurrence_id))
        workload_id = name if "." in name else f"ordinary.{name}"
        return at.run_workload(occurrence_id, promoted.deployment_id, workload_id, tried or self.tried())

    # looking

    def ledger(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Read the ledger's rows; ``%s`` and parameters as usual."""
        return self.world.sql(WAREHOUSE, statement, *parameters)

    def states(self) -> list[str]:
        """Return the states of the environment's occurrences, oldest first."""
        rows = self.ledger(
            "SELECT state FROM dpone_control.occurrence WHERE environment = %s ORDER BY requested_at", self.name
        )
        return [state for (state,) in rows]

    def generation(self) -> int:
        """Return the environment's generation in the ledger, 0 where it has none."""
        rows = self.ledger("SELECT generation FROM dpone_control.environment WHERE name = %s", self.name)
        return rows[0][0] if rows else 0

    def epoch(self, name: str) -> int:
        """Return the epoch of a table's slot."""
        ((epoch,),) = self.ledger("SELECT epoch FROM dpone_control.slot WHERE relation_name = %s", self.table(name))
        return int(epoch)

    def attempts(self) -> list[tuple[str, str]]:
        """Return the environment's attempts, oldest first: id and state."""
        return self.ledger(
            "SELECT attempt_id, state FROM dpone_control.attempt WHERE environment = %s ORDER BY ledger_sequence",
            self.name,
        )


def succeeded(outcome: AttemptReport | Failure) -> AttemptReport:
    """Return a report of success; anything else is a failure of the test."""
    assert isinstance(outcome, AttemptReport), outcome
    assert outcome.problem is None, outcome.problem
    return outcome


def _plain_yaml(value: Mapping[str, Any]) -> str:
    """Through JSON: a mapping that stands at two places would become an anchor, which is refused."""
    return yaml.safe_dump(json.loads(json.dumps(value)), sort_keys=False)
