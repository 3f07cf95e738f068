"""Draining: what runs ends, or is ended because it is dead, until nothing lives or the time is up."""

from __future__ import annotations

import pytest

from dpone_provider.application.drain import ASK_SECONDS, Drain
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AttemptBinding
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import Busy, DponeError, Refused, Unknown
from tests.simulation.actors import Crash
from tests.simulation.outcomes import failure_of, report_of
from tests.simulation.wire import Fault
from tests.simulation.world import FLIGHTS, PLANES, World


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


@pytest.fixture
def active(world: World) -> Occurrence:
    """Everything is promoted."""
    return world.active()


@pytest.fixture
def drain(world: World) -> Drain:
    """The drain."""
    return world.drain


def running(world: World, binding: AttemptBinding, *, dead: bool) -> AttemptBinding:
    """Leave an attempt RUNNING whose controller is gone; Airflow says whether it is dead."""
    name = f"controller of {binding.attempt_id[:8]}"
    hook = world.strike("child.start", Fault.CRASH, actor=name)
    with pytest.raises(Crash):
        world.run(binding, actor=name)
    world.wire.hooks.remove(hook)
    if dead:
        world.airflow.kill(binding.airflow)
    return binding


def wait(world: World, drain: Drain, active: Occurrence, seconds: float = 30.0) -> None:
    """Drain the occurrence."""
    drain.wait(active.occurrence_id, Deadline.after(world.clock, seconds), world.told.append)


def test_nothing_lives(world: World, drain: Drain, active: Occurrence) -> None:
    began = world.clock.monotonic()
    wait(world, drain, active)
    assert world.clock.monotonic() == began


def test_the_dead_are_ended_at_once(world: World, drain: Drain, active: Occurrence) -> None:
    lost = [running(world, world.binding(active, work), dead=True) for work in (FLIGHTS, PLANES)]
    wait(world, drain, active)
    assert {world.state(one) for one in lost} == {AttemptState.FAILED}
    assert "waiting" not in "".join(world.told)


def test_the_living_are_waited_for_and_told_once_for_each_number(
    world: World, drain: Drain, active: Occurrence
) -> None:
    """Found: the same line four times a second, for as long as the drain took."""
    living = [running(world, world.binding(active, work), dead=False) for work in (FLIGHTS, PLANES)]

    def end_them() -> None:
        for one in living:
            world.clock.wait(5.0)
            world.recovery.recover_on_word(one.attempt_id)

    world.actors.spawn("operator", end_them)
    wait(world, drain, active)
    told = [line for line in world.told if line.startswith("waiting")]
    assert [line.split()[2] for line in told] == ["2", "1"]


def test_who_waits_long_looks_rarely_and_sees_an_end_soon(world: World, drain: Drain, active: Occurrence) -> None:
    binding = running(world, world.binding(active), dead=False)
    world.wire.log.clear()
    began = world.clock.monotonic()

    def die_later() -> None:
        world.clock.wait(100.0)
        world.airflow.kill(binding.airflow)

    world.actors.spawn("airflow", die_later)
    wait(world, drain, active, 1000.0)
    assert world.clock.monotonic() - began <= 100.0 + 2 * ASK_SECONDS
    calls = world.wire.calls("main")
    assert calls.count("airflow.alive") <= 51
    assert calls.count("ledger.read") <= 140


def test_at_the_deadline_each_is_listed_with_its_reason(world: World, drain: Drain, active: Occurrence) -> None:
    alive = running(world, world.binding(active, FLIGHTS), dead=False)
    stuck = running(world, world.binding(active, PLANES), dead=True)
    world.strike("gate.observe", Fault.ERROR, nth=None)
    with pytest.raises(DponeError) as found:
        wait(world, drain, active)
    busy = failure_of(found.value, Busy, "drain_timed_out")
    by_attempt = dict(part.rsplit("]: ", 1) for part in busy.holder.split("; attempt"))
    assert len(by_attempt) == 2
    assert "its task is alive" in busy.holder
    assert "gate_not_closed" in busy.holder
    assert alive.attempt_id[:12] in busy.holder
    assert stuck.attempt_id[:12] in busy.holder


def test_airflow_that_cannot_be_asked_is_a_reason(world: World, drain: Drain, active: Occurrence) -> None:
    running(world, world.binding(active, FLIGHTS), dead=True)
    world.airflow.reachable = False
    with pytest.raises(DponeError) as found:
        wait(world, drain, active)
    assert "Airflow could not be asked" in failure_of(found.value, Busy, "drain_timed_out").holder


def test_ending_the_dead_takes_no_longer_than_the_drain(world: World, drain: Drain, active: Occurrence) -> None:
    """Found: each front door took its own minute, however short the drain was to be."""
    for work in (FLIGHTS, PLANES):
        running(world, world.binding(active, work), dead=True)
    world.warehouse.sees_all = False
    began = world.clock.monotonic()
    with pytest.raises(DponeError) as found:
        wait(world, drain, active, seconds=10.0)
    failure_of(found.value, Busy, "drain_timed_out")
    assert world.clock.monotonic() < began + 11.0


def test_one_in_unknown_refuses(world: World, drain: Drain, active: Occurrence) -> None:
    binding = world.binding(active, FLIGHTS)
    world.strike("publisher.observe", Fault.ERROR)
    report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
    with pytest.raises(DponeError) as found:
        wait(world, drain, active)
    failure_of(found.value, Refused, "attempt_commit_unknown")


@pytest.mark.parametrize("seconds", [30.0, 0.0])
def test_one_that_becomes_unknown_refuses(world: World, drain: Drain, active: Occurrence, seconds: float) -> None:
    """Also when that is found at the very end."""
    binding = world.binding(active, FLIGHTS)
    world.strike("ledger.closing", Fault.CRASH, actor="controller")
    with pytest.raises(Crash):
        world.run(binding)
    world.airflow.kill(binding.airflow)
    world.strike("publisher.observe", Fault.ERROR)
    with pytest.raises(DponeError) as found:
        wait(world, drain, active, seconds)
    failure_of(found.value, Refused, "attempt_commit_unknown")


def test_a_silent_ledger_ends_the_waiting(world: World, drain: Drain, active: Occurrence) -> None:
    running(world, world.binding(active, FLIGHTS), dead=False)
    world.strike("ledger.read", Fault.ERROR, nth=2)
    with pytest.raises(DponeError) as found:
        wait(world, drain, active)
    failure_of(found.value, Unknown, "authority_unreachable")
