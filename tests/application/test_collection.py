"""Which deployments of a cache nobody needs any more, and removing them."""

from __future__ import annotations

from dataclasses import replace
from uuid import NAMESPACE_DNS, uuid5

import pytest

from dpone_provider.application.collection import Collector, Judged, Known, judged
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.cache import CacheEntry
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import Digest, ServiceId
from dpone_provider.domain.outcomes import DponeError, Failure, Refused, Unknown
from tests.simulation.outcomes import succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import World


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


def collector(world: World) -> Collector:
    """Return what collects this machine's cache."""
    return Collector(cache=world.cache, ledger=world.ledger, clock=world.clock, seconds=5.0)


def active(outcome: PromotionReport | Failure) -> None:
    """Require a promotion that ended well."""
    assert isinstance(outcome, PromotionReport), outcome


def promoted(world: World, *names: str) -> list[Parent]:
    """Promote deployments one after the other."""
    parents = [world.parent(name=name) for name in names]
    for parent in parents:
        active(world.promote(parent))
    return parents


def kept(done: tuple[Judged, ...]) -> dict[Digest, str]:
    """Return what is kept, and why."""
    return {one.entry.deployment_id: one.why for one in done if one.why is not None}


def in_cache(world: World) -> set[Digest]:
    """Return what the cache holds."""
    return {deployment_id for _, deployment_id in world.cache.held}


def failure(run: object) -> Failure:
    """Return what a call ended with."""
    assert callable(run)
    with pytest.raises(DponeError) as ended:
        run()
    return ended.value.failure


def test_what_is_current_and_what_was_before_it_stay(world: World) -> None:
    first, second, third = promoted(world, "a", "b", "c")
    done = collector(world).collect("synthetic", 1)
    assert kept(done) == {
        third.deployment_id: "the pointer names it",
        second.deployment_id: "in service before, as generation 2: kept for a roll back",
    }
    assert in_cache(world) == {second.deployment_id, third.deployment_id}
    assert first.deployment_id not in in_cache(world)


@pytest.mark.parametrize(("earlier", "left"), [(0, 1), (1, 2), (2, 3), (9, 4)])
def test_as_many_that_were_in_service_before_as_are_asked_for(world: World, earlier: int, left: int) -> None:
    promoted(world, "a", "b", "c", "d")
    collector(world).collect("synthetic", earlier)
    assert len(in_cache(world)) == left


def test_one_that_was_in_service_twice_counts_by_its_last_time(world: World) -> None:
    first, second = promoted(world, "a", "b")
    active(world.promote(first))
    (third,) = promoted(world, "c")
    assert set(kept(collector(world).collect("synthetic", 1))) == {third.deployment_id, first.deployment_id}
    assert second.deployment_id not in in_cache(world)


def test_a_plan_changes_nothing_and_says_the_same(world: World) -> None:
    promoted(world, "a", "b", "c")
    before = in_cache(world)
    planned = collector(world).plan("synthetic", 1)
    assert in_cache(world) == before
    assert collector(world).collect("synthetic", 1) == planned
    assert not any(one.why is None for one in collector(world).plan("synthetic", 1))


def test_one_that_was_never_requested_is_old(world: World) -> None:
    (served,) = promoted(world, "a")
    stray = world.parent(name="stray")
    world.cache.materialise(stray)
    done = collector(world).collect("synthetic", 1)
    assert [one.entry.deployment_id for one in done if one.why is None] == [stray.deployment_id]
    assert in_cache(world) == {served.deployment_id}


def test_one_that_another_machine_made_active_stays_before_this_one_follows(world: World) -> None:
    first, second = promoted(world, "a", "b")
    third = world.parent(name="c")
    world.cache.materialise(third)
    active(world.promote(third, cache=world.another_cache()))
    done = kept(collector(world).collect("synthetic", 0))
    assert done[second.deployment_id] == "the pointer names it"
    assert "is ACTIVE" in done[third.deployment_id]
    assert first.deployment_id not in done


@pytest.mark.parametrize("call", ["ledger.drain", "ledger.prepare", "cache.swap_pointer", "ledger.activate"])
def test_a_promotion_that_stopped_half_way_finds_its_deployment_and_its_predecessors(world: World, call: str) -> None:
    first, second = promoted(world, "a", "b")
    third = world.parent(name="c")
    world.strike(call, Fault.ERROR)
    world.promote(third)
    collector(world).collect("synthetic", 0)
    replaced = call == "ledger.activate"
    assert in_cache(world) == {third.deployment_id} | (set() if replaced else {second.deployment_id})
    assert first.deployment_id not in in_cache(world)
    world.wire.hooks.clear()
    active(world.promote(third))


def test_a_deployment_stays_while_an_attempt_of_it_is_not_settled(world: World) -> None:
    """Whoever recovers or reconciles the attempt reads its pack."""
    (first,) = promoted(world, "a")
    (occurrence,) = world.ledger.rows.occurrences.values()
    binding = world.binding(occurrence)
    succeeded(world.run(binding))
    second, third = promoted(world, "b", "c")
    unsettled = replace(world.attempt(binding), state=AttemptState.COMMIT_UNKNOWN)
    world.ledger.rows.attempts[binding.attempt_id] = unsettled
    done = kept(collector(world).collect("synthetic", 0))
    assert "is COMMIT_UNKNOWN" in done[first.deployment_id]
    assert set(done) == {first.deployment_id, third.deployment_id}
    assert second.deployment_id not in in_cache(world)


def test_more_unsettled_attempts_than_are_read_remove_nothing(world: World) -> None:
    """One that is left out would be taken for one that nobody needs."""
    promoted(world, "a")
    (occurrence,) = world.ledger.rows.occurrences.values()
    binding = world.binding(occurrence)
    succeeded(world.run(binding))
    promoted(world, "b", "c")
    world.ledger.rows.attempts[binding.attempt_id] = replace(world.attempt(binding), state=AttemptState.COMMIT_UNKNOWN)
    before = in_cache(world)
    narrow = replace(collector(world), most=0)
    for run in (narrow.plan, narrow.collect):
        ended = failure(lambda run=run: run("synthetic", 0))
        assert isinstance(ended, Refused)
        assert ended.problem.reason == "too_many_unsettled_attempts"
    assert in_cache(world) == before


def test_the_only_deployment_that_reaches_a_service_stays() -> None:
    """A readmission closes the logins of every service that the cache knows."""
    shop, mart, gone = (ServiceId(str(uuid5(NAMESPACE_DNS, name))) for name in ("shop", "mart", "gone"))
    ids = [Digest(f"sha256:{number:064x}") for number in range(4)]
    entries = [CacheEntry(environment="synthetic", deployment_id=one, bytes=1, current=one == ids[3]) for one in ids]
    reached = {ids[0]: frozenset({shop, gone}), ids[1]: frozenset({gone}), ids[2]: frozenset({shop})}
    reached[ids[3]] = frozenset({shop, mart})
    done = kept(judged(entries, Known(occurrences=(), unsettled=()), reached, 0))
    assert done == {
        ids[0]: f"the only one that says how to reach service {gone}",
        ids[3]: "the pointer names it",
    }


def test_another_environment_is_left_alone(world: World) -> None:
    promoted(world, "a", "b", "c")
    other = world.parent(environment="other", name="o")
    world.cache.materialise(other)
    done = collector(world).collect("synthetic", 0)
    assert other.deployment_id not in {one.entry.deployment_id for one in done}
    assert other.deployment_id in in_cache(world)


@pytest.mark.parametrize("nth", [1, 2])
def test_a_ledger_that_does_not_answer_removes_nothing(world: World, nth: int) -> None:
    promoted(world, "a", "b", "c")
    before = in_cache(world)
    world.strike("ledger.read", Fault.ERROR, nth=nth)
    assert isinstance(failure(lambda: collector(world).collect("synthetic", 0)), Refused | Unknown)
    assert in_cache(world) == before


def test_a_cache_that_cannot_be_read_is_told(world: World) -> None:
    promoted(world, "a", "b")
    world.strike("cache.entries", Fault.ERROR)
    assert isinstance(failure(lambda: collector(world).plan("synthetic", 0)), Refused)


def test_an_empty_cache_has_nothing_to_collect(world: World) -> None:
    assert collector(world).collect("synthetic", 1) == ()
