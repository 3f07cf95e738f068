from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from dpone_provider.documents.dbt_manifest import DbtManifest, read_manifest
from dpone_provider.domain.outcomes import Refused
from tests.application.workspaces import column, manifest, model, source


def read(value: Any) -> DbtManifest:
    found = read_manifest(json.dumps(value).encode(), "manifest.json")
    assert isinstance(found, DbtManifest), found
    return found


def reason(value: Any) -> str:
    found = read_manifest(json.dumps(value).encode(), "manifest.json")
    assert isinstance(found, Refused)
    return found.problem.reason


def names(found: DbtManifest, node_id: str) -> list[str]:
    return [str(each) for each in found.nodes[node_id].node.reads]


def test_nodes_their_relations_and_what_they_read() -> None:
    found = read(manifest())
    assert (found.project_name, found.adapter_type) == ("sales", "postgres")
    daily = found.model_named("daily_sales")
    assert daily is not None
    assert str(daily.node.relation) == "mart.daily_sales"
    assert found.model_named("nowhere") is None
    # A view is read with everything that it reads itself.
    assert names(found, "model.sales.daily_sales") == ["stage.orders", "stage.stg_orders"]
    test = found.nodes["test.sales.not_null_day"]
    assert test.node.relation is None
    assert names(found, "test.sales.not_null_day") == ["mart.daily_sales"]


def test_ephemeral_models_stand_for_what_they_read() -> None:
    nodes = {
        "model.sales.a": model("a", materialized="ephemeral", reads=["model.sales.b"]),
        "model.sales.b": model("b", materialized="ephemeral", reads=["source.sales.stage.orders", "macro.x"]),
        "model.sales.c": model("c", reads=["model.sales.a"]),
    }
    found = read(manifest(nodes))
    assert names(found, "model.sales.c") == ["stage.orders"]
    assert found.nodes["model.sales.a"].node.relation is None


def test_a_circle_ends() -> None:
    nodes = {
        "model.sales.a": model("a", materialized="view", reads=["model.sales.b"]),
        "model.sales.b": model("b", materialized="view", reads=["model.sales.a"]),
    }
    assert names(read(manifest(nodes)), "model.sales.a") == ["mart.a", "mart.b"]


def test_an_alias_is_the_name_and_other_databases_are_told() -> None:
    value = manifest({"model.sales.a": model("a", alias="b", reads=["source.sales.ref.x"])})
    value["sources"]["source.sales.ref.x"] = source("ref", "x") | {"database": "elsewhere"}
    node = read(value).nodes["model.sales.a"]
    assert str(node.node.relation) == "mart.b"
    assert node.databases == {"warehouse", "elsewhere"}


def test_columns_with_their_constraints() -> None:
    columns = {
        "a": column("A", "integer", not_null=True),
        "b": {"name": "b", "data_type": None, "constraints": [{"type": "primary_key"}, "strange"]},
        "c": {},
    }
    found = read(manifest({"model.sales.a": model("a", columns=columns)})).nodes["model.sales.a"].columns
    assert [(one.name, one.data_type, one.not_null) for one in found] == [
        ("A", "integer", True),
        ("b", None, True),
        ("c", None, False),
    ]


@pytest.mark.parametrize(
    ("more", "effect"),
    [
        ({"config": {"post-hook": [1]}}, "a post-hook"),
        ({"config": {"pre-hook": [1]}}, "a pre-hook"),
        ({"config": {"grants": {"select": ["x"]}}}, "the config grants"),
        ({"config": {"denies": {"select": ["x"]}}}, "the config denies"),
        ({"config": {"masks": {"day": "default()"}}}, "the config masks"),
        ({"config": {"schema_authorization": "x"}}, "the config schema_authorization"),
        ({"config": {"sql_header": "x"}}, "the config sql_header"),
        ({"materialized": "custom"}, "the materialization custom"),
        ({"language": "python"}, "the language python"),
    ],
)
def test_effects(more: dict[str, Any], effect: str) -> None:
    node = read(manifest({"model.sales.a": model("a", **copy.deepcopy(more))})).nodes["model.sales.a"]
    assert node.effects == (effect,)


@pytest.mark.parametrize(
    ("config", "stores"),
    [
        ({"store_failures": True}, True),
        ({"store_failures_as": "view"}, True),
        ({"store_failures_as": "ephemeral", "store_failures": False}, False),
        ({}, False),
    ],
)
def test_a_test_that_stores_its_failures(config: dict[str, Any], stores: bool) -> None:
    value = manifest()
    value["nodes"]["test.sales.not_null_day"]["config"] |= config
    effects = read(value).nodes["test.sales.not_null_day"].effects
    assert bool(effects) is stores


def test_hooks_of_the_run_are_effects_of_the_project() -> None:
    value = manifest()
    value["nodes"]["operation.sales.end-0"] = {"resource_type": "operation"}
    value["nodes"]["analysis.sales.x"] = {"resource_type": "analysis"}
    value["functions"] = {"function.sales.f": {}}
    assert read(value).effects == ("the hook operation.sales.end-0", "the function function.sales.f")


@pytest.mark.parametrize(
    ("materialized", "config", "expected"),
    [
        ("table", {}, True),
        ("incremental", {}, True),
        ("table", {"as_columnstore": False}, False),
        ("view", {"as_columnstore": True}, None),
    ],
)
def test_sql_servers_columnstores_are_told_as_the_adapter_makes_them(
    materialized: str, config: dict[str, Any], expected: bool | None
) -> None:
    """Its default is a columnstore: nobody has to know that."""
    value = manifest({"model.sales.a": model("a", materialized=materialized, config=config)})
    assert read(value).nodes["model.sales.a"].as_columnstore is None
    value["metadata"]["adapter_type"] = "sqlserver"
    assert read(value).nodes["model.sales.a"].as_columnstore is expected


def test_another_version_and_other_shapes_are_refused() -> None:
    assert reason(manifest(dbt_schema_version="https://schemas.getdbt.com/dbt/manifest/v11.json")) == "manifest_version"
    malformed: list[Any] = [None, [], {}, {"metadata": []}, manifest() | {"nodes": []}]
    assert {reason(each) for each in malformed} == {"manifest_malformed"}
    value = manifest()
    value["nodes"]["model.sales.daily_sales"]["columns"] = {"a": 3}
    assert reason(value) == "manifest_malformed"
    assert isinstance(read_manifest(b'{"a":1,"a":2}', "m"), Refused)


def test_damaged_manifests_are_read_or_refused_never_more() -> None:
    dice = random.Random(5)
    whole = manifest()
    for _ in range(2000):
        value = copy.deepcopy(whole)
        inner: Any = value
        for _ in range(dice.randrange(1, 6)):
            keys = (
                list(inner) if isinstance(inner, dict) else list(range(len(inner))) if isinstance(inner, list) else []
            )
            if not keys:
                break
            key = dice.choice(keys)
            if dice.random() < 0.4:
                inner[key] = dice.choice([None, 1, 1.5, "x", "", "a\nb", [], {}, [1], {"a": 1}, True])
                break
            inner = inner[key]
        found = read_manifest(json.dumps(value).encode(), "m")
        assert isinstance(found, DbtManifest | Refused)
