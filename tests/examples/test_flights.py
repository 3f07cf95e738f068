"""The sample workspace and its second release, compiled by dbt itself against a source that looks like the lab's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpone_provider.adapters.dbt.compiler import DbtChildCompiler
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.workspace import DiskWorkspace
from dpone_provider.application.compile import CompilePorts
from dpone_provider.application.release import Released, release_workspace
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.registry import read_document
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.schema.tables import Column, Present, Table
from dpone_provider.domain.schema.types import Integer, String
from tests.application.workspaces import FakeSource
from tests.documents.examples import environment_value

EXAMPLES = Path(__file__).parents[2] / "examples"
FLIGHTS = Table(
    schema="public",
    name="flights",
    columns=(Column(name="flight_id", type=Integer(64), nullable=False),),
    primary_key=("flight_id",),
)
PLANES = Table(
    schema="public",
    name="planes",
    columns=(Column(name="tailnum", type=String(), nullable=False),),
    primary_key=("tailnum",),
)


def released(root: Path, out: Path, bound: dict[str, Any] | None = None) -> Released:
    """Release a copy of the sample in an environment named lab."""
    environment = (bound or environment_value()) | {"name": "lab"}
    (root / "environments").mkdir(exist_ok=True)
    (root / "environments" / "lab.yaml").write_text(yaml.safe_dump(environment))
    ports = CompilePorts(
        files=DiskWorkspace(),
        dbt=DbtChildCompiler(GuardedChildren(), SystemClock()),
        schemas=FakeSource({"flights": Present(FLIGHTS), "planes": Present(PLANES)}),
    )
    done = release_workspace(root, "lab", out, ports)
    assert isinstance(done, Released), done
    return done


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Released:
    where = tmp_path_factory.mktemp("first")
    shutil.copytree(EXAMPLES / "flights", where / "flights")
    return released(where / "flights", where / "out")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Released:
    where = tmp_path_factory.mktemp("second")
    for release in ("flights", "flights-v2"):
        shutil.copytree(EXAMPLES / release, where / "flights", dirs_exist_ok=True)
    return released(where / "flights", where / "out")


def pack(done: Released, path: str) -> ExecutionPackV2 | TransferPackV1:
    found = read_document(done.built.files[path], path)
    assert isinstance(found, ExecutionPackV2 | TransferPackV1), found
    return found


def test_every_workload_is_there(first: Released) -> None:
    assert [one.workload_id for one in first.composed.release.packs] == [
        "generated.flights_mart.mart.daily_carrier_delays",
        "generated.flights_mart.mart.fleet_usage",
        "native.flights_mart.mart",
        "ordinary.flights",
        "ordinary.planes",
    ]
    assert sorted(one.dag_id for one in first.composed.release.dags) == [
        "flights_nyc.flights",
        "flights_nyc.flights_mart",
        "flights_nyc.planes",
    ]


def test_the_dbt_workload_writes_its_models_and_reads_what_transfers_bring(first: Released) -> None:
    made = pack(first, "native/flights_mart/workloads/mart.json")
    assert isinstance(made, ExecutionPackV2)
    targets = {str(one.written.relation) for one in made.writes if one.role == "target"}
    assert targets == {
        f"mart.{name}" for name in ("stg_flights", "daily_carrier_delays", "fleet_usage", "flights_by_hour")
    }
    assert [str(one.relation) for one in made.reads] == ["stage.flights", "stage.planes"]
    whole = {node.id.split(".")[-1]: node.rebuilt_whole for node in made.nodes if node.resource_type == "model"}
    assert whole == {"stg_flights": True, "daily_carrier_delays": True, "fleet_usage": True, "flights_by_hour": False}


def test_generated_transfers_take_the_contracts_columns_in_their_order(first: Released) -> None:
    made = pack(first, "generated/flights_mart.mart.daily_carrier_delays.json")
    assert isinstance(made, TransferPackV1)
    assert [(one.name, one.type, one.nullable) for one in made.columns] == [
        ("flight_date", "date", False),
        ("carrier", "string(2)", False),
        ("flights", "int32", False),
        ("cancelled_flights", "int32", False),
        ("mean_departure_delay", "decimal(8,2)", True),
        ("mean_arrival_delay", "decimal(8,2)", True),
        ("worst_arrival_delay", "int32", True),
        ("share_on_time", "decimal(5,4)", True),
    ]


def test_the_second_release_has_one_more_model_and_a_changed_transfer(first: Released, second: Released) -> None:
    before, after = first.built.files, second.built.files
    old, new = (
        pack(first, "native/flights_mart/workloads/mart.json"),
        pack(second, "native/flights_mart/workloads/mart.json"),
    )
    assert isinstance(old, ExecutionPackV2)
    assert isinstance(new, ExecutionPackV2)
    added = {node.id for node in new.nodes if node.resource_type == "model"} - {node.id for node in old.nodes}
    assert added == {"model.flights_mart.route_popularity"}
    assert before["ordinary/planes.json"] != after["ordinary/planes.json"]
    assert before["ordinary/flights.json"] == after["ordinary/flights.json"]


def test_the_same_sample_elsewhere_gives_the_same_bytes(first: Released, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "flights", tmp_path / "another place" / "flights")
    again = released(tmp_path / "another place" / "flights", tmp_path / "out")
    assert again.built.files == first.built.files
