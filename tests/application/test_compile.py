from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpone_provider.application.compile import CompiledWorkspace, compile_workspace
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused, refuse
from dpone_provider.domain.schema.tables import Occupied, RelationKind, Unreadable
from tests.application.workspaces import FakeDbt, FakeSource, Workspace, column, does_not_parse, manifest, model, source


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


def compiled(workspace: Workspace) -> CompiledWorkspace:
    done = compile_workspace(workspace.root, "synthetic", workspace.root.parent / "out", workspace.ports())
    assert isinstance(done, CompiledWorkspace), done
    return done


def refused(workspace: Workspace) -> Refused:
    out = workspace.root.parent / "out"
    done = compile_workspace(workspace.root, "synthetic", out, workspace.ports())
    assert isinstance(done, Refused)
    assert not out.exists()
    return done


def reason(workspace: Workspace) -> str:
    return refused(workspace).problem.reason


def pack(workspace: Workspace, constituent: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((workspace.root.parent / "out" / constituent / path).read_bytes())
    return found


def test_an_ordinary_transfer_is_pinned_to_what_its_source_shows(workspace: Workspace) -> None:
    done = compiled(workspace)
    made = TransferPackV1.model_validate_json(
        (workspace.root.parent / "out/ordinary/ordinary/orders.json").read_bytes()
    )
    assert [(one.name, one.type, one.nullable) for one in made.columns] == [
        ("order_id", "int64", False),
        ("note", "string", True),
    ]
    assert made.key == ("order_id",)
    assert made.publication.way == "replace"
    assert workspace.source.asked == 1
    shown = {each.workload_id: each.came_from for each in done.pinned}
    assert shown["ordinary.orders"] == "shop public.orders, as read now"


def test_a_way_that_the_targets_engine_has_not_got_is_refused(workspace: Workspace) -> None:
    workspace.transfer["way"] = "switch"
    problem = refused(workspace).problem
    assert problem.reason == "document_value_invalid"
    assert "way replace for a target of kind postgres" in problem.allowed


def test_declared_columns_are_taken_without_asking_the_source(workspace: Workspace) -> None:
    workspace.transfer["columns"] = [{"name": "order_id", "type": "int64", "nullable": False}]
    compiled(workspace)
    assert workspace.source.asked == 0
    assert pack(workspace, "ordinary", "ordinary/orders.json")["key"] == []


def test_a_native_workload_has_its_nodes_writes_and_reads(workspace: Workspace) -> None:
    compiled(workspace)
    path = workspace.root.parent / "out/native/native/sales/workloads/sales_mart.json"
    made = ExecutionPackV2.model_validate_json(path.read_bytes())
    assert made.id == "native.sales.sales_mart"
    assert [node.id for node in made.nodes] == [
        "model.sales.daily_sales",
        "model.sales.stg_orders",
        "test.sales.not_null_day",
    ]
    assert {str(one.written.relation) for one in made.writes} == {
        f"{schema}.{name}{suffix}"
        for schema, name in (("mart", "daily_sales"), ("stage", "stg_orders"))
        for suffix in ("", "__dbt_tmp", "__dbt_backup")
    }
    assert [str(one.relation) for one in made.reads] == ["stage.orders"]
    assert workspace.dbt.asked[0][1:] == ("warehouse", "mart")


def test_what_a_view_outside_the_selection_reads_is_read_too(workspace: Workspace) -> None:
    workspace.dbt.selected = {"sales_mart": ("model.sales.daily_sales",)}
    compiled(workspace)
    made = pack(workspace, "native", "native/sales/workloads/sales_mart.json")
    assert [one["name"] for one in made["reads"]] == ["orders", "stg_orders"]


def test_a_publish_entry_becomes_a_transfer_after_its_workload(workspace: Workspace) -> None:
    compiled(workspace)
    made = pack(workspace, "native", "generated/sales.sales_mart.daily_sales.json")
    assert made["id"] == "generated.sales.sales_mart.daily_sales"
    assert [(one["name"], one["type"], one["nullable"]) for one in made["columns"]] == [
        ("amount", "decimal(12,2)", True),
        ("day", "date", False),
        ("store_id", "int32", False),
    ]
    assert made["target"]["storage"] == {"engine": "MergeTree", "order_by": ["day", "store_id"], "partition_by": None}
    dag = pack(workspace, "native", "dags/sales.sales.json")
    assert dag["edges"] == [{"up": "sales_mart", "down": "sales_mart.daily_sales"}]
    assert dag["schedule"] is None


def test_a_constituent_without_workloads_is_declared_empty(workspace: Workspace) -> None:
    workspace.value["native"] = []
    done = compiled(workspace)
    assert done.native.constituent.empty
    assert not done.ordinary.constituent.empty
    assert workspace.dbt.asked == []


def test_the_halves_do_not_depend_on_each_other(workspace: Workspace, tmp_path: Path) -> None:
    whole = compiled(workspace)
    other = Workspace(tmp_path / "other" / "workspace")
    other.transfer["id"] = "renamed"
    assert compiled(other).native.digest == whole.native.digest


def test_the_source_tree_decides_the_constituent(workspace: Workspace, tmp_path: Path) -> None:
    before = compiled(workspace).native.constituent.tree_digest
    (workspace.root / "dbt" / "models" / "more.sql").write_text("select 2\n")
    assert compiled(workspace).native.constituent.tree_digest != before


def test_what_dbt_writes_is_no_source(workspace: Workspace) -> None:
    before = compiled(workspace).native.digest
    for name in ("target/run.sql", "logs/dbt.log", ".user.yml", "profiles.yml", "models/__pycache__/x.pyc"):
        file = workspace.root / "dbt" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("anything")
    assert compiled(workspace).native.digest == before


UNSUPPORTED = [
    ({"strategy": "incremental"}, "unsupported_strategy"),
    ({"state": {"atomicity": "append", "provisioning": "external"}}, "unsupported_state"),
    ({"state": {"atomicity": "target_atomic", "provisioning": "managed"}}, "unsupported_state"),
    ({"hooks": ["delete from x"]}, "custom_hook_unsupported"),
    ({"route": "nested"}, "nested_route_unsupported"),
    ({"route": "snapshot"}, "snapshot_route_unsupported"),
    ({"route": "backfill"}, "backfill_route_unsupported"),
]


@pytest.mark.parametrize(("change", "expected"), UNSUPPORTED)
def test_what_is_not_supported_is_refused_with_its_own_reason(
    workspace: Workspace, change: dict[str, Any], expected: str
) -> None:
    workspace.transfer.update(change)
    problem = refused(workspace).problem
    assert problem.reason == expected
    assert "ordinary.orders" in problem.subject


def test_a_query_as_source_is_refused(workspace: Workspace) -> None:
    workspace.transfer["from"]["query"] = "select nextval('x')"
    assert reason(workspace) == "source_query_unsupported"


def test_another_connector_is_refused_by_name(workspace: Workspace) -> None:
    workspace.environment["connections"]["shop.lab"]["kind"] = "mysql"
    problem = refused(workspace).problem
    assert (problem.reason, problem.found) == ("unsupported_connector", "mysql")
    assert "ordinary.orders" in problem.subject


def test_a_cluster_and_a_database_that_is_not_atomic_are_refused(workspace: Workspace) -> None:
    workspace.environment["connections"]["analytics.lab"]["cluster"] = "main"
    assert reason(workspace) == "clickhouse_cluster_unsupported"
    del workspace.environment["connections"]["analytics.lab"]["cluster"]
    workspace.environment["connections"]["analytics.lab"]["databases"]["mart"]["engine"] = "Replicated"
    assert reason(workspace) == "non_atomic_database_unsupported"


def test_a_lab_cell_is_refused_in_production(workspace: Workspace) -> None:
    workspace.environment["family"] = "production"
    for each in workspace.environment["connections"].values():
        each["family"] = "production"
    assert reason(workspace) == "cell_not_for_family"


def test_a_connection_of_another_family_is_refused(workspace: Workspace) -> None:
    workspace.environment["connections"]["shop.lab"]["family"] = "production"
    assert reason(workspace) == "another_family"


def test_an_alias_without_a_connection_is_refused(workspace: Workspace) -> None:
    del workspace.environment["bindings"]["shop"]
    assert reason(workspace) == "alias_without_connection"
    workspace.environment["bindings"]["shop"] = "nowhere"
    assert reason(workspace) == "alias_without_connection"


def test_an_unknown_environment_names_the_known_ones(workspace: Workspace) -> None:
    done = compile_workspace(workspace.root, "elsewhere", workspace.root.parent / "out", workspace.ports())
    assert isinstance(done, Refused)
    assert done.problem.reason == "unknown_environment"
    assert done.problem.allowed == "synthetic"


def test_an_unsupported_source_type_is_refused_by_the_readers_own_words(workspace: Workspace) -> None:
    failure = refuse(
        "unsupported_type", "column shape", found="polygon", allowed="known types", next_command="leave it out"
    )
    workspace.source = FakeSource({"orders": Unreadable(Relation("public", "orders"), failure)})
    problem = refused(workspace).problem
    assert (problem.reason, problem.found) == ("unsupported_type", "polygon")
    assert "ordinary.orders" in problem.subject


def test_a_source_that_is_no_table_or_is_not_there_is_refused(workspace: Workspace) -> None:
    workspace.source = FakeSource({"orders": Occupied(Relation("public", "orders"), RelationKind.VIEW)})
    assert reason(workspace) == "source_not_a_table"
    workspace.source = FakeSource({})
    assert reason(workspace) == "source_missing"


def test_a_project_that_does_not_parse_is_refused_with_dbts_words(workspace: Workspace) -> None:
    workspace.dbt.refused = does_not_parse()
    assert reason(workspace) == "dbt_parse_failed"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"post-hook": [{"sql": "grant all"}]}, "custom_hook_unsupported"),
        ({"pre-hook": [{"sql": "delete"}]}, "custom_hook_unsupported"),
        ({"grants": {"select": ["everyone"]}}, "unmodelled_effect"),
        ({"sql_header": "set x"}, "unmodelled_effect"),
        ({"materialized": "materialized_view"}, "unmodelled_effect"),
    ],
)
def test_effects_that_no_footprint_shows_are_refused(
    workspace: Workspace, config: dict[str, Any], expected: str
) -> None:
    workspace.publish["columns"] = [{"name": "day", "type": "date", "nullable": False}]
    workspace.dbt = FakeDbt(manifest({"model.sales.daily_sales": model("daily_sales", config=config)}))
    problem = refused(workspace).problem
    assert problem.reason == expected
    assert "native.sales.sales_mart" in problem.subject


def test_a_hook_of_the_run_and_a_stored_failure_are_refused(workspace: Workspace) -> None:
    nodes = manifest()["nodes"]
    workspace.dbt = FakeDbt(manifest(nodes | {"operation.sales.start-0": {"resource_type": "operation"}}))
    assert reason(workspace) == "custom_hook_unsupported"
    nodes["test.sales.not_null_day"]["config"]["store_failures"] = True
    workspace.dbt = FakeDbt(manifest(nodes))
    assert reason(workspace) == "unmodelled_effect"


def test_a_model_of_another_database_is_refused(workspace: Workspace) -> None:
    nodes = manifest()["nodes"]
    nodes["model.sales.stg_orders"]["database"] = "elsewhere"
    workspace.dbt = FakeDbt(manifest(nodes))
    assert reason(workspace) == "other_database"


def test_a_selection_that_writes_nothing_is_refused(workspace: Workspace) -> None:
    workspace.value["native"][0]["workloads"][0]["publish"] = []
    workspace.dbt.selected = {"sales_mart": ("test.sales.not_null_day",)}
    assert reason(workspace) == "nothing_selected"


def test_published_columns_need_types(workspace: Workspace) -> None:
    nodes = manifest()["nodes"]
    nodes["model.sales.daily_sales"]["columns"]["amount"] = {"name": "amount", "data_type": None}
    workspace.dbt = FakeDbt(manifest(nodes))
    assert reason(workspace) == "published_columns_missing"
    nodes["model.sales.daily_sales"]["columns"] = {}
    workspace.dbt = FakeDbt(manifest(nodes))
    assert reason(workspace) == "published_columns_missing"
    nodes["model.sales.daily_sales"]["columns"] = {"day": column("day", "numeric", not_null=True)}
    workspace.dbt = FakeDbt(manifest(nodes))
    assert reason(workspace) == "unsupported_column_type"


def test_a_sorting_key_must_not_be_nullable(workspace: Workspace) -> None:
    workspace.publish["to"]["order_by"] = ["amount"]
    assert reason(workspace) == "nullable_sorting_key"


def test_clickhouse_cannot_tell_binary_from_text(workspace: Workspace) -> None:
    nodes = manifest()["nodes"]
    nodes["model.sales.daily_sales"]["columns"]["amount"] = {"name": "amount", "data_type": "bytea"}
    workspace.dbt = FakeDbt(manifest(nodes))
    problem = refused(workspace).problem
    assert problem.reason == "unsupported_type"
    assert problem.found == "amount binary"


def test_only_tables_of_the_very_workload_are_published(workspace: Workspace) -> None:
    workspace.publish["model"] = "stg_orders"
    assert reason(workspace) == "published_model_not_a_table"
    workspace.publish["model"] = "nowhere"
    assert reason(workspace) == "published_model_missing"


def test_publishing_goes_to_clickhouse_with_a_sorting_key(workspace: Workspace) -> None:
    del workspace.publish["to"]["order_by"]
    assert reason(workspace) == "order_by_missing"


def test_storage_options_are_clickhouses(workspace: Workspace) -> None:
    workspace.transfer["to"]["order_by"] = ["order_id"]
    assert reason(workspace) == "storage_unsupported"


def test_a_nullable_key_is_refused_without_a_traceback(workspace: Workspace) -> None:
    workspace.transfer["key"] = ["note"]
    problem = refused(workspace).problem
    assert problem.reason == "document_value_invalid"
    assert "ordinary.orders" in problem.subject


def test_a_name_that_no_archive_may_hold_is_refused(workspace: Workspace) -> None:
    workspace.transfer["id"] = "con"
    assert reason(workspace) == "document_value_invalid"


def test_two_projects_of_one_name_are_refused(workspace: Workspace) -> None:
    second = dict(workspace.value["native"][0], project="dbt2", workloads=[{"id": "other", "select": ["x"]}])
    workspace.value["native"].append(second)
    ports = workspace.ports()
    (workspace.root / "dbt2").mkdir()
    (workspace.root / "dbt2" / "dbt_project.yml").write_text("name: sales\n")
    done = compile_workspace(workspace.root, "synthetic", workspace.root.parent / "out", ports)
    assert isinstance(done, Refused)
    assert done.problem.reason == "project_twice"


def test_an_output_directory_that_is_not_ours_is_left_alone(workspace: Workspace) -> None:
    out = workspace.root.parent / "out"
    (out / "native").mkdir(parents=True)
    (out / "native" / "precious").write_text("mine")
    done = compile_workspace(workspace.root, "synthetic", out, workspace.ports())
    assert isinstance(done, Refused)
    assert done.problem.reason == "output_not_ours"
    assert (out / "native" / "precious").read_text() == "mine"


def test_compiling_again_replaces_the_output(workspace: Workspace) -> None:
    compiled(workspace)
    workspace.value["ordinary"] = []
    compiled(workspace)
    assert not (workspace.root.parent / "out/ordinary/ordinary").exists()


def test_sources_in_other_schemas_are_reads(workspace: Workspace) -> None:
    value = manifest()
    value["sources"]["source.sales.ref.stores"] = source("ref", "stores")
    value["nodes"]["model.sales.daily_sales"]["depends_on"]["nodes"].append("source.sales.ref.stores")
    workspace.dbt = FakeDbt(value)
    compiled(workspace)
    made = pack(workspace, "native", "native/sales/workloads/sales_mart.json")
    assert {"schema": "ref", "name": "stores"} in made["reads"]
