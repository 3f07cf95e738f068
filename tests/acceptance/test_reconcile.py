"""``dpone reconcile`` finds what stands at a target and not at its source, by key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.commands import Said, dpone
from tests.acceptance.world import Place, World, succeeded

PLANTED = {
    "a wrong row": ("UPDATE stage.{orders} SET word = 'wrong' WHERE id = 3", ["3"]),
    "two swapped values": (
        "UPDATE stage.{orders} SET word = 'word ' || (CASE id WHEN 2 THEN 4 ELSE 2 END) WHERE id IN (2, 4)",
        ["2", "4"],
    ),
    "a duplicated pair": (
        "ALTER TABLE stage.{orders} DROP CONSTRAINT {orders}_pkey;"
        "INSERT INTO stage.{orders} SELECT * FROM stage.{orders} WHERE id IN (1, 5)",
        ["1", "5"],
    ),
    "a missing row": ("DELETE FROM stage.{orders} WHERE id = 4", ["4"]),
    "a row too many": ("INSERT INTO stage.{orders} VALUES (77, 'more', 1)", ["77"]),
}


@pytest.fixture(scope="module")
def place(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(the_world, tmp_path_factory.mktemp("reconcile"))
    made.source("orders")
    promoted = made.promote(made.release(made.transfer("orders"), made.onward("orders") | {"id": "onward"}))
    succeeded(made.run(promoted, "orders"))
    succeeded(made.run(promoted, "onward"))
    yield made
    assert the_world.violations() == []


def reconciled(place: Place) -> tuple[Said, Said]:
    """Return what the command says as text and as JSON."""
    return dpone(place, "reconcile"), dpone(place, "reconcile", "--format", "json")


def listed(deviations: list[str], key: str) -> bool:
    """Tell whether a deviation names a key."""
    return any(f"{key}" in deviation for deviation in deviations)


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_in_the_warehouse(place: Place, name: str) -> None:
    statement, keys = PLANTED[name]
    place.in_warehouse("CREATE TABLE public.{kept} AS SELECT * FROM stage.{orders}")
    for part in statement.split(";"):
        place.in_warehouse(part)
    try:
        text, said = reconciled(place)
        assert (text.code, said.code) == (1, 1), said.everything
        onward, orders = said.json["tables"]
        assert (onward["agrees"], orders["agrees"]) == (True, False)
        for key in keys:
            assert any(key in one for one in orders["deviations"]), orders
            assert key in text.out
        assert "DIFFER" in text.out
        assert len(orders["deviations"]) == len(keys), orders
    finally:
        place.in_warehouse("TRUNCATE stage.{orders}")
        place.in_warehouse("INSERT INTO stage.{orders} SELECT * FROM public.{kept}")
        place.in_warehouse("DROP TABLE public.{kept}")
    assert reconciled(place)[1].code == 0


def test_what_was_planted_in_clickhouse(place: Place) -> None:
    """A wrong row instead of the right one, and a duplicate."""
    table = f"mart.{place.table('orders')}"
    place.world.clickhouse(f"ALTER TABLE {table} DELETE WHERE id = 2 SETTINGS mutations_sync = 1")
    place.world.clickhouse(f"INSERT INTO {table} VALUES (2, 'wrong', 2.5), (4, 'word 4', 5)")
    text, said = reconciled(place)
    assert (text.code, said.code) == (1, 1), said.everything
    onward, orders = said.json["tables"]
    assert (onward["agrees"], orders["agrees"]) == (False, True)
    assert len(onward["deviations"]) == 2, onward
    for key in ("2", "4"):
        assert any(key in one for one in onward["deviations"]), onward
