"""Targets and sources that cannot be owned, moved or read: refused before anything is written, and nothing is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import cache_sync, dpone, refused
from tests.acceptance.world import Place


def nothing_was_written(place: Place) -> bool:
    """Tell whether the ledger does not know the environment and nothing points anywhere.

    The cache may hold the deployment: it was verified before it was refused, and old bytes give no right to run.
    """
    return (place.states(), place.generation(), place.pointer.exists()) == ([], 0, False)


def released(place: Place, workspace: Path) -> dict[str, Any]:
    """Run ``dpone release``, which must refuse; return what it says. Nothing is written."""
    out = place.root / "out"
    arguments = ("release", str(workspace), "--environment", place.name, "--out", str(out))
    text = dpone(place, *arguments)
    said = dpone(place, *arguments, "--format", "json")
    assert (text.code, said.code) == (10, 10), text.everything + said.everything
    assert not out.exists()
    value = said.json
    assert value["state_change"] == "nothing changed"
    assert f"next:    {value['next_command']}" in text.err
    return value


# ─── what stands at a target ────────────────────────────────────────────────────────────────────────────────────────

IN_WAREHOUSE = {
    "a view": ("CREATE VIEW stage.{orders} AS SELECT 1 AS id", "target_of_another_kind"),
    "a materialised view": ("CREATE MATERIALIZED VIEW stage.{orders} AS SELECT 1 AS id", "target_of_another_kind"),
    "a sequence": ("CREATE SEQUENCE stage.{orders}", "target_of_another_kind"),
    "somebody's table": ("CREATE TABLE stage.{orders} (id int)", "foreign_object"),
    "a table of the writer role that no workload made": (
        "CREATE TABLE stage.{orders} (id int); ALTER TABLE stage.{orders} OWNER TO dpone_writer_stage",
        "foreign_object",
    ),
}


@pytest.mark.parametrize("name", IN_WAREHOUSE)
def test_what_stands_at_a_target_in_the_warehouse(place: Place, name: str) -> None:
    statement, reason = IN_WAREHOUSE[name]
    place.source("orders")
    deployment = place.release(place.transfer("orders"))
    for part in statement.split(";"):
        place.in_warehouse(part)
    said = refused(place, deployment)
    assert said["reason"] == reason
    assert place.table("orders") in said["subject"]
    assert nothing_was_written(place)


IN_ANALYTICS = {
    "a view": ("CREATE VIEW mart.{} AS SELECT 1 AS id", "target_of_another_kind"),
    "somebody's table": ("CREATE TABLE mart.{} (id Int32) ENGINE = MergeTree ORDER BY id", "foreign_object"),
}


@pytest.mark.parametrize("name", IN_ANALYTICS)
def test_what_stands_at_a_target_in_clickhouse(place: Place, name: str) -> None:
    statement, reason = IN_ANALYTICS[name]
    place.source("orders")
    deployment = place.release(place.onward("orders"))
    place.world.clickhouse(statement.replace("{}", place.table("orders")))
    assert refused(place, deployment)["reason"] == reason
    assert nothing_was_written(place)


def test_a_view_that_takes_the_targets_place_after_activation(place: Place) -> None:
    place.source("orders")
    promoted = place.promote(place.release(place.transfer("orders")))
    place.in_warehouse("CREATE VIEW stage.{orders} AS SELECT 1 AS id")
    done = place.run(promoted, "orders")
    assert getattr(done, "problem", None) is not None
    assert place.in_warehouse("SELECT * FROM stage.{orders}") == [(1,)]


# ─── whose it is ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_slot_of_another_environment(place: Place, tmp_path: Path) -> None:
    place.source("orders")
    place.promote(place.release(place.transfer("orders")))
    neighbour = Place(place.world, tmp_path / "neighbour")
    transfer = neighbour.transfer("orders")
    transfer["from"]["table"] = transfer["to"]["table"] = place.table("orders")
    said = refused(neighbour, neighbour.release(transfer))
    assert place.name in said["found"] + said["subject"] + said["allowed"], said
    assert place.table("orders") in said["subject"] + said["found"]
    assert nothing_was_written(neighbour)
    assert place.states() == ["ACTIVE"]


def test_the_slot_is_free_once_the_other_environment_gave_it_up(place: Place, tmp_path: Path) -> None:
    place.source("orders")
    promoted = place.promote(place.release(place.transfer("orders")))
    neighbour = Place(place.world, tmp_path / "neighbour")
    transfer = neighbour.transfer("orders")
    transfer["from"]["table"] = transfer["to"]["table"] = place.table("orders")
    deployment = neighbour.release(transfer)
    assert dpone(place, "occurrence", "retire", str(promoted.occurrence_id)).code == 0
    assert cache_sync(neighbour, deployment).code == 0
    assert place.epoch("orders") == 2


def test_another_family(place: Place) -> None:
    place.source("orders")
    place.environment["family"] = "production"
    place.environment["connections"] = {
        name: connection | {"family": "production"} for name, connection in place.environment["connections"].items()
    }
    assert released(place, place.workspace(place.transfer("orders")))["reason"] == "cell_not_for_family"
    place.environment["connections"]["ledger.lab"] = place.environment["connections"]["warehouse.lab"] | {
        "kind": "mssql",
        "databases": {"warehouse": {"facts": {"database_guid": "x"}, "managed_schemas": ["dbo"]}},
    }
    place.environment["bindings"]["erp"] = "ledger.lab"
    transfer = place.transfer("orders")
    transfer["to"] |= {"connection": "erp", "schema": "dbo"}
    said = refused(place, place.release(transfer))
    assert (said["reason"], said["allowed"][:20]) == ("another_family", "family nonproduction")
    assert nothing_was_written(place)


# ─── what a workspace asks for ──────────────────────────────────────────────────────────────────────────────────────


def test_an_alias_without_a_connection(place: Place) -> None:
    place.source("orders")
    workspace = place.workspace(place.transfer("orders", to="orders") | {"from": place.transfer("orders")["from"]})
    del place.environment["bindings"]["warehouse"]
    unbound = place.workspace(place.transfer("orders"))
    assert "warehouse" in str(released(place, unbound))
    assert cache_sync(place, place.released(workspace)).code == 0


def other_alias(place: Place, second: dict[str, Any]) -> None:
    place.environment["bindings"]["again"] = "warehouse.lab"
    second["to"]["connection"] = "again"


def other_case(place: Place, second: dict[str, Any]) -> None:
    second["to"]["table"] = place.table("orders").upper()


def same_name(place: Place, second: dict[str, Any]) -> None:
    pass


@pytest.mark.parametrize("how", [same_name, other_alias, other_case])
def test_two_workloads_that_write_one_table(place: Place, how: Callable[[Place, dict[str, Any]], None]) -> None:
    place.source("orders")
    place.source("others")
    second = place.transfer("others", to="orders")
    how(place, second)
    said = released(place, place.workspace(place.transfer("orders"), second))
    assert "ordinary.orders" in str(said)
    assert "ordinary.others" in str(said)


@pytest.mark.parametrize("column", ["interval", "money", "int[]", "point", "jsonb"])
def test_an_unsupported_source_type(place: Place, column: str) -> None:
    place.source("orders", rows=0, columns=f"id int PRIMARY KEY, odd {column}")
    said = released(place, place.workspace(place.transfer("orders")))
    assert "odd" in said["subject"] + said["found"]


def test_a_source_that_is_a_view_or_not_there(place: Place) -> None:
    place.in_shop("CREATE VIEW {orders} AS SELECT 1 AS id")
    assert released(place, place.workspace(place.transfer("orders")))["reason"] == "source_not_a_table"
    assert released(place, place.workspace(place.transfer("absent")))["reason"] == "source_missing"
