"""Documents whose fields are each fine and together are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.documents.registry import read_document
from dpone_provider.documents.run_report import RunReportV1
from dpone_provider.domain.outcomes import Refused
from tests.documents.compiled import every_document

DOCUMENTS = {document.schema_id: document for document in every_document()}
ZERO, OTHER = "0" * 64, "sha256:" + "0" * 64

CASES: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("composition-activation-request.v1", lambda it: it["slots"][0].update(slot_id=ZERO)),
    ("composition-activation-request.v1", lambda it: it["slots"][0].update(name="other")),
    ("composition-activation-request.v1", lambda it: it["databases"][0].update(incarnation_id=ZERO)),
    ("composition-activation-request.v1", lambda it: it["databases"][0]["facts"].pop()),
    ("composition-activation-request.v1", lambda it: it["databases"][0]["facts"].reverse()),
    ("composition-activation-request.v1", lambda it: it["workloads"][0]["reads"].append(ZERO)),
    ("composition-activation-request.v1", lambda it: it["workloads"][0]["writes"].clear()),
    ("composition-activation-request.v1", lambda it: it["workloads"].append(it["workloads"][0])),
    ("composition-attempt.v1", lambda it: it["airflow"].update(try_number=2)),
    ("composition-attempt-proof.v1", lambda it: it["observed"][0].update(value="1")),
    ("composition-attempt-proof.v1", lambda it: it.update(kind="GATES_CLOSED")),
    ("composition-attempt-proof.v1", lambda it: it.update(outcome=None)),
    ("composition-attempt-proof.v1", lambda it: it.update(outcome="RUNNING")),
    ("connection-registry.v1", lambda it: it["connections"][0]["databases"][0].update(name="other")),
    ("connection-registry.v1", lambda it: it["connections"][0]["databases"][0].update(staging_schema=None)),
    ("connection-registry.v1", lambda it: it["connections"][1]["databases"][0].update(staging_schema="x")),
    (
        "connection-registry.v1",
        lambda it: it["connections"][0].update(credentials={"controller": None, "reader": None}),
    ),
    ("connection-registry.v1", lambda it: it["connections"][0]["login_issuer"].update(mode="pool")),
    ("connection-registry.v1", lambda it: it["connections"][0]["login_issuer"].update(pool_reference="env:POOL")),
    ("connection-registry.v1", lambda it: it["connections"].reverse()),
    ("constituent.v1", lambda it: it["constituent"].update(empty=True)),
    ("constituent.v1", lambda it: it["constituent"].update(kind="ordinary")),
    ("constituent.v1", lambda it: it["constituent"]["packs"][0].update(state=None)),
    ("constituent.v1", lambda it: it["constituent"]["packs"][0].update(kind="execution", state=None)),
    ("dag-spec.v1", lambda it: it["tasks"][0].update(way=None)),
    ("dag-spec.v1", lambda it: it["tasks"][0].update(operator="dbt")),
    ("dag-spec.v1", lambda it: it["edges"].append({"up": "zzz", "down": it["tasks"][0]["task_id"]})),
    ("dag-spec.v1", lambda it: it.update(schedule="@daily")),
    ("deployment.v3", lambda it: it.update(release=OTHER)),
    ("deployment.v3", lambda it: it["files"].insert(0, {"path": "deployment.json", "size": 1, "digest": OTHER})),
    ("deployment.v3", lambda it: it["files"].reverse()),
    ("execution-pack.v2", lambda it: it.update(project="other")),
    ("execution-pack.v2", lambda it: it.update(selection_digest=OTHER)),
    ("execution-pack.v2", lambda it: it["nodes"].reverse()),
    ("release.v3", lambda it: it["constituents"].pop()),
    ("release.v3", lambda it: it["constituents"][0]["packs"][0].update(digest=OTHER)),
    ("release.v3", lambda it: it["constituents"][0]["dags"][0].update(file="dags/other.json")),
    ("release.v3", lambda it: it["constituents"][1]["dags"][0].update(it["constituents"][0]["dags"][0])),
    ("transfer-pack.v1", lambda it: it.update(id="generated.a.b.c")),
    ("transfer-pack.v1", lambda it: it["publication"].update(way="exchange")),
    ("transfer-pack.v1", lambda it: it["publication"].update(way="switch")),
    ("transfer-pack.v1", lambda it: it["target"].update(kind="clickhouse")),
    ("transfer-pack.v1", lambda it: it["columns"][0].update(nullable=True)),
    ("transfer-pack.v1", lambda it: it["columns"][0].update(type="INT64")),
    ("transfer-pack.v1", lambda it: it["columns"].append(it["columns"][0])),
    ("transfer-pack.v1", lambda it: it["key"].append("nowhere")),
    ("transfer-pack.v1", lambda it: it["schema_policy"].update(drop_columns=["note"])),
    ("transfer-pack.v1", lambda it: it["target"].update(storage={"engine": "M", "order_by": [], "partition_by": None})),
    ("workspace.v1", lambda it: it["ordinary"].append(it["ordinary"][0])),
    ("workspace.v1", lambda it: it["native"].append(it["native"][0])),
    ("workspace.v1", lambda it: it["native"][0]["workloads"].append(it["native"][0]["workloads"][0])),
    (
        "workspace.v1",
        lambda it: it["native"][0]["workloads"][0]["publish"].append(it["native"][0]["workloads"][0]["publish"][0]),
    ),
    ("workspace.v1", lambda it: it["ordinary"][0]["to"].update(database="both")),
    ("workspace.v1", lambda it: it["ordinary"][0]["to"].update(schema=None)),
    ("workspace.v1", lambda it: it["ordinary"][0]["from"].update(table="a\u0085b")),
]


@pytest.mark.parametrize(("schema", "change"), CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)])
def test_a_document_that_contradicts_itself_is_refused(schema: str, change: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(DOCUMENTS[f"dpone.{schema}"].canonical_bytes())
    change(value)
    found = read_document(canonical_bytes(value), "x.json")
    assert isinstance(found, Refused), found
    assert found.problem.reason == "document_value_invalid"


def test_sql_server_has_two_ways() -> None:
    value = json.loads(DOCUMENTS["dpone.transfer-pack.v1"].canonical_bytes())
    value["target"]["kind"] = "mssql"
    for way in ("replace", "switch"):
        value["publication"]["way"] = way
        assert not isinstance(read_document(canonical_bytes(value), "x.json"), Refused)
    value["publication"]["way"] = "exchange"
    found = read_document(canonical_bytes(value), "x.json")
    assert isinstance(found, Refused)
    assert "replace or switch" in found.problem.allowed


def test_edges_in_a_circle_are_refused() -> None:
    value = json.loads(DOCUMENTS["dpone.dag-spec.v1"].canonical_bytes())
    task = value["tasks"][0]
    other = task | {"task_id": "zzz", "workload_id": "ordinary.zzz"}
    value["tasks"].append(other)
    one, two = {"up": task["task_id"], "down": "zzz"}, {"up": "zzz", "down": task["task_id"]}
    value["edges"] = [one]
    assert not isinstance(read_document(canonical_bytes(value), "x.json"), Refused)
    value["edges"] = [one, two]
    assert isinstance(read_document(canonical_bytes(value), "x.json"), Refused)
    value["edges"], other["workload_id"] = [one], task["workload_id"]
    assert isinstance(read_document(canonical_bytes(value), "x.json"), Refused)


@pytest.mark.parametrize(
    ("change", "complete"),
    [
        ({}, True),
        ({"observed_workloads": 0}, False),
        ({"stages": ()}, False),
    ],
)
def test_a_report_is_complete_only_when_everything_was_observed(change: dict[str, Any], complete: bool) -> None:
    report = DOCUMENTS["dpone.run-report.v1"]
    assert isinstance(report, RunReportV1)
    assert report.model_copy(update=change).complete is complete
    failed = report.stages[0].model_copy(update={"verdict": "failed"})
    assert not report.model_copy(update={"stages": (failed,)}).complete
