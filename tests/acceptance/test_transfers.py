"""Transfers from end to end: what is published, and what stays when nothing may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.outcomes import Failed, Failure, Refused, Unknown
from dpone_provider.lab.provisioning import SHOP_READER
from tests.acceptance.commands import dpone
from tests.acceptance.world import Place, World, succeeded

WORDS = {1: ("word 1", "1.25"), 2: ("word 2", "2.50"), 3: ("word 3", "3.75")}


def failed(outcome: AttemptReport | Failure) -> Failed | Refused | Unknown:
    """Return why nothing was published."""
    assert isinstance(outcome, AttemptReport | Failed | Refused | Unknown), outcome
    problem = outcome.problem if isinstance(outcome, AttemptReport) else outcome
    assert isinstance(problem, Failed | Refused | Unknown), outcome
    return problem


@pytest.mark.parametrize("engine", ["warehouse", "analytics"])
def test_each_refresh_is_the_source_as_it_is(place: Place, engine: str) -> None:
    """First load, refresh with changed, new and deleted rows, and an empty source: the target is exactly that."""
    place.source("orders", rows=3)
    transfer = place.transfer("orders") if engine == "warehouse" else place.onward("orders")
    promoted = place.promote(place.release(transfer))

    def target() -> list[tuple[str, ...]]:
        if engine == "analytics":
            return [tuple(line.split("\t")) for line in place.mart("orders")]
        return [tuple(map(str, row)) for row in place.target("orders")]

    def source() -> list[tuple[str, ...]]:
        return [tuple(map(str, row)) for row in place.in_shop("SELECT * FROM {orders} ORDER BY 1")]

    first = succeeded(place.run(promoted, "orders"))
    assert first.metrics["rows"] == 3
    assert target() == [(str(key), word, n) for key, (word, n) in WORDS.items()]

    place.in_shop("DELETE FROM {orders} WHERE id = 2")
    place.in_shop("UPDATE {orders} SET word = 'other' WHERE id = 3")
    place.fill("orders", rows=2, first=4)
    succeeded(place.run(promoted, "orders"))
    assert target() == source()
    assert len(source()) == 4
    assert dpone(place, "reconcile").code == 0

    place.in_shop("DELETE FROM {orders}")
    assert succeeded(place.run(promoted, "orders")).metrics["rows"] == 0
    assert target() == []
    assert dpone(place, "reconcile").code == 0


@dataclass(slots=True)
class Loaded:
    """A place with a table of five rows in the warehouse, loaded from a source that a test then changes."""

    place: Place
    promoted: PromotionReport
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def fails(self) -> Failed | Refused | Unknown:
        """Run it; it must fail, with the old rows in place."""
        problem = failed(self.place.run(self.promoted, "orders"))
        assert self.place.target("orders") == self.rows
        assert problem.problem.next_command
        return problem


def load(place: Place, **more: Any) -> Loaded:
    """Load a table once."""
    place.source("orders")
    promoted = place.promote(place.release(place.transfer("orders", **more)))
    succeeded(place.run(promoted, "orders"))
    return Loaded(place, promoted, place.target("orders"))


CHANGES = {
    "another type": "ALTER TABLE {orders} ALTER n TYPE double precision",
    "a narrower type": "ALTER TABLE {orders} ALTER n TYPE numeric(10, 3)",
    "a column less": "ALTER TABLE {orders} DROP COLUMN word",
    "another name": "ALTER TABLE {orders} RENAME COLUMN word TO words",
    "nullable": "ALTER TABLE {orders} DROP CONSTRAINT {orders}_pkey; ALTER TABLE {orders} ALTER id DROP NOT NULL",
    "no table": "ALTER TABLE {orders} RENAME TO {orders}_gone",
}


@pytest.fixture(scope="module")
def changing(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    yield load(Place(the_world, tmp_path_factory.mktemp("changing")))
    assert the_world.violations() == []


@pytest.mark.parametrize("name", CHANGES)
def test_a_source_that_changed_since_it_was_compiled(changing: Loaded, name: str) -> None:
    place = changing.place
    for statement in CHANGES[name].split(";"):
        place.in_shop(statement)
    try:
        problem = changing.fails()
        assert problem.problem.reason in ("source_differs", "source_missing"), problem
        assert "compile" in problem.problem.next_command
    finally:
        place.in_shop("DROP TABLE IF EXISTS {orders}, {orders}_gone")
        place.source("orders")


def test_a_column_more_is_not_asked_for_until_it_is_compiled(place: Place) -> None:
    """The pack says which columns; the new release brings the new one, the target's definition with it."""
    loaded = load(place)
    place.in_shop("ALTER TABLE {orders} ADD COLUMN more int")
    place.in_shop("UPDATE {orders} SET more = id * 2")
    succeeded(place.run(loaded.promoted, "orders"))
    assert place.target("orders") == loaded.rows
    wider = place.promote(place.release(place.transfer("orders")))
    succeeded(place.run(wider, "orders"))
    assert [row[-1] for row in place.target("orders")] == [2, 4, 6, 8, 10]
    assert dpone(place, "reconcile").code == 0


def test_bounds_that_are_passed(place: Place) -> None:
    loaded = load(place, bounds={"max_rows": 5, "max_bytes": 10_000, "batch_rows": 2})
    place.fill("orders", rows=1, first=6)
    assert loaded.fails().problem.reason == "bounds_passed"
    place.in_shop("DELETE FROM {orders} WHERE id > 1")
    place.in_shop("UPDATE {orders} SET word = repeat('x', 20000)")
    assert loaded.fails().problem.reason == "bounds_passed"
    place.in_shop("UPDATE {orders} SET word = 'short again'")
    succeeded(place.run(loaded.promoted, "orders"))
    assert [row[1] for row in place.target("orders")] == ["short again"]


@pytest.mark.parametrize("engine", ["warehouse", "analytics"])
def test_a_source_that_dies_midway(place: Place, engine: str) -> None:
    place.source("orders")
    transfer = place.transfer("orders") if engine == "warehouse" else place.onward("orders")
    promoted = place.promote(place.release(transfer))
    succeeded(place.run(promoted, "orders"))
    before = place.target("orders") if engine == "warehouse" else place.mart("orders")
    place.fill("orders", rows=40_000, first=6)
    shop = place.world.wires["shop"]
    moment = shop.after_bytes(300_000, shop.down)
    problem = failed(place.run(promoted, "orders"))
    assert moment.came()
    assert isinstance(problem, Failed), problem
    assert (place.target("orders") if engine == "warehouse" else place.mart("orders")) == before
    # And while it is not there at all.
    failed(place.run(promoted, "orders"))
    shop.up()
    assert succeeded(place.run(promoted, "orders")).metrics["rows"] == 40_005


def test_another_incarnation_of_the_source(place: Place) -> None:
    """The database is dropped and recreated under its name, with a table of the same name: not the pinned one."""
    name = place.table("shop")
    connection = place.environment["connections"]["shop.lab"]
    elsewhere = place.root / "reader"
    elsewhere.parent.mkdir(parents=True, exist_ok=True)
    url = _text(connection["credentials"]["reader"])
    elsewhere.touch(mode=0o600)
    elsewhere.write_text(url.rpartition("/")[0] + f"/{name}\n")
    (facts,) = connection["databases"].values()

    def recreate(rows: int) -> str:
        place.world.sql("postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        place.world.sql("postgres", f"CREATE DATABASE {name}")
        place.world.sql("postgres", f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
        place.world.sql("postgres", f"GRANT CONNECT ON DATABASE {name} TO {SHOP_READER}")
        place.world.sql(name, "CREATE TABLE orders (id int PRIMARY KEY, word text, n numeric(12, 2))")
        place.world.sql(name, "INSERT INTO orders SELECT i, 'of another life', 1 FROM generate_series(1, %s) i", rows)
        place.world.sql(name, f"GRANT SELECT ON orders TO {SHOP_READER}")
        ((oid,),) = place.world.sql(name, "SELECT oid::text FROM pg_database WHERE datname = current_database()")
        return str(oid)

    place.environment["connections"]["shop.lab"] = connection | {
        "endpoint": connection["endpoint"] | {"database": name},
        "databases": {name: facts | {"facts": facts["facts"] | {"database_oid": recreate(3)}}},
        "credentials": {"reader": f"file:{elsewhere}"},
    }
    transfer = place.transfer("orders")
    transfer["from"]["table"] = "orders"
    promoted = place.promote(place.release(transfer))
    succeeded(place.run(promoted, "orders"))
    rows = place.target("orders")
    assert len(rows) == 3

    recreate(0)
    problem = failed(place.run(promoted, "orders"))
    assert problem.problem.reason == "incarnation_changed"
    assert place.target("orders") == rows
    said = dpone(place, "reconcile", "--format", "json")
    assert said.code == 1, said.everything
    assert "incarnation_changed" in said.out


def _text(reference: str) -> str:
    with open(reference.removeprefix("file:"), encoding="utf-8") as file:
        return file.read().strip()


def test_a_broken_key_at_the_target_keeps_the_old_rows(place: Place) -> None:
    loaded = load(place)
    place.in_shop("ALTER TABLE {orders} DROP CONSTRAINT {orders}_pkey")
    place.fill("orders", rows=1)
    loaded.fails()


def test_a_view_over_a_clickhouse_target_goes_on_working(place: Place) -> None:
    """It reads by name, so an exchange takes nothing from it: neither a promotion nor a refresh minds it."""
    place.source("orders", rows=2)
    succeeded(place.run(place.promote(place.release(place.onward("orders"))), "orders"))
    view = f"mart.{place.table('report')}"
    place.world.clickhouse(f"CREATE VIEW {view} AS SELECT count() AS n FROM mart.{place.table('orders')}")
    place.fill("orders", rows=3, first=3)
    promoted = place.promote(place.release(place.onward("orders", timeout_seconds=60)))
    succeeded(place.run(promoted, "orders"))
    assert place.world.clickhouse(f"SELECT n FROM {view}").strip() == "5"
