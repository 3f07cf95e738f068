"""A copy of an authority forgets; a service lost for good is buried: nobody is asked, from wherever it stopped."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest

from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptBinding, ServiceId
from dpone_provider.domain.outcomes import DponeError, Refused
from dpone_provider.domain.publication import PublicationState
from tests.application.test_recovery import left
from tests.simulation.actors import Crash
from tests.simulation.authority import another, bury, forget, readmit, revive, standing
from tests.simulation.invariants import Watch
from tests.simulation.outcomes import failure_of, succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, WORKS, World

FAULTS = [Fault.CRASH, Fault.CRASH_AFTER, Fault.ERROR, Fault.ANSWER_LOST]


@dataclass(slots=True)
class AtWork:
    """A world with two attempts RUNNING, one into each engine, whose controllers are gone."""

    world: World
    flights: AttemptBinding
    daily: AttemptBinding


def at_work() -> AtWork:
    """Make one."""
    world = World()
    active = world.active()
    succeeded(world.run(world.binding(active, MARTS, run="before"), actor="before"))
    return AtWork(world, left(world, world.binding(active, FLIGHTS)), left(world, world.binding(active, DAILY)))


def reason_of(action: object) -> str:
    """Run what must refuse, and return the reason."""
    assert callable(action)
    with pytest.raises(DponeError) as caught:
        action()
    assert isinstance(caught.value.failure, Refused)
    return caught.value.failure.problem.reason


def is_buried(one: AtWork) -> None:
    """The lost service is written off, and the rest goes on without it."""
    world = one.world
    assert world.state(one.daily) is AttemptState.COMMIT_UNKNOWN
    assert world.gate_of(one.daily).state is GateState.CLOSED
    publication = world.publication(one.daily)
    assert publication is None or publication.state is PublicationState.UNKNOWN
    assert world.state(one.flights) is AttemptState.RUNNING
    world.recovery.recover_on_word(one.flights.attempt_id)
    judged = world.recovery.judge(one.daily.attempt_id, AttemptState.FAILED, because="it is gone", by="operator")
    assert judged.state is AttemptState.FAILED
    without = tuple(work for work in WORKS if work is not DAILY)
    report = world.promote(world.parent(without, name="without"), actor="next promoter")
    assert isinstance(report, PromotionReport), report
    world.analytics.reachable = True
    failure_of(world.promote(world.parent(name="back"), actor="last promoter"), Refused, "service_is_not_buried")


class TestBury:
    """A service that is gone for good."""

    def test_it_is_written_off(self) -> None:
        one = at_work()
        watch = Watch(one.world)
        one.world.wire.after.append(watch.look)
        one.world.analytics.reachable = False
        done = bury(one.world, one.world.analytics.service_id)
        assert [attempt.attempt_id for attempt in done.attempts] == [one.daily.attempt_id]
        assert bury(one.world, one.world.analytics.service_id).attempts == ()
        is_buried(one)

    def test_one_that_answers_is_refused(self) -> None:
        one = at_work()
        assert reason_of(lambda: bury(one.world, one.world.analytics.service_id)) == "service_answers"
        assert one.world.ledger.rows.burials == {}

    def test_one_that_nobody_knows_is_refused(self) -> None:
        one = at_work()
        assert (
            reason_of(lambda: bury(one.world, ServiceId("0" * 8 + "-0000-4000-8000-" + "0" * 12))) == "no_such_service"
        )

    @pytest.mark.parametrize("fault", FAULTS)
    def test_run_again_after_a_fault_at_every_step(self, fault: Fault) -> None:
        number = 0
        while True:
            number += 1
            one = at_work()
            one.world.analytics.reachable = False
            hook = one.world.strike_step(number, "operator", fault)
            try:
                bury(one.world, one.world.analytics.service_id)
            except (Crash, DponeError):
                assert hook.met >= number
            if hook.met < number:
                break
            revive(one.world)
            one.world.wire.after.append(Watch(one.world).look)
            bury(one.world, one.world.analytics.service_id)
            is_buried(one)
        assert number > 6


def has_forgotten(one: AtWork, before: object) -> None:
    """Nothing of the targets is believed, and nothing of them was touched."""
    world, rows = one.world, one.world.ledger.rows
    assert {str(each.state) for each in rows.occurrences.values()} == {"RETIRED"}
    assert {one.world.state(each) for each in (one.flights, one.daily)} == {AttemptState.FAILED}
    assert not any(slot.owner_id for slot in rows.slots.values())
    assert servers(world) == before
    failure_of(world.promote(world.parent(), actor="next promoter"), Refused, "authority_went_back")
    assert reason_of(lambda: readmit(world, actor="next operator")) == "target_obeys_another_authority"
    readmit(world, take_over=True, actor="next operator")
    assert servers(world) == before


def servers(world: World) -> object:
    """Return what stands on the targets: logins, tables, markers."""
    return copy.deepcopy(
        [(one.enrolled, sorted(one.logins.items()), sorted(map(str, one.tables))) for one in world.servers.values()],
        {},
    )


class TestForget:
    """A copy of an authority, while the original is at work."""

    def test_it_believes_nothing_and_touches_nothing(self) -> None:
        one = at_work()
        before = servers(one.world)
        one.world.ledger.says.incarnation = another(one.world.ledger.says.incarnation)
        done = forget(one.world)
        assert len(done.buried) == 2
        has_forgotten(one, before)

    def test_an_authority_that_is_none_is_refused(self) -> None:
        one = at_work()
        assert standing(one.world).refusal is None
        assert reason_of(lambda: forget(one.world)) == "nothing_went_back"

    def test_one_that_is_being_readmitted_is_refused(self) -> None:
        one = at_work()
        one.world.ledger.says.incarnation = another(one.world.ledger.says.incarnation)
        one.world.strike("ledger.readmission settle", Fault.CRASH, actor="operator")
        with pytest.raises(Crash):
            readmit(one.world, take_over=True)
        revive(one.world)
        assert reason_of(lambda: forget(one.world)) == "readmission_of_another_kind"

    @pytest.mark.parametrize("fault", FAULTS)
    def test_run_again_after_a_fault_at_every_step(self, fault: Fault) -> None:
        number = 0
        while True:
            number += 1
            one = at_work()
            before = servers(one.world)
            one.world.ledger.says.incarnation = another(one.world.ledger.says.incarnation)
            hook = one.world.strike_step(number, "operator", fault)
            try:
                forget(one.world)
            except (Crash, DponeError):
                assert hook.met >= number
            if hook.met < number:
                break
            revive(one.world)
            forget(one.world)
            has_forgotten(one, before)
        assert number > 5
