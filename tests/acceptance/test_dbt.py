"""dbt through the whole path: what does not parse, a test that fails and is mended."""

from __future__ import annotations

from tests.acceptance import dbt
from tests.acceptance.commands import dpone
from tests.acceptance.world import Place, succeeded


def test_a_project_that_does_not_parse(place: Place) -> None:
    workspace = place.workspace(native=dbt.native())
    dbt.project(place, workspace, sql="select 1 as id, {{ nowhere(")
    out = place.root / "out"
    said = dpone(place, "release", str(workspace), "--environment", place.name, "--out", str(out), "--format", "json")
    assert (said.code, said.json["reason"]) == (10, "dbt_project_does_not_parse"), said.everything
    assert said.json["state_change"] == "nothing changed"
    assert place.table("numbers") in said.json["found"]
    assert not out.exists()


def test_a_failing_test_is_failed_and_the_next_try_succeeds_once_it_is_mended(place: Place) -> None:
    place.source("orders", columns="id int, word text, n numeric(12, 2)")
    place.fill("orders", rows=1)
    workspace = place.workspace(place.transfer("orders"), native=dbt.native())
    dbt.project(place, workspace)
    promoted = place.promote(place.released(workspace))
    succeeded(place.run(promoted, "orders"))

    first = place.run(promoted, dbt.WORKLOAD, place.tried("the run", number=1))
    assert [state for _, state in place.attempts()] == ["SUCCEEDED", "FAILED"], first
    assert "unique" in str(first)

    place.in_shop("DELETE FROM {orders}")
    place.fill("orders", rows=3)
    succeeded(place.run(promoted, "orders"))
    succeeded(place.run(promoted, dbt.WORKLOAD, place.tried("the run", number=2)))
    assert place.in_warehouse("SELECT id FROM mart.{numbers} ORDER BY 1") == [(1,), (2,), (3,)]
