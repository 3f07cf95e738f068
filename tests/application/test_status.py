"""What stands, and what blocks."""

from __future__ import annotations

import pytest

from dpone_provider.application.status import EnvironmentStatus, environment_status
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.occurrence import OccurrenceState
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown
from tests.simulation.actors import Crash
from tests.simulation.cache import SimulatedCache
from tests.simulation.outcomes import failure_of, report_of, succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import ENVIRONMENT, FLIGHTS, PLANES, World


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


def status(world: World, cache: SimulatedCache | None = None) -> EnvironmentStatus:
    """Read it."""
    return environment_status(world.ledger, cache or world.cache, world.clock, ENVIRONMENT)


def blocks(found: EnvironmentStatus) -> list[tuple[str, str]]:
    """Return what blocks, with the ways out."""
    return [(block.what, block.next_command) for block in found.blocks]


def test_of_nothing(world: World) -> None:
    found = status(world)
    assert (found.row, found.pointer, found.occurrences, found.live, found.blocks) == (None, None, (), (), ())


def test_of_what_runs(world: World) -> None:
    active = world.active()
    succeeded(world.run(world.binding(active, PLANES)))
    world.strike("child.start", Fault.CRASH)
    binding = world.binding(active, FLIGHTS)
    with pytest.raises(Crash):
        world.run(binding)
    found = status(world)
    assert found.row is not None
    assert found.row.holder_id == active.occurrence_id
    (live,) = found.live
    assert live.attempt.attempt_id == binding.attempt_id
    assert live.publication is not None
    assert [gate.delivered for gate in live.gates] == [True]
    assert found.blocks == ()


def test_more_live_attempts_than_are_shown(world: World) -> None:
    active = world.active()
    for name, work in (("first", FLIGHTS), ("second", PLANES)):
        world.strike("child.start", Fault.CRASH, actor=name)
        with pytest.raises(Crash):
            world.run(world.binding(active, work), actor=name)
    every = status(world)
    assert (len(every.live), every.more_live) == (2, False)
    few = environment_status(world.ledger, world.cache, world.clock, ENVIRONMENT, most=1)
    assert (few.live, few.more_live) == (every.live[:1], True)


@pytest.mark.parametrize(
    ("call", "state", "out"),
    [
        ("ledger.drain", OccurrenceState.REQUESTED, "dpone occurrence withdraw"),
        ("cache.swap_pointer", OccurrenceState.PREPARED, "dpone occurrence abandon"),
    ],
)
def test_a_promotion_that_is_not_finished(world: World, call: str, state: OccurrenceState, out: str) -> None:
    world.active(world.parent((FLIGHTS,)))
    world.strike(call, Fault.CRASH)
    with pytest.raises(Crash):
        world.promote(world.parent((FLIGHTS, PLANES)))
    (block,) = [what for what in blocks(status(world)) if "is not finished" in what[0]]
    assert f"({state})" in block[0]
    assert out in block[1]


def test_a_retirement_that_is_not_finished(world: World) -> None:
    active = world.active()
    world.coordinator.begin_retirement(active.occurrence_id)
    ((what, out),) = blocks(status(world))
    assert "(RETIRING)" in what
    assert f"dpone occurrence retire {active.occurrence_id}" in out


def test_an_attempt_in_unknown(world: World) -> None:
    binding = world.binding(world.active())
    world.strike("publisher.observe", Fault.ERROR)
    report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
    ((what, out),) = blocks(status(world))
    assert "(COMMIT_UNKNOWN)" in what
    assert out == f"dpone attempt reconcile {binding.attempt_id}"


@pytest.mark.parametrize(("call", "gate"), [("gate.disable", "CLOSING"), ("ledger.seal", "CLOSED")])
def test_an_attempt_whose_end_stands_still(world: World, call: str, gate: str) -> None:
    """Found: it blocked its slots and was not shown as doing so."""
    binding = world.binding(world.active())
    world.strike(call, Fault.ERROR)
    failure_of(world.run(binding), Unknown, "unreadable" if gate == "CLOSING" else "authority_unreachable")
    ((what, out),) = blocks(status(world))
    assert "(RUNNING)" in what
    assert f"({gate}, delivered)" in what
    assert f"dpone recover --attempt {binding.attempt_id}" in out


def test_a_cache_that_lags(world: World) -> None:
    active = world.active()
    ((what, out),) = blocks(status(world, SimulatedCache(world.wire)))
    assert active.occurrence_id in what
    assert "cache-sync" in out


def test_a_cache_that_points_elsewhere(world: World) -> None:
    first = world.parent((FLIGHTS,))
    lagging = SimulatedCache(world.wire)
    world.active(first)
    world.promote(first, cache=lagging)
    world.active(world.parent((FLIGHTS, PLANES)))
    ((what, _),) = blocks(status(world, lagging))
    assert "does not point at" in what


def test_a_pointer_that_cannot_be_read(world: World) -> None:
    world.active()
    world.cache.broken_pointers.add(ENVIRONMENT)
    found = status(world)
    assert isinstance(found.pointer, Refused)
    ((what, _),) = blocks(found)
    assert "pointer_broken" in what


def test_a_silent_ledger(world: World) -> None:
    world.ledger.reachable = False
    with pytest.raises(DponeError) as found:
        status(world)
    failure_of(found.value, Unknown, "authority_unreachable")
