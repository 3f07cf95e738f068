from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpone_provider.adapters.workspace import DiskWorkspace
from dpone_provider.application.build import BuiltDeployment, build, verified_parent
from dpone_provider.application.compile import CompiledWorkspace, compile_workspace
from dpone_provider.application.compose import ComposedRelease, compose
from dpone_provider.application.parent import Parent
from dpone_provider.application.refusing import refusing
from dpone_provider.application.release import Released, release_workspace
from dpone_provider.domain.identity import Digest, digest_of
from dpone_provider.domain.outcomes import Problem, Refused
from tests.application.damage import Change, forged, with_checksums
from tests.application.workspaces import Workspace

FILES = DiskWorkspace()


@dataclass(frozen=True)
class Made:
    """A workspace with its release directory."""

    workspace: Workspace
    release: Path

    def build(self) -> BuiltDeployment | Refused:
        self.workspace.write()
        return build(self.release, self.workspace.environment_file, self.release.parent / "deployment", FILES)

    def built(self) -> BuiltDeployment:
        done = self.build()
        assert isinstance(done, BuiltDeployment), done
        return done

    def refused(self) -> Problem:
        done = self.build()
        assert isinstance(done, Refused)
        assert not (self.release.parent / "deployment").exists()
        return done.problem


@pytest.fixture
def made(tmp_path: Path) -> Made:
    workspace = Workspace(tmp_path / "workspace")
    done = compile_workspace(workspace.root, "synthetic", tmp_path / "compiled", workspace.ports())
    assert isinstance(done, CompiledWorkspace), done
    composed = compose(tmp_path / "compiled", tmp_path / "release", FILES)
    assert isinstance(composed, ComposedRelease), composed
    return Made(workspace, tmp_path / "release")


def verify(files: dict[str, bytes], deployment_id: Digest) -> Parent | Refused:
    return refusing(lambda: verified_parent(files, deployment_id, Path("/deployment")))


def problem(files: dict[str, bytes], deployment_id: Digest) -> Problem:
    done = verify(files, deployment_id)
    assert isinstance(done, Refused)
    return done.problem


def test_a_deployment_is_whole_and_verifies(made: Made) -> None:
    done = made.built()
    parent = verify(dict(done.files), done.deployment_id)
    assert isinstance(parent, Parent), parent
    assert parent.environment == "synthetic"
    assert sorted(parent.packs) == [
        "generated.sales.sales_mart.daily_sales",
        "native.sales.sales_mart",
        "ordinary.orders",
    ]
    assert parent.task_of("ordinary.orders").way == "replace"
    assert parent.connection("warehouse").reference == "warehouse.lab"


def test_only_what_a_release_needs_is_bound(made: Made) -> None:
    made.workspace.environment["bindings"]["unused"] = "shop.lab"
    done = made.built()
    assert "unused" not in json.loads(done.files["bindings.json"])["bindings"]


def test_the_three_steps_and_release_give_the_same_bytes_in_any_directory(made: Made, tmp_path: Path) -> None:
    stepwise = made.built()
    other = Workspace(tmp_path / "elsewhere" / "deep" / "workspace")
    done = release_workspace(other.root, "synthetic", tmp_path / "elsewhere" / "out", other.ports())
    assert isinstance(done, Released), done
    first, second = tmp_path / "deployment", tmp_path / "elsewhere" / "out"
    names = sorted(str(file.relative_to(first)) for file in first.rglob("*") if file.is_file())
    assert names == sorted(str(file.relative_to(second)) for file in second.rglob("*") if file.is_file())
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)
    assert done.built.deployment_id == stepwise.deployment_id


ENVIRONMENTS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda it: it["bindings"].pop("analytics"), "alias_without_connection"),
    (lambda it: it["bindings"].update(shop="shop.elsewhere"), "alias_without_connection"),
    (lambda it: it["connections"]["shop.lab"].update(family="production"), "another_family"),
    (lambda it: it["connections"]["shop.lab"].update(kind="clickhouse"), "other_engine"),
    (lambda it: it["connections"]["shop.lab"].update(kind="oracle"), "unsupported_connector"),
    (lambda it: it["connections"]["shop.lab"].update(credentials={"controller": "env:X"}), "source_without_reader"),
    (
        lambda it: it["connections"]["analytics.lab"].update(credentials={"reader": "env:X"}),
        "target_without_controller",
    ),
    (
        lambda it: it["connections"]["warehouse.lab"]["databases"]["warehouse"].update(managed_schemas=["stage"]),
        "schema_not_managed",
    ),
    (
        lambda it: it["connections"]["warehouse.lab"]["databases"]["warehouse"].update(incarnation_id="0" * 64),
        "incarnation_differs",
    ),
    (lambda it: it["connections"]["warehouse.lab"].update(password="x"), "document_field_unknown"),
    (
        lambda it: it["connections"]["analytics.lab"]["databases"]["mart"].pop("staging_schema"),
        "document_value_invalid",
    ),
]


@pytest.mark.parametrize(("change", "reason"), ENVIRONMENTS)
def test_an_environment_that_does_not_fit_is_refused(
    made: Made, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    change(made.workspace.environment)
    assert made.refused().reason == reason


def test_a_database_of_another_name_than_compiled_is_refused(made: Made) -> None:
    warehouse = made.workspace.environment["connections"]["warehouse.lab"]
    warehouse["endpoint"]["database"] = "warehouse2"
    warehouse["databases"] = {"warehouse2": warehouse["databases"]["warehouse"]}
    assert made.refused().reason == "other_database"


def test_a_credential_in_place_of_its_reference_is_not_shown(made: Made) -> None:
    secret = "postgresql://user:hunter2@host:5432/shop"
    made.workspace.environment["connections"]["shop.lab"]["credentials"] = {"reader": secret}
    found = made.refused()
    assert found.reason == "document_value_invalid"
    assert "hunter2" not in str(found)
    made.workspace.environment["connections"]["shop.lab"]["credentials"] = {"reader": "env:X"}
    made.workspace.environment["connections"]["shop.lab"]["endpoint"]["port"] = secret
    assert "hunter2" not in str(made.refused())


def test_two_aliases_of_one_database_share_its_slots(made: Made, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "b" / "workspace")
    workspace.environment["bindings"]["other"] = "warehouse.other"
    connections = workspace.environment["connections"]
    connections["warehouse.other"] = copy.deepcopy(connections["warehouse.lab"])
    again = dict(
        copy.deepcopy(workspace.transfer), id="again", to={"connection": "other", "schema": "stage", "table": "ORDERS"}
    )
    workspace.value["ordinary"].append(again)
    done = release_workspace(workspace.root, "synthetic", tmp_path / "b" / "out", workspace.ports())
    assert isinstance(done, Refused)
    assert done.problem.reason == "names_unsafe_together"
    again["to"]["table"] = "orders"
    done = release_workspace(workspace.root, "synthetic", tmp_path / "b" / "out", workspace.ports())
    assert isinstance(done, Refused)
    assert done.problem.reason == "two_workloads_write_one_relation"


def test_a_target_in_the_staging_database_is_refused(made: Made, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "b" / "workspace")
    workspace.publish["to"]["database"] = "dpone_stage"
    workspace.environment["connections"]["analytics.lab"]["databases"]["mart"]["managed_schemas"] = [
        "dpone_stage",
        "mart",
    ]
    done = release_workspace(workspace.root, "synthetic", tmp_path / "b" / "out", workspace.ports())
    assert isinstance(done, Refused)
    assert done.problem.reason == "name_is_reserved"


FORGERIES: list[tuple[str, Change, str]] = [
    (
        "native/sales/workloads/sales_mart.json",
        lambda it: it["writes"].append({"schema": "zzz", "name": "x", "role": "target"}),
        "footprint_differs",
    ),
    ("native/sales/workloads/sales_mart.json", lambda it: it["writes"].pop(), "footprint_differs"),
    ("native/sales/workloads/sales_mart.json", lambda it: it["reads"].clear(), "footprint_differs"),
    (
        "native/sales/workloads/sales_mart.json",
        lambda it: it["nodes"][1].update(rebuilt_whole=False),
        "footprint_differs",
    ),
    (
        "native/sales/workloads/sales_mart.json",
        lambda it: it.update(bundle_digest="sha256:" + "0" * 64),
        "project_not_as_compiled",
    ),
    ("native/sales/manifest.json", lambda it: it["nodes"].popitem(), "project_not_as_compiled"),
    ("ordinary/orders.json", lambda it: it["state"].update(atomicity="append"), "state_declaration_differs"),
    ("ordinary/orders.json", lambda it: it.update(strategy="append"), "unsupported_strategy"),
    ("ordinary/orders.json", lambda it: it.update(id="ordinary.others"), "pack_not_as_listed"),
    ("ordinary/orders.json", lambda it: it["publication"].update(way="exchange"), "document_value_invalid"),
    ("ordinary/orders.json", lambda it: it["target"].update(schema="elsewhere"), "schema_not_managed"),
    ("dags/sales.orders.json", lambda it: it.update(dag_id="sales.other"), "dag_not_as_listed"),
    ("dags/sales.orders.json", lambda it: it["tasks"][0].update(way="exchange"), "plan_differs"),
    ("registry.json", lambda it: it["connections"][2].update(family="production"), "another_family"),
    ("registry.json", lambda it: it["connections"].pop(1), "alias_without_connection"),
    ("bindings.json", lambda it: it.update(environment="other"), "environment_differs"),
    ("release.json", lambda it: it["constituents"].pop(), "document_value_invalid"),
    ("release.json", lambda it: it.update(schema="dpone.release.v4"), "unknown_document_version"),
    ("release.json", lambda it: it.update(more=1), "document_field_unknown"),
]


@pytest.mark.parametrize(("path", "change", "reason"), FORGERIES)
def test_a_forged_deployment_is_refused_whatever_its_digests_say(
    made: Made, path: str, change: Change, reason: str
) -> None:
    files, deployment_id = forged(dict(made.built().files), path, change)
    assert problem(files, deployment_id).reason == reason


TOUCHES: list[tuple[Callable[[dict[str, bytes]], object], str]] = [
    (lambda it: it.pop("ordinary/orders.json"), "file_missing"),
    (lambda it: it.pop("release.json"), "file_missing"),
    (lambda it: it.pop("files.sha256"), "file_missing"),
    (lambda it: it.pop("deployment.json"), "not_a_deployment"),
    (lambda it: it.update({"more.txt": b"x"}), "file_unlisted"),
    (lambda it: it.update({"ordinary/orders.json": it["ordinary/orders.json"][:-2]}), "file_size_differs"),
    (lambda it: it.update({"registry.json": it["registry.json"].replace(b"5001", b"5002")}), "file_changed"),
    (lambda it: it.update({"files.sha256": it["files.sha256"] + b"\n"}), "checksums_differ"),
    (lambda it: it.update({"deployment.json": it["deployment.json"] + b" "}), "wrong_deployment_id"),
    (lambda it: it.update({"deployment.json": b'{"schema":"dpone.deployment.v2"}'}), "native_only_v2"),
    (lambda it: it.update({"release.json": b'{"schema":"dpone.release.v2","x":1}'}), "native_only_v2"),
]


@pytest.mark.parametrize(("touch", "reason"), TOUCHES)
def test_a_deployment_that_was_touched_is_refused(
    made: Made, touch: Callable[[dict[str, bytes]], object], reason: str
) -> None:
    done = made.built()
    files = dict(done.files)
    touch(files)
    assert problem(files, done.deployment_id).reason == reason


def test_a_manifest_with_a_name_that_no_document_may_hold_is_refused(made: Made) -> None:
    files = dict(made.built().files)
    path = "native/sales/workloads/sales_mart.json"
    manifest = json.loads(files["native/sales/manifest.json"])
    manifest["nodes"]["model.sales.daily_sales"]["alias"] = "x" * 300
    files["native/sales/manifest.json"] = json.dumps(manifest).encode()
    digest = digest_of(files["native/sales/manifest.json"])
    files, deployment_id = forged(files, path, lambda it: it.update(manifest_digest=digest))
    assert problem(files, deployment_id).reason == "document_value_invalid"


def test_another_id_than_the_deployments_is_refused(made: Made) -> None:
    done = made.built()
    found = problem(dict(done.files), digest_of(b"other"))
    assert found.reason == "wrong_deployment_id"
    assert found.found == done.deployment_id


def test_a_native_only_deployment_says_what_it_is(made: Made) -> None:
    files = {"release.json": b'{"schema":"dpone.release.v2"}'}
    assert problem(files, digest_of(b"any")).reason == "native_only_v2"


def test_a_document_in_another_spelling_is_refused(made: Made) -> None:
    files = dict(made.built().files)
    value = json.loads(files["deployment.json"])
    files["deployment.json"] = json.dumps(value, indent=1).encode()
    files = with_checksums(files)
    assert problem(files, digest_of(files["deployment.json"])).reason == "not_canonical"


def test_a_release_that_was_touched_is_not_built(made: Made) -> None:
    (made.release / "ordinary" / "orders.json").write_bytes(b"{}")
    assert made.refused().reason == "file_size_differs"


def test_an_environment_that_is_no_yaml_is_refused(made: Made) -> None:
    made.workspace.write()
    made.workspace.environment_file.write_text(yaml.safe_dump(made.workspace.environment) + "name: twice\n")
    done = build(made.release, made.workspace.environment_file, made.release.parent / "deployment", FILES)
    assert isinstance(done, Refused)
    assert done.problem.reason == "duplicate_key"
