"""``cache-sync``: ten steps, resumed after a crash between any two, truthful about what changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpone_provider.application.promotion import Ended, PromotionReport
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Busy, Failure, Refused, StateChange, Unknown
from tests.simulation.actors import Crash
from tests.simulation.cache import SimulatedCache
from tests.simulation.outcomes import failure_of, report_of, succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import (
    DAILY,
    FLIGHTS,
    MARTS,
    PLANES,
    STAGE_FLIGHTS,
    STAGE_PLANES,
    WORKS,
    World,
)

REASONS_OF_SECOND = {"no_other_pending", "predecessor_is_holder"}
REASONS_OF_WITHDRAWN = {"drained_by_its_successor", "occurrence_is_requested"}
MUTATIONS = (
    *("cache.materialise", "ledger.request", "ledger.drain", "ledger.prepare"),
    *("catalog.raise_mark", "cache.swap_pointer", "ledger.activate"),
)
FAULTS = [Fault.CRASH, Fault.CRASH_AFTER, Fault.ERROR, Fault.ANSWER_LOST]


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


def ended(outcome: PromotionReport | Failure, how: Ended) -> PromotionReport:
    """Return the report of a promotion that ended well."""
    assert isinstance(outcome, PromotionReport), outcome
    assert outcome.ended is how
    return outcome


def states(world: World) -> list[OccurrenceState]:
    """Return every occurrence's state, oldest first."""
    return [one.state for one in world.ledger.rows.occurrences.values()]


def newest(world: World) -> Occurrence:
    """Return the newest occurrence."""
    return list(world.ledger.rows.occurrences.values())[-1]


def failing(world: World, run: Callable[[], object], call: str, fault: Fault, nth: int = 1) -> object:
    """Run something of which one call is struck; return what it came to, or None when it crashed."""
    hook = world.strike(call, fault, nth=nth)
    try:
        return run()
    except Crash:
        return None
    finally:
        assert hook.met, call
        world.wire.hooks.remove(hook)


class TestFirst:
    """Nothing was there before."""

    def test_it_comes_to_active(self, world: World) -> None:
        parent = world.parent()
        report = ended(world.promote(parent, promoted_by="a note"), Ended.ACTIVATED)
        assert states(world) == [OccurrenceState.ACTIVE]
        assert (report.generation, set(report.epochs.values())) == (1, {1})
        assert list(report.seconds) == [
            "verify",
            "materialise",
            "admit",
            "request",
            "drain",
            "prepare",
            "point",
            "activate",
        ]
        pointer = world.cache.pointers["synthetic"]
        assert (pointer.occurrence_id, pointer.generation) == (report.occurrence_id, 1)
        assert (pointer.by, pointer.note) == ("dpone_controller", "a note")
        assert world.analytics.enrolled is not None
        assert world.analytics.enrolled.mark > 0

    def test_the_steps_come_in_order(self, world: World) -> None:
        world.promote(world.parent())
        calls = [one for one in world.wire.calls("promoter") if one != "ledger.read"]
        order = [*("cache.verify", "cache.materialise", "ledger.authority", "catalog.enrolment", "catalog.observe")]
        order += [*("ledger.request", "ledger.prepare", "ledger.read back", "catalog.raise_mark")]
        order += [*("cache.swap_pointer", "ledger.activate")]
        places = [calls.index(one) for one in order]
        assert places == sorted(places)

    def test_again_is_already_active(self, world: World) -> None:
        parent = world.parent()
        world.promote(parent)
        before = world.ledger.rows.copy()
        ended(world.promote(parent), Ended.ALREADY_ACTIVE)
        assert world.ledger.rows == before

    def test_another_machine_follows(self, world: World) -> None:
        parent = world.parent()
        world.promote(parent)
        other = SimulatedCache(world.wire)
        report = ended(world.promote(parent, cache=other), Ended.FOLLOWED)
        assert other.pointers["synthetic"].occurrence_id == report.occurrence_id
        ended(world.promote(parent, cache=other), Ended.ALREADY_ACTIVE)

    def test_again_mends_a_broken_cache(self, world: World) -> None:
        """Found: with the pointer in place nothing was materialised, so that the mending command mended nothing."""
        parent = world.parent()
        world.promote(parent)
        world.cache.broken.add((parent.environment, parent.deployment_id))
        ended(world.promote(parent), Ended.ALREADY_ACTIVE)
        assert world.cache.read(parent.environment, parent.deployment_id) is not None
        assert not world.cache.broken

    def test_again_mends_a_broken_pointer(self, world: World) -> None:
        parent = world.parent()
        world.promote(parent)
        world.cache.broken_pointers.add("synthetic")
        ended(world.promote(parent), Ended.FOLLOWED)
        assert not world.cache.broken_pointers


class TestRefusedFirst:
    """Steps 1 to 4: nothing was changed, and that is said."""

    def refused(self, world: World, outcome: object, reason: str) -> Refused:
        """Demand a refusal that left no trace."""
        refused = failure_of(outcome, Refused, reason)
        assert refused.change is StateChange.NONE
        assert not world.ledger.rows.occurrences
        assert not world.cache.pointers
        return refused

    def test_a_wrong_deployment_id(self, world: World) -> None:
        parent, other = world.parent(), world.parent((FLIGHTS,), name="other")
        self.refused(world, world.promote(parent, deployment_id=other.deployment_id), "wrong_deployment")
        assert not world.cache.held

    def test_another_environment(self, world: World) -> None:
        self.refused(world, world.promote(world.parent(), environment="elsewhere"), "another_environment")

    def test_an_expectation_that_does_not_hold(self, world: World) -> None:
        parent = world.parent()
        found = self.refused(world, world.promote(parent, expect_current=parent.deployment_id), "unexpected_current")
        assert found.problem.found == "absent"

    def test_physical_admission_refuses(self, world: World) -> None:
        parent = world.parent()
        world.warehouse.replace_database()
        self.refused(world, world.promote(parent), "incarnation_changed")

    def test_a_silent_authority(self, world: World) -> None:
        world.ledger.reachable = False
        unknown = failure_of(world.promote(world.parent()), Unknown, "authority_unreachable")
        assert unknown.change is StateChange.NONE

    def test_a_request_that_another_environment_would_lose_by(self, world: World) -> None:
        world.active(world.parent((FLIGHTS,)))
        other = world.parent((FLIGHTS, PLANES), environment="elsewhere")
        failure_of(world.promote(other), Refused, "slot_of_another_environment")


class TestExpectations:
    """``--expect-current``."""

    @pytest.mark.parametrize("by", ["deployment", "occurrence", "nothing"])
    def test_one_that_holds(self, world: World, by: str) -> None:
        first = world.active(world.parent((FLIGHTS,)))
        second = world.parent((FLIGHTS, PLANES))
        said = {"deployment": first.deployment_id, "occurrence": first.occurrence_id, "nothing": None}[by]
        ended(world.promote(second, expect_current=said), Ended.ACTIVATED)

    def test_absent_holds_for_the_first(self, world: World) -> None:
        ended(world.promote(world.parent(), expect_current="absent"), Ended.ACTIVATED)

    def test_absent_does_not_hold_for_a_second(self, world: World) -> None:
        world.active(world.parent((FLIGHTS,)))
        failure_of(world.promote(world.parent(), expect_current="absent"), Refused, "unexpected_current")

    def test_the_same_command_again_is_right(self, world: World) -> None:
        """What it expected is gone by its own doing."""
        parent = world.parent()
        failing(world, lambda: world.promote(parent, expect_current="absent"), "cache.swap_pointer", Fault.CRASH)
        ended(world.promote(parent, expect_current="absent", actor="again"), Ended.ACTIVATED)
        ended(world.promote(parent, expect_current="absent", actor="again"), Ended.ALREADY_ACTIVE)


class TestPlan:
    """``--plan``."""

    def test_what_would_move(self, world: World) -> None:
        first = world.active(world.parent((FLIGHTS, PLANES)))
        second = world.parent((FLIGHTS, MARTS))
        running = world.binding(first, PLANES)
        hook = world.strike("child.start", Fault.CRASH)
        with pytest.raises(Crash):
            world.run(running)
        world.wire.hooks.remove(hook)
        before = world.ledger.rows.copy()
        plan = ended(world.promote(second, plan_only=True), Ended.PLANNED).plan
        assert plan is not None
        assert plan.slots_gained == ("postgres warehouse: mart.daily", "postgres warehouse: mart.log")
        assert plan.slots_moved == (f"postgres warehouse: {STAGE_FLIGHTS}",)
        assert plan.slots_released == (f"postgres warehouse: {STAGE_PLANES}",)
        assert plan.attempts_to_drain == (str(world.attempt(running)),)
        assert (plan.dags_added, plan.dags_removed) == (("flights.marts",), ("flights.planes",))
        assert plan.predecessor == str(first)
        assert [one.partition(":")[0] for one in plan.connections] == ["analytics.main", "shop.main", "warehouse.main"]
        assert all(one.endswith(", TLS disabled") for one in plan.connections)
        assert world.ledger.rows == before
        assert world.cache.pointers["synthetic"].occurrence_id == first.occurrence_id
        assert (second.environment, second.deployment_id) not in world.cache.held

    def test_of_the_first(self, world: World) -> None:
        plan = ended(world.promote(world.parent((FLIGHTS,)), plan_only=True), Ended.PLANNED).plan
        assert plan is not None
        assert (plan.predecessor, plan.dags_added, plan.dags_removed) == (None, ("flights.flights",), ())
        assert not world.ledger.rows.environments

    def test_of_what_is_active(self, world: World) -> None:
        parent = world.parent()
        world.active(parent)
        plan = ended(world.promote(parent, plan_only=True), Ended.PLANNED).plan
        assert plan is not None
        assert not plan.slots_gained
        assert not plan.slots_moved
        assert not plan.dags_added

    def test_where_the_cache_lacks_the_current_one(self, world: World) -> None:
        world.active(world.parent((FLIGHTS,)))
        other = SimulatedCache(world.wire)
        plan = ended(world.promote(world.parent(), cache=other, plan_only=True), Ended.PLANNED).plan
        assert plan is not None
        assert not plan.dags_removed


class TestHandover:
    """One deployment over another."""

    def test_epochs_grow_and_the_predecessor_is_retired(self, world: World) -> None:
        first = world.active(world.parent((FLIGHTS, PLANES)))
        second = world.active(world.parent((FLIGHTS, MARTS)))
        assert states(world) == [OccurrenceState.RETIRED, OccurrenceState.ACTIVE]
        assert second.predecessor_id == first.occurrence_id
        assert (world.slot(STAGE_FLIGHTS).owner_id, world.slot(STAGE_FLIGHTS).epoch) == (second.occurrence_id, 2)
        assert world.slot(STAGE_PLANES).owner_id is None
        assert world.cache.pointers["synthetic"].generation == 2

    def test_a_roll_back_is_the_older_one_promoted_again(self, world: World) -> None:
        older, newer = world.parent((FLIGHTS,)), world.parent((FLIGHTS, PLANES))
        for parent in (older, newer, older):
            ended(world.promote(parent), Ended.ACTIVATED)
        assert states(world) == [OccurrenceState.RETIRED, OccurrenceState.RETIRED, OccurrenceState.ACTIVE]
        assert newest(world).deployment_id == older.deployment_id
        assert world.slot(STAGE_FLIGHTS).epoch == 3
        succeeded(world.run(world.binding(newest(world), FLIGHTS)))

    def test_a_running_attempt_is_waited_for(self, world: World) -> None:
        first = world.active(world.parent((FLIGHTS,)))
        binding = world.binding(first, FLIGHTS)
        promoted: list[PromotionReport | Failure] = []

        def promote() -> None:
            world.actors.spawn("promoter", lambda: promoted.append(world.promote(world.parent((FLIGHTS, PLANES)))))
            world.actors.wait_for(lambda: any("waiting for 1 attempts" in line for line in world.told))

        world.strike("child.event", do=promote, nth=2)
        succeeded(world.run(binding))
        world.actors.run_all()
        ended(promoted[0], Ended.ACTIVATED)
        assert len([line for line in world.told if "waiting for" in line]) == 1

    def test_a_drain_that_takes_too_long_lists_what_lives(self, world: World) -> None:
        first = world.active(world.parent((FLIGHTS,)))
        binding = world.binding(first, FLIGHTS)
        hook = world.strike("child.start", Fault.CRASH)
        with pytest.raises(Crash):
            world.run(binding)
        world.wire.hooks.remove(hook)
        began = world.clock.monotonic()
        second = world.parent((FLIGHTS, PLANES))
        busy = failure_of(world.promote(second, drain_timeout=30.0), Busy, "drain_timed_out")
        assert binding.attempt_id[:12] in busy.holder
        assert "its task is alive" in busy.holder
        assert began + 30.0 <= world.clock.monotonic() < began + 31.0
        assert busy.change is StateChange.SAID
        assert "(REQUESTED)" in busy.problem.found
        assert "(RETIRING)" in busy.problem.found
        world.airflow.kill(binding.airflow)
        ended(world.promote(second), Ended.ACTIVATED)
        assert world.state(binding) is AttemptState.FAILED

    def test_an_unknown_attempt_refuses_with_the_environment_still_up(self, world: World) -> None:
        first = world.active(world.parent((FLIGHTS, PLANES)))
        binding = world.binding(first, FLIGHTS)
        world.strike("publisher.observe", Fault.ERROR)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
        second = world.parent((FLIGHTS, MARTS))
        refused = failure_of(world.promote(second), Refused, "attempt_commit_unknown")
        assert refused.problem.next_command == f"dpone attempt reconcile {binding.attempt_id}"
        assert refused.change is StateChange.SAID
        assert states(world) == [OccurrenceState.ACTIVE, OccurrenceState.REQUESTED]
        succeeded(world.run(world.binding(first, PLANES)))
        world.recovery.reconcile(binding.attempt_id)
        ended(world.promote(second), Ended.ACTIVATED)

    def test_a_retiring_holder_is_the_predecessor_too(self, world: World) -> None:
        """Of a promotion that was withdrawn after its drain."""
        world.active(world.parent((FLIGHTS,)))
        second = world.parent((FLIGHTS, PLANES))
        failing(world, lambda: world.promote(second), "ledger.prepare", Fault.CRASH)
        world.coordinator.withdraw(newest(world).occurrence_id)
        ended(world.promote(world.parent((FLIGHTS, MARTS)), actor="third"), Ended.ACTIVATED)
        assert states(world) == [OccurrenceState.RETIRED, OccurrenceState.WITHDRAWN, OccurrenceState.ACTIVE]


class TestInterrupted:
    """A crash, an error or a lost answer at any step: the same command continues, and says where it stands."""

    @pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
    @pytest.mark.parametrize("call", MUTATIONS)
    def test_at_every_mutation(self, world: World, call: str, fault: Fault) -> None:
        first = world.active(world.parent((FLIGHTS, PLANES)))
        second = world.parent((FLIGHTS, MARTS, DAILY))
        outcome = failing(world, lambda: world.promote(second), call, fault)
        if outcome is not None and not isinstance(outcome, PromotionReport):
            self.tells_the_truth(world, outcome, first)
        final = world.promote(second, actor="again")
        assert isinstance(final, PromotionReport), final
        assert final.ended in (Ended.ACTIVATED, Ended.ALREADY_ACTIVE, Ended.FOLLOWED)
        assert states(world) == [OccurrenceState.RETIRED, OccurrenceState.ACTIVE]
        assert world.slot(STAGE_FLIGHTS).epoch == 2
        assert world.cache.pointers["synthetic"].occurrence_id == newest(world).occurrence_id
        assert [pointer.generation for pointer in world.cache.journal] == [1, 2]

    def tells_the_truth(self, world: World, outcome: object, first: Occurrence) -> None:
        """What was changed is what the message says, unless it says that it does not know."""
        assert isinstance(outcome, (Refused, Busy, Unknown)), outcome
        changed = world.ledger.rows.occurrences != {first.occurrence_id: first}
        if outcome.change is StateChange.NONE:
            assert not changed
        elif outcome.change is StateChange.SAID:
            assert changed
            assert newest(world).occurrence_id in str(outcome.problem)
            assert f"({newest(world).state})" in str(outcome.problem)
        if newest(world).state in (OccurrenceState.PREPARED, OccurrenceState.ACTIVE) and changed:
            assert outcome.problem.reason == "activation_incomplete"
            assert outcome.exit_code is ExitCode.INCOMPLETE
            assert f"--deployment-id {newest(world).deployment_id}" in outcome.problem.next_command

    @pytest.mark.parametrize("step", range(1, 45))
    def test_a_crash_before_every_single_call(self, world: World, step: int) -> None:
        world.active(world.parent((FLIGHTS,)))
        second = world.parent((FLIGHTS, PLANES))
        world.strike_step(step, "promoter 2", Fault.CRASH)
        try:
            ended(world.promote(second, actor="promoter 2"), Ended.ACTIVATED)
        except Crash:
            final = world.promote(second, actor="again")
            assert isinstance(final, PromotionReport), final
        assert states(world) == [OccurrenceState.RETIRED, OccurrenceState.ACTIVE]

    def test_what_stands_cannot_be_read(self, world: World) -> None:
        parent = world.parent()

        def silence() -> None:
            world.ledger.reachable = False

        world.strike("ledger.prepare", do=silence)
        unknown = failure_of(world.promote(parent), Unknown, "authority_unreachable")
        assert unknown.change is StateChange.MAYBE
        assert "could not be read" in unknown.problem.found

    def test_a_target_that_changes_between_request_and_prepare(self, world: World) -> None:
        parent = world.parent()
        failing(world, lambda: world.promote(parent), "ledger.prepare", Fault.CRASH)
        assert world.warehouse.enrolled is not None
        world.warehouse.enrolled.gate_digest = "sha256:another"
        refused = failure_of(world.promote(parent, actor="again"), Refused, "changed_since_request")
        assert refused.change is StateChange.SAID
        assert states(world) == [OccurrenceState.REQUESTED]

    def test_a_target_ahead_of_the_ledger_at_prepare(self, world: World) -> None:
        """Found: marks and authorities were not compared again at prepare (I13)."""
        parent = world.parent()
        failing(world, lambda: world.promote(parent), "ledger.prepare", Fault.CRASH)
        assert world.warehouse.enrolled is not None
        world.warehouse.enrolled.mark = 10_000_000
        failure_of(world.promote(parent, actor="again"), Refused, "authority_went_back")

    def test_a_mark_that_cannot_be_raised_leaves_it_incomplete(self, world: World) -> None:
        """Found: it was reported as if nothing had happened."""
        parent = world.parent()
        outcome = failing(world, lambda: world.promote(parent), "catalog.raise_mark", Fault.ERROR)
        failure_of(outcome, Unknown, "activation_incomplete")
        assert states(world) == [OccurrenceState.PREPARED]


class TestOthers:
    """Somebody else promotes, withdraws, abandons."""

    def test_another_pending_promotion_is_named_with_its_ways_out(self, world: World) -> None:
        first, second = world.parent((FLIGHTS,)), world.parent((FLIGHTS, PLANES))
        failing(world, lambda: world.promote(first), "ledger.prepare", Fault.CRASH)
        refused = failure_of(world.promote(second, actor="other"), Refused, "another_promotion_pending")
        assert f"--deployment-id {first.deployment_id}" in refused.problem.next_command
        assert f"dpone occurrence withdraw {newest(world).occurrence_id}" in refused.problem.next_command
        failing(world, lambda: world.promote(first, actor="again"), "cache.swap_pointer", Fault.CRASH)
        refused = failure_of(world.promote(second, actor="other"), Refused, "another_promotion_pending")
        assert f"dpone occurrence abandon {newest(world).occurrence_id}" in refused.problem.next_command

    def test_a_machine_that_follows_is_not_kept_by_another_promotion(self, world: World) -> None:
        """Found: while a new deployment was requested, the ACTIVE one could not be followed."""
        first = world.parent((FLIGHTS,))
        world.active(first)
        failing(world, lambda: world.promote(world.parent((FLIGHTS, PLANES))), "ledger.drain", Fault.CRASH)
        other = SimulatedCache(world.wire)
        ended(world.promote(first, cache=other, actor="follower"), Ended.FOLLOWED)

    @pytest.mark.parametrize("call", ["ledger.drain", "ledger.prepare", "cache.swap_pointer", "ledger.activate"])
    def test_a_withdrawn_promotion_whose_process_resumes(self, world: World, call: str) -> None:
        first = world.active(world.parent((FLIGHTS,)))

        def withdraw() -> None:
            with world.actors.acting("operator"):
                requested = newest(world)
                if requested.state is OccurrenceState.REQUESTED:
                    world.coordinator.withdraw(requested.occurrence_id)
                else:
                    world.coordinator.abandon(requested.occurrence_id)

        world.strike(call, do=withdraw)
        outcome = world.promote(world.parent((FLIGHTS, PLANES)))
        assert isinstance(outcome, (Refused, Unknown)), outcome
        assert OccurrenceState.ACTIVE not in states(world)[1:]
        if call == "ledger.drain":
            assert world.ledger.rows.occurrences[first.occurrence_id].state is OccurrenceState.ACTIVE
            assert outcome.problem.reason in REASONS_OF_WITHDRAWN
            succeeded(world.run(world.binding(first, FLIGHTS)))

    @pytest.mark.parametrize("step", range(1, 30, 2))
    def test_two_promoters_of_the_same_deployment(self, world: World, step: int) -> None:
        parent = world.parent()
        outcomes: list[PromotionReport | Failure] = []
        world.strike_step(step, "slow", do=lambda: outcomes.append(world.promote(parent, actor="quick")))
        outcomes.append(world.promote(parent, actor="slow"))
        final = world.promote(parent, actor="last")
        assert isinstance(final, PromotionReport)
        assert states(world).count(OccurrenceState.ACTIVE) == 1
        assert len(states(world)) == 1
        assert len(world.cache.journal) == 1
        for outcome in outcomes:
            assert isinstance(outcome, PromotionReport) or outcome.problem.reason in REASONS_OF_SECOND

    def test_two_promoters_of_two_deployments(self, world: World) -> None:
        first, second = world.parent((FLIGHTS,)), world.parent((FLIGHTS, PLANES))
        for step in range(1, 40, 3):
            fresh = World()
            outcomes: list[PromotionReport | Failure] = []

            def other(fresh: World = fresh, outcomes: list[PromotionReport | Failure] = outcomes) -> None:
                outcomes.append(fresh.promote(second, actor="quick"))

            fresh.strike_step(step, "slow", do=other)
            outcomes.append(fresh.promote(first, actor="slow"))
            assert states(fresh).count(OccurrenceState.ACTIVE) == 1
            assert any(isinstance(one, PromotionReport) for one in outcomes)

    def test_a_pointer_that_another_process_of_it_has_swapped(self, world: World) -> None:
        """Found: who lost the race for the pointer reported its promotion as incomplete."""
        parent = world.parent()
        world.strike("cache.swap_pointer", do=lambda: _finish(world), actor="slow")
        ended(world.promote(parent, actor="slow"), Ended.ACTIVATED)

    def test_a_pointer_that_was_moved_on_is_left_alone(self, world: World) -> None:
        parent = world.parent()

        def move_on() -> None:
            pointer = world.cache.pointers.get("synthetic")
            assert pointer is None
            world.cache.held.clear()

        world.strike("cache.swap_pointer", do=move_on)
        unknown = failure_of(world.promote(parent), Unknown, "activation_incomplete")
        assert "deployment_not_materialised" in unknown.problem.found
        ended(world.promote(parent, actor="again"), Ended.ACTIVATED)

    def test_a_pointer_that_cannot_be_read_back_activates_nothing(self, world: World) -> None:
        parent = world.parent()

        def spoil() -> None:
            world.cache.broken_pointers.add("synthetic")

        world.strike("cache.pointer", do=spoil, nth=2)
        unknown = failure_of(world.promote(parent), Unknown, "activation_incomplete")
        assert "pointer_names_it" in unknown.problem.found
        assert states(world) == [OccurrenceState.PREPARED]
        world.cache.broken_pointers.clear()
        ended(world.promote(parent, actor="again"), Ended.ACTIVATED)


def _finish(world: World) -> None:
    with world.actors.acting("quick"):
        world.promote(world.parent(WORKS), actor="quick")
