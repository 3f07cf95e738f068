"""The sample with SQL Server as its warehouse: compiled and built with dbt-sqlserver itself, without a server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpone_provider.application.release import Released
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.identity import EngineKind
from dpone_provider.lab.demo.workspace import FIRST, SECOND, layers
from tests.adapters.dbt.test_compiler import has_odbc
from tests.documents.examples import connection, environment_value
from tests.examples.test_flights import EXAMPLES, pack, released

pytestmark = pytest.mark.skipif(
    not has_odbc(), reason="dbt's environment cannot load pyodbc: Debian's package libodbc2 is missing"
)
MART = "native/flights_mart/workloads/mart.json"


def environment() -> dict[str, Any]:
    """Return an environment whose warehouse is a SQL Server."""
    value = environment_value()
    value["connections"]["warehouse.lab"] = connection(
        "mssql",
        "warehouse",
        managed=["mart", "stage"],
        credentials={"controller": "env:WAREHOUSE", "reader": "env:WAREHOUSE_READER"},
    )
    return value


def release(where: Path, *releases: str) -> Released:
    """Release what is laid over one another."""
    for layer in layers(releases, EngineKind.MSSQL):
        shutil.copytree(EXAMPLES / layer, where / "flights", dirs_exist_ok=True)
    return released(where / "flights", where / "out", environment())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Released:
    """Release the second over the first: every model of the sample is in it."""
    return release(tmp_path_factory.mktemp("both"), FIRST, SECOND)


def test_each_workload_is_one_of_production(both: Released) -> None:
    ends = {}
    for path in both.built.files:
        if path.startswith(("generated/", "ordinary/")) and path.endswith(".json") and "/constituent" not in path:
            made = pack(both, path)
            assert isinstance(made, TransferPackV1)
            ends[made.id] = (made.source.kind, made.target.kind)
    assert ends == {
        "generated.flights_mart.mart.daily_carrier_delays": (EngineKind.MSSQL, EngineKind.CLICKHOUSE),
        "generated.flights_mart.mart.fleet_usage": (EngineKind.MSSQL, EngineKind.CLICKHOUSE),
        "ordinary.flights": (EngineKind.POSTGRES, EngineKind.MSSQL),
        "ordinary.planes": (EngineKind.POSTGRES, EngineKind.MSSQL),
    }


def test_every_relation_that_dbt_sqlserver_may_write_is_asked_for(both: Released) -> None:
    made = pack(both, MART)
    assert isinstance(made, ExecutionPackV2)
    assert {one.name: one.version for one in made.adapter.versions}["dbt-sqlserver"].startswith("1.11.")
    written = {str(one.written.relation) for one in made.writes}
    for name in ("stg_flights", "daily_carrier_delays", "fleet_usage", "flights_by_hour", "route_popularity"):
        assert {f"mart.{name}{helper}" for helper in ("", "__dbt_tmp", "__dbt_backup", "__dbt_tmp_vw")} <= written


def test_the_marts_go_on_with_the_types_that_they_have_on_postgresql(both: Released) -> None:
    made = pack(both, "generated/flights_mart.mart.fleet_usage.json")
    assert isinstance(made, TransferPackV1)
    assert [(one.name, one.type, one.nullable) for one in made.columns] == [
        ("tailnum", "string(6)", False),
        ("manufacturer", "string", False),
        ("model", "string", False),
        ("built_in", "int16", True),
        ("seats", "int16", False),
        ("flights", "int32", False),
        ("carriers", "int32", False),
        ("first_flight", "date", False),
        ("last_flight", "date", False),
        ("miles", "int64", False),
        ("hours_in_air", "decimal(10,2)", False),
    ]


@pytest.mark.parametrize("name", [FIRST, SECOND])
def test_both_workspaces_are_those_of_postgresql_but_for_the_threads(name: str) -> None:
    found = [yaml.safe_load((EXAMPLES / layer / "workspace.yaml").read_text()) for layer in (name, f"{name}-mssql")]
    assert [one["native"][0].pop("threads") for one in found] == [2, 1]
    assert found[0] == found[1]


def test_what_the_adapter_would_decide_by_default_is_said(both: Released) -> None:
    manifest = json.loads(both.built.files["native/flights_mart/manifest.json"])
    models = [one for one in manifest["nodes"].values() if one["resource_type"] == "model"]
    assert {one["config"]["as_columnstore"] for one in models} == {False}
    project = (EXAMPLES / "flights-mssql" / "dbt" / "dbt_project.yml").read_text()
    for flag in (
        "use_default_schema_concat",
        "disable_empty_relation_aliases",
        "use_native_string_types",
        "enable_safe_type_expansion",
        "use_dbt_transactions",
    ):
        assert f"dbt_sqlserver_{flag}: " in project
