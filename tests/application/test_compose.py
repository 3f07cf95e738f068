from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpone_provider.adapters.workspace import DiskWorkspace
from dpone_provider.application.compile import CompiledWorkspace, compile_workspace
from dpone_provider.application.compose import ComposedRelease, compose
from dpone_provider.domain.outcomes import Problem, Refused
from tests.application.damage import changed, relist, replan
from tests.application.workspaces import FakeDbt, Workspace, manifest, model

PACK = "ordinary/orders.json"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


def compile_it(workspace: Workspace) -> Path:
    out = workspace.root.parent / "compiled"
    done = compile_workspace(workspace.root, "synthetic", out, workspace.ports())
    assert isinstance(done, CompiledWorkspace), done
    return out


def composed(compiled: Path) -> ComposedRelease:
    done = compose(compiled, compiled.parent / "release", DiskWorkspace())
    assert isinstance(done, ComposedRelease), done
    return done


def refused(compiled: Path) -> Problem:
    done = compose(compiled, compiled.parent / "release", DiskWorkspace())
    assert isinstance(done, Refused)
    assert not (compiled.parent / "release").exists()
    return done.problem


def damage(compiled: Path, constituent: str, path: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a document of a constituent and set its digests right."""
    files = {
        str(file.relative_to(compiled / constituent)): file.read_bytes()
        for file in (compiled / constituent).rglob("*")
        if file.is_file()
    }
    changed(files, path, change)
    replan(files)
    relist(files, "constituent.json")
    for name, data in files.items():
        (compiled / constituent / name).write_bytes(data)


def test_a_release_has_both_constituents_and_lists_every_file(workspace: Workspace) -> None:
    done = composed(compile_it(workspace))
    assert [each.kind for each in done.release.constituents] == ["native", "ordinary"]
    directory = workspace.root.parent / "release"
    found = {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}
    assert found == {
        "dags/sales.orders.json",
        "dags/sales.sales.json",
        "files.sha256",
        "generated/sales.sales_mart.daily_sales.json",
        "native/sales/manifest.json",
        "native/sales/project.tar.gz",
        "native/sales/workloads/sales_mart.json",
        "ordinary/orders.json",
        "release.json",
    }
    assert json.loads((directory / "release.json").read_bytes())["schema"] == "dpone.release.v3"


def test_a_release_does_not_depend_on_the_environment(workspace: Workspace, tmp_path: Path) -> None:
    first = composed(compile_it(workspace)).release_id
    other = Workspace(tmp_path / "b" / "workspace")
    for connection in other.environment["connections"].values():
        connection["endpoint"]["port"] += 1
    other.environment["name"] = "elsewhere"
    assert composed(compile_it(other)).release_id == first


def test_an_empty_half_is_declared(workspace: Workspace) -> None:
    workspace.value["ordinary"] = []
    done = composed(compile_it(workspace))
    assert [each.empty for each in done.release.constituents] == [False, True]


def test_two_empty_halves_are_no_parent(workspace: Workspace) -> None:
    workspace.value |= {"ordinary": [], "native": []}
    assert refused(compile_it(workspace)).reason == "document_value_invalid"


def test_a_missing_half_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)
    (compiled / "ordinary").rename(compiled / "elsewhere")
    assert refused(compiled).reason == "path_unreadable"


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda file: file.unlink(), "file_missing"),
        (lambda file: file.with_name("more.json").write_text("{}"), "file_unlisted"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "file_size_differs"),
        (lambda file: file.write_bytes(file.read_bytes().replace(b"note", b"nope")), "file_changed"),
    ],
)
def test_a_constituent_that_was_touched_is_refused(
    workspace: Workspace, harm: Callable[[Path], object], reason: str
) -> None:
    compiled = compile_it(workspace)
    harm(compiled / "ordinary" / PACK)
    problem = refused(compiled)
    assert problem.reason == reason


def test_a_state_declaration_that_differs_from_its_sources_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)
    damage(compiled, "ordinary", PACK, lambda pack: pack["state"].update(provisioning="managed"))
    problem = refused(compiled)
    assert problem.reason == "state_declaration_differs"
    assert PACK in problem.subject


def test_a_pack_that_leaves_out_a_helper_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)
    damage(compiled, "native", "native/sales/workloads/sales_mart.json", lambda pack: pack["writes"].pop())
    problem = refused(compiled)
    assert problem.reason == "footprint_differs"
    assert "stage.stg_orders__dbt_tmp" in problem.found


def test_a_pack_that_lists_another_relation_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)

    def more(pack: dict[str, Any]) -> None:
        pack["writes"].append({"schema": "zzz", "name": "other", "role": "target"})

    damage(compiled, "native", "native/sales/workloads/sales_mart.json", more)
    problem = refused(compiled)
    assert (problem.reason, "zzz.other" in problem.found) == ("footprint_differs", True)


def test_a_pack_that_hides_what_it_reads_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)
    damage(compiled, "native", "native/sales/workloads/sales_mart.json", lambda pack: pack["reads"].clear())
    assert refused(compiled).reason == "footprint_differs"


def test_a_plan_that_says_other_than_its_pack_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)
    damage(compiled, "ordinary", "dags/sales.orders.json", lambda dag: dag["tasks"][0].update(timeout_seconds=1))
    assert refused(compiled).reason == "plan_differs"


def test_a_generated_transfer_before_its_workload_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)
    damage(compiled, "native", "dags/sales.sales.json", lambda dag: dag["edges"].clear())
    assert refused(compiled).reason == "generated_out_of_order"


def test_a_generated_transfer_of_another_table_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)
    path = "generated/sales.sales_mart.daily_sales.json"
    damage(compiled, "native", path, lambda pack: pack["source"].update(table="secrets"))
    assert refused(compiled).reason == "generated_without_origin"


def test_a_workload_in_no_dag_is_refused(workspace: Workspace) -> None:
    compiled = compile_it(workspace)

    def drop(dag: dict[str, Any]) -> None:
        dag["tasks"].pop()
        dag["edges"].clear()

    damage(compiled, "native", "dags/sales.sales.json", drop)
    assert refused(compiled).reason == "workload_without_task"


def test_a_transfer_and_a_project_of_one_name_are_refused(workspace: Workspace) -> None:
    workspace.transfer["id"] = "sales"
    assert refused(compile_it(workspace)).reason == "dag_id_twice"


def test_two_workloads_that_write_one_table_are_refused(workspace: Workspace) -> None:
    workspace.transfer["to"].update(schema="mart", table="daily_sales")
    problem = refused(compile_it(workspace))
    assert problem.reason == "two_workloads_write_one_relation"
    assert "ordinary.orders" in problem.found
    assert "native.sales.sales_mart" in problem.found


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("Daily_Sales", "names_unsafe_together"),
        ("daily_sales ", "names_unsafe_together"),
        ("ｄaily_sales", "names_unsafe_together"),
        ("daily_sales__dbt_tmp", "helper_relation_collides"),
        ("daily_sales__dbt_backup", "helper_relation_collides"),
        ("dpone_0123456789abcdef", "name_is_reserved"),
        ("x" * 64, "name_too_long"),
    ],
)
def test_names_that_cannot_stand_together_are_refused(workspace: Workspace, table: str, reason: str) -> None:
    workspace.transfer["to"].update(schema="mart", table=table)
    assert refused(compile_it(workspace)).reason == reason


def test_two_long_models_with_one_backup_name_are_refused(workspace: Workspace) -> None:
    names = ["m" * 59 + "_one", "m" * 59 + "_two"]
    workspace.value["native"][0]["workloads"][0]["publish"] = []
    workspace.dbt = FakeDbt(manifest({f"model.sales.{name}": model(name) for name in names}))
    problem = refused(compile_it(workspace))
    assert problem.reason == "helper_relation_collides"
    assert all(name in problem.found for name in names)


def test_a_model_named_like_a_helper_is_refused(workspace: Workspace) -> None:
    nodes = {f"model.sales.{name}": model(name) for name in ("sales", "sales__dbt_tmp")}
    workspace.value["native"][0]["workloads"][0]["publish"] = []
    workspace.dbt = FakeDbt(manifest(nodes))
    assert refused(compile_it(workspace)).reason == "helper_relation_collides"


def test_two_workloads_that_select_one_model_are_refused(workspace: Workspace) -> None:
    workspace.value["native"][0]["workloads"].append({"id": "again", "select": ["daily_sales"]})
    problem = refused(compile_it(workspace))
    assert problem.reason == "two_workloads_write_one_relation"
    assert "native.sales.again" in problem.found


def test_constituents_of_two_workspaces_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    compiled = compile_it(workspace)
    other = Workspace(tmp_path / "b" / "workspace")
    other.value["name"] = "other"
    (compiled / "ordinary").rename(compiled / "gone")
    (compile_it(other) / "ordinary").rename(compiled / "ordinary")
    assert refused(compiled).reason == "constituents_differ"
