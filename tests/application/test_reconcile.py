"""Independent reconciliation: source and target are read again, and compared row by row."""

from __future__ import annotations

import pytest

from dpone_provider.application.reconcile import Reconciler, TableReconciliation, in_words
from dpone_provider.domain.outcomes import Failed, Refused
from tests.simulation.deployments import COLUMNS
from tests.simulation.outcomes import failure_of, succeeded
from tests.simulation.tables import batch_of
from tests.simulation.wire import Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, PLANES, ROWS, STAGE_FLIGHTS, WORKS, World


@pytest.fixture
def world() -> World:
    """A world in which everything has run."""
    world = World()
    active = world.active()
    for work in WORKS:
        succeeded(world.run(world.binding(active, work)))
    return world


def compared(world: World) -> dict[str, TableReconciliation]:
    """Compare every transfer."""
    return {one.workload_id: one for one in Reconciler(services=world).run(world.parent())}


def plant(world: World, *rows: tuple[object, ...]) -> TableReconciliation:
    """Put these rows at the target, by somebody's hand, and compare."""
    world.warehouse.tables[STAGE_FLIGHTS].batches = [batch_of(COLUMNS, rows)]
    return compared(world)[FLIGHTS.id]


def test_every_transfer_agrees(world: World) -> None:
    found = compared(world)
    assert set(found) == {FLIGHTS.id, PLANES.id, DAILY.id}
    assert MARTS.id not in found
    for one in found.values():
        assert one.agrees, one.outcome
        assert in_words(one).startswith(f"agree: {len(ROWS)} rows, xxh3sum128:")
    assert found[FLIGHTS.id].source == "shop.main public.flights"
    assert found[FLIGHTS.id].target == "warehouse.main stage.flights"


def test_a_wrong_value_is_found_by_its_key(world: World) -> None:
    found = plant(world, ROWS[0], (2, "UA", 7), ROWS[2])
    assert not found.agrees
    words = in_words(found)
    assert words.startswith("DIFFER")
    assert "2" in words
    assert "7" in words


def test_a_duplicate_a_missing_and_an_unexpected_row_are_found(world: World) -> None:
    assert not plant(world, *ROWS, ROWS[0]).agrees
    assert not plant(world, *ROWS[1:]).agrees
    assert not plant(world, *ROWS, (4, "XX", 0)).agrees


def test_two_values_that_changed_places_are_found(world: World) -> None:
    assert not plant(world, (1, "UA", 5), (2, "AA", None), ROWS[2]).agrees


def test_a_table_that_moves_while_it_is_read_is_told(world: World) -> None:
    plant(world, ROWS[0], (2, "UA", 7), ROWS[2])

    def move() -> None:
        world.warehouse.tables[STAGE_FLIGHTS].batches = [batch_of(COLUMNS, ROWS)]

    world.strike("reader.snapshot", do=move, nth=5)
    assert "changed while it was read" in in_words(compared(world)[FLIGHTS.id])


def test_what_cannot_be_read_keeps_nobody_else(world: World) -> None:
    world.strike("reader.snapshot", Fault.ERROR)
    found = compared(world)
    broken = [one for one in found.values() if not one.agrees]
    assert len(broken) == 1
    failure_of(broken[0].outcome, Failed, "source_broke")
    assert in_words(broken[0]).startswith("source_broke")


def test_a_target_that_is_gone_is_told(world: World) -> None:
    del world.warehouse.tables[STAGE_FLIGHTS]
    failure_of(compared(world)[FLIGHTS.id].outcome, Refused, "source_differs")
