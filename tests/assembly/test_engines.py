"""Every engine's hands are made from the one table, and the cells of SQL Server from it too. Nothing connects."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, cast

import pytest

from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ports.tables import PublishJob, TargetBinding
from dpone_provider.assembly.engines import ENGINES, ControlNames, control_names
from dpone_provider.assembly.worker_job import Login, WorkerJob
from dpone_provider.assembly.workers import worker_of
from dpone_provider.documents.transfer_pack import WAYS_OF, PublicationPolicy, Way
from dpone_provider.domain.cells import MATRIX, Cell
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import AttemptId, EngineKind, OccurrenceId, Relation, SlotId
from dpone_provider.domain.publication import Verb
from dpone_provider.domain.schema.tables import Column, Table
from dpone_provider.domain.schema.types import Integer
from dpone_provider.domain.secret import Secret

NAMES = {EngineKind.POSTGRES: "Postgres", EngineKind.MSSQL: "Mssql", EngineKind.CLICKHOUSE: "ClickHouse"}
CONTROL = ControlNames(schema="steering", database="authority")


def login(kind: EngineKind) -> Login:
    """Return a login of an engine, at an address where nobody is."""
    endpoint = Endpoint(kind=kind, host="127.0.0.1", port=1, database="sales", tls=TlsMode.DISABLED)
    return Login(endpoint, Credential("me", Secret("x" * 20)))


def worker_job(source: EngineKind, target: EngineKind, way: Way | None = None) -> WorkerJob:
    """Return a job from one engine to another; its pack is asked for nothing but its key and its way."""

    class Pack:
        key = ("id",)
        publication = PublicationPolicy(way=way or WAYS_OF[target][0])

    table = Table(schema="stage", name="orders", columns=(Column(name="id", type=Integer(64), nullable=False),))
    job = PublishJob(
        attempt_id=AttemptId("ab" * 32),
        occurrence_id=OccurrenceId("6e1b5f0e-0000-4000-8000-000000000007"),
        slot_id=SlotId("cd" * 32),
        epoch=1,
        target=table.relation,
        staged=Relation("stage", "dpone_1"),
        declared=table,
    )
    return WorkerJob(
        pack=cast(Any, Pack()),
        job=job,
        binding=TargetBinding(verb=Verb.REPLACE, target_identity=None, staged_identity="ab"),
        source=login(source),
        source_facts={},
        target=login(target),
        seconds=1.0,
        control_database="authority",
    )


@pytest.mark.parametrize("kind", EngineKind)
def test_every_hand_is_the_engines_own(kind: EngineKind) -> None:
    engine, name = ENGINES[kind], NAMES[kind]
    made = (
        engine.catalog(login(kind), CONTROL),
        engine.publisher(login(kind)),
        engine.schema_reader(login(kind)),
        engine.reader(login(kind), {}),
        engine.staging(worker_job(EngineKind.POSTGRES, kind)),
    )
    assert [type(one).__name__ for one in made] == [
        f"{name}Catalog",
        f"{name}Publisher",
        f"{name}SchemaReader",
        f"{name}Reader",
        f"{name}StagingWriter",
    ]


TRANSFERS = [(source, target) for _, source, target in MATRIX if source is not None]


@pytest.mark.parametrize(("source", "target"), TRANSFERS)
def test_the_worker_of_every_transfer_cell_assembles(source: EngineKind, target: EngineKind) -> None:
    worker = worker_of(worker_job(source, target), cast(Any, None), cast(Any, None))
    assert type(worker.reader).__name__ == f"{NAMES[source]}Reader"
    assert type(worker.writer).__name__ == f"{NAMES[target]}StagingWriter"
    fenced = None if target is EngineKind.CLICKHOUSE else f"{NAMES[target]}FencedPublisher"
    assert (None if worker.publisher is None else type(worker.publisher).__name__) == fenced


def test_every_cell_has_its_engines() -> None:
    assert {cell for cell, _ in MATRIX.values()} == set(Cell)
    assert {kind for _, source, target in MATRIX for kind in (source, target) if kind is not None} <= set(ENGINES)


def test_sql_servers_fence_is_looked_for_where_the_authority_is() -> None:
    assert control_names(login(EngineKind.MSSQL).endpoint, "steering").database == "sales"
    assert control_names(login(EngineKind.POSTGRES).endpoint, "steering") == ControlNames(schema="steering")
    fenced = ENGINES[EngineKind.MSSQL].fenced(worker_job(EngineKind.POSTGRES, EngineKind.MSSQL))
    assert fenced is not None
    assert fenced.control_database == "authority"  # type: ignore[attr-defined]


@pytest.mark.parametrize(("way", "chosen"), [("replace", "insert"), ("switch", "switch")])
def test_the_way_of_the_pack_reaches_sql_servers_publisher(way: Way, chosen: str) -> None:
    fenced = ENGINES[EngineKind.MSSQL].fenced(worker_job(EngineKind.POSTGRES, EngineKind.MSSQL, way))
    assert fenced is not None
    assert fenced.way == chosen  # type: ignore[attr-defined]


def test_the_gate_of_sql_server_assembles() -> None:
    class Known:
        class service:  # noqa: N801  # stands for a registry entry
            service_id = "6e1b5f0e-0000-4000-8000-000000000004"

    gate = ENGINES[EngineKind.MSSQL].gate(login(EngineKind.MSSQL), cast(Any, Known()), CONTROL, SystemEntropy())
    assert type(gate).__name__ == "MssqlGate"


def test_no_driver_is_imported_before_its_engine_is_met() -> None:
    program = (
        "import sys\nimport dpone_provider.assembly.engines\n"
        "assert not {'pyodbc', 'mssql_python', 'psycopg', 'clickhouse_connect'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
