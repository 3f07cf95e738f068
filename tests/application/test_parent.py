"""A verified parent: what each workload writes and reads, and through which connection."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.application.parent import footprint, footprints
from dpone_provider.domain.identity import Family
from dpone_provider.domain.outcomes import DponeError, Refused
from tests.simulation.outcomes import failure_of
from tests.simulation.world import DAILY, FLIGHTS, MART_DAILY, MART_LOG, MARTS, STAGE_FLIGHTS, World


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


def test_a_transfer_reads_there_and_writes_here(world: World) -> None:
    mark = footprint(world.parent(), FLIGHTS.id)
    assert (mark.reads, mark.writes) == ((FLIGHTS.source[1],), (FLIGHTS.target[1],))
    assert (mark.read_from.reference, mark.target.reference) == ("shop.main", "warehouse.main")


def test_dbt_reads_where_it_writes(world: World) -> None:
    mark = footprint(world.parent(), MARTS.id)
    assert (mark.reads, mark.writes) == ((STAGE_FLIGHTS,), (MART_DAILY, MART_LOG))
    assert mark.source is None
    assert mark.read_from == mark.target


def test_footprints_come_in_workload_order(world: World) -> None:
    ids = [mark.workload_id for mark in footprints(world.parent())]
    assert ids == sorted(ids)


def test_a_parent_knows_its_environment_family_constituents_and_plans(world: World) -> None:
    parent = world.parent()
    assert (parent.environment, parent.family) == ("synthetic", Family.NONPRODUCTION)
    assert (parent.constituent_of(FLIGHTS.id), parent.constituent_of(DAILY.id)) == ("ordinary", "native")
    assert parent.task_of(DAILY.id).workload_id == DAILY.id


@pytest.mark.parametrize(
    ("alias", "found"), [("nobody", "no binding"), ("warehouse", "a binding to warehouse.main")], ids=["alias", "entry"]
)
def test_what_is_not_bound_is_refused(world: World, alias: str, found: str) -> None:
    whole = world.parent()
    parent = replace(whole, registry=whole.registry.model_copy(update={"connections": ()}))
    with pytest.raises(DponeError) as refused:
        parent.connection(alias)
    assert found in failure_of(refused.value, Refused, "alias_without_connection").problem.found
