"""Recovery: by Airflow's word or an operator's, never by age; and what becomes of COMMIT_UNKNOWN."""

from __future__ import annotations

import json

import pytest

from dpone_provider.application.recovery import Recovered, Recovery
from dpone_provider.documents.attempt_proof import CompositionAttemptProofV1
from dpone_provider.documents.reading import read
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AttemptBinding, AttemptId
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown
from dpone_provider.domain.publication import PublicationState
from tests.simulation.actors import Crash
from tests.simulation.deployments import Work
from tests.simulation.outcomes import Kind, failure_of, report_of, succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, PLANES, World


@pytest.fixture
def world() -> World:
    """A world in which every source has rows."""
    world = World()
    occurrence = world.active()
    succeeded(world.run(world.binding(occurrence, MARTS, run="before"), actor="before"))
    return world


@pytest.fixture
def active(world: World) -> Occurrence:
    """The ACTIVE occurrence."""
    (found,) = world.ledger.rows.occurrences.values()
    return found


@pytest.fixture
def recovery(world: World) -> Recovery:
    """The recovery."""
    return world.recovery


def left(world: World, binding: AttemptBinding, *, dead: bool = True) -> AttemptBinding:
    """Leave an attempt RUNNING whose controller is gone; Airflow says whether it is dead."""
    name = f"controller of {binding.attempt_id[:8]}"
    hook = world.strike("child.start", Fault.CRASH, actor=name)
    with pytest.raises(Crash):
        world.run(binding, actor=name)
    world.wire.hooks.remove(hook)
    if dead:
        world.airflow.kill(binding.airflow)
    return binding


def unknown(world: World, binding: AttemptBinding) -> AttemptBinding:
    """Leave an attempt COMMIT_UNKNOWN that did publish."""
    call = "publisher.observe" if binding.workload_id != MARTS.id else "catalog.observe"
    hook = world.strike(call, Fault.ERROR)
    report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
    world.wire.hooks.remove(hook)
    return binding


def refused(kind: type[Kind], reason: str, call: object) -> Kind:
    """Call, and demand a failure."""
    assert callable(call)
    with pytest.raises(DponeError) as found:
        call()
    return failure_of(found.value, kind, reason)


class TestTheDead:
    """``dpone recover``."""

    def test_each_is_told_what_became_of_it(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        stuck = unknown(world, world.binding(active, DAILY))
        dead = left(world, world.binding(active, FLIGHTS))
        alive = left(world, world.binding(active, PLANES), dead=False)
        found = {one.attempt.attempt_id: one.did for one in recovery.recover_dead("synthetic")}
        assert found == {
            stuck.attempt_id: Recovered.UNKNOWN,
            dead.attempt_id: Recovered.ENDED,
            alive.attempt_id: Recovered.ALIVE,
        }
        assert world.state(alive) is AttemptState.RUNNING
        assert recovery.recover_dead("elsewhere") == ()

    def test_nobody_is_ended_when_airflow_cannot_be_asked(
        self, world: World, active: Occurrence, recovery: Recovery
    ) -> None:
        dead = left(world, world.binding(active, FLIGHTS))
        world.airflow.reachable = False
        (found,) = recovery.recover_dead(None)
        assert found.did is Recovered.CANNOT_ASK
        failure_of(found.problem, Unknown, "airflow_unreachable")
        assert world.state(dead) is AttemptState.RUNNING

    def test_one_that_cannot_be_ended_keeps_nobody_else(
        self, world: World, active: Occurrence, recovery: Recovery
    ) -> None:
        first = left(world, world.binding(active, FLIGHTS))
        second = left(world, world.binding(active, DAILY))
        world.warehouse.sees_all = False
        found = {one.attempt.attempt_id: one for one in recovery.recover_dead("synthetic")}
        assert found[first.attempt_id].did is Recovered.FAILED
        failure_of(found[first.attempt_id].problem, Unknown, "gate_not_closed")
        assert found[second.attempt_id].did is Recovered.ENDED

    def test_one_whose_deployment_this_machine_lacks(
        self, world: World, active: Occurrence, recovery: Recovery
    ) -> None:
        left(world, world.binding(active, FLIGHTS))

        def lacking(attempt: object) -> object:
            raise DponeError(world.cache.read("nowhere", active.deployment_id))  # type: ignore[arg-type]

        recovery = Recovery(
            ledger=recovery.ledger,
            front_door=recovery.front_door,
            observer_of=lacking,  # type: ignore[arg-type]
            task_instances=recovery.task_instances,
            clock=recovery.clock,
        )
        (found,) = recovery.recover_dead("synthetic")
        failure_of(found.problem, Refused, "deployment_not_in_cache")

    def test_a_stale_list_ends_nobody_twice(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        """F20: while the list is worked through, somebody else ends one and its next try runs."""
        first = left(world, world.binding(active, FLIGHTS))
        second = left(world, world.binding(active, PLANES))
        next_try = world.binding(active, PLANES, try_number=2)

        def meanwhile() -> None:
            with world.actors.acting("other"):
                world.recovery.recover_on_word(second.attempt_id)
            succeeded(world.run(next_try, actor="next"))

        world.strike("ledger.closing", do=meanwhile)
        found = {one.attempt.attempt_id: one.did for one in recovery.recover_dead("synthetic")}
        assert found == {first.attempt_id: Recovered.ENDED, second.attempt_id: Recovered.ENDED}
        assert world.state(next_try) is AttemptState.SUCCEEDED
        assert len(world.ledger.rows.proofs) == 2 * 4

    def test_logins_that_crashes_left_are_collected(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        """Found: a login that was not collected with its attempt stayed for ever."""
        world.strike("gate.collect", Fault.ERROR)
        succeeded(world.run(world.binding(active, FLIGHTS)))
        assert world.warehouse.logins
        recovery.recover_dead("synthetic")
        assert not world.warehouse.logins

    def test_what_cannot_be_swept_is_no_reason_to_fail(
        self, world: World, active: Occurrence, recovery: Recovery
    ) -> None:
        left(world, world.binding(active, FLIGHTS))
        world.strike("gate.principals", do=lambda: setattr(world.ledger, "reachable", False))
        (found,) = recovery.recover_dead("synthetic")
        assert found.did is Recovered.ENDED


class TestTheOperatorsWord:
    """``dpone recover --attempt ID``."""

    def test_a_living_one_is_ended(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        """A mistake costs work, not safety."""
        binding = left(world, world.binding(active, FLIGHTS), dead=False)
        assert recovery.recover_on_word(binding.attempt_id).did is Recovered.ENDED

    def test_a_mistake_costs_work_only(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        binding = world.binding(active, FLIGHTS)

        def mistake() -> None:
            with world.actors.acting("operator"):
                assert recovery.recover_on_word(binding.attempt_id).did is Recovered.ENDED

        world.strike("child.answer", do=mistake)
        report_of(world.run(binding), AttemptState.FAILED)
        assert not world.warehouse.receipts

    def test_one_that_ended_is_told(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        binding = world.binding(active, FLIGHTS)
        succeeded(world.run(binding))
        found = recovery.recover_on_word(binding.attempt_id)
        assert (found.did, found.attempt.state) == (Recovered.ENDED, AttemptState.SUCCEEDED)

    def test_one_in_unknown_is_told(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        assert recovery.recover_on_word(unknown(world, world.binding(active)).attempt_id).did is Recovered.UNKNOWN

    def test_nobody_is_refused(self, recovery: Recovery) -> None:
        refused(Refused, "no_such_attempt", lambda: recovery.recover_on_word(AttemptId("0" * 64)))


class TestReconciling:
    """``dpone attempt reconcile``: the evidence first."""

    @pytest.mark.parametrize("work", [FLIGHTS, MARTS, DAILY], ids=lambda work: work.id)
    def test_by_evidence(self, world: World, active: Occurrence, recovery: Recovery, work: Work) -> None:
        binding = unknown(world, world.binding(active, work))
        assert recovery.look(binding.attempt_id).outcome is AttemptState.SUCCEEDED
        assert recovery.reconcile(binding.attempt_id).state is AttemptState.SUCCEEDED
        publication = world.publication(binding)
        assert (publication and publication.state) in (None, PublicationState.PUBLISHED)

    @pytest.mark.parametrize("work", [FLIGHTS, DAILY], ids=lambda work: work.id)
    def test_what_was_not_published_is_failed(
        self, world: World, active: Occurrence, recovery: Recovery, work: Work
    ) -> None:
        world.strike("target.commit" if work is FLIGHTS else "publisher.dispatch", Fault.ERROR)
        binding = unknown(world, world.binding(active, work))
        publication = world.publication(binding)
        assert publication is not None
        assert publication.state is PublicationState.UNKNOWN
        assert recovery.reconcile(binding.attempt_id).state is AttemptState.FAILED
        publication = world.publication(binding)
        assert publication is not None
        assert publication.state is PublicationState.NOT_PUBLISHED
        succeeded(world.run(world.binding(active, work, run="run 2")))

    def test_without_evidence_it_stays(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        binding = unknown(world, world.binding(active))
        world.warehouse.reachable = False
        found = refused(Unknown, "no_evidence", lambda: recovery.reconcile(binding.attempt_id))
        assert "unreadable" in found.problem.found
        assert "--because" in found.problem.next_command
        assert world.state(binding) is AttemptState.COMMIT_UNKNOWN

    def test_without_evidence_of_dbt_it_stays(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        world.dbt_program.dies_in = "model.flights.log"
        binding = world.binding(active, MARTS)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
        refused(Unknown, "no_evidence", lambda: recovery.reconcile(binding.attempt_id))

    def test_what_is_not_unknown_is_refused(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        running = left(world, world.binding(active, FLIGHTS))
        found = refused(Refused, "attempt_is_unknown", lambda: recovery.reconcile(running.attempt_id))
        assert "dpone recover" in found.problem.next_command
        planes = world.binding(active, PLANES)
        succeeded(world.run(planes))
        found = refused(Refused, "attempt_is_unknown", lambda: recovery.look(planes.attempt_id))
        assert "dpone recover" not in found.problem.next_command

    @pytest.mark.parametrize("fault", [Fault.ERROR, Fault.ANSWER_LOST, Fault.CRASH_AFTER], ids=lambda one: one.name)
    def test_whatever_is_lost_it_comes_to_one_end(
        self, world: World, active: Occurrence, recovery: Recovery, fault: Fault
    ) -> None:
        binding = unknown(world, world.binding(active))
        world.strike("ledger.reconcile", fault, actor="first")
        with world.actors.acting("first"), pytest.raises((DponeError, Crash)):
            recovery.reconcile(binding.attempt_id)
        if fault is Fault.ERROR:
            recovery.reconcile(binding.attempt_id)
        assert world.state(binding) is AttemptState.SUCCEEDED

    def test_two_who_reconcile_come_to_one_end(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        """Found: the second was refused although it had seen the very same."""
        binding = unknown(world, world.binding(active))

        def other() -> None:
            with world.actors.acting("other"):
                world.recovery.reconcile(binding.attempt_id)

        world.strike("ledger.reconcile", do=other, actor="main")
        assert recovery.reconcile(binding.attempt_id).state is AttemptState.SUCCEEDED


class TestJudging:
    """``--as succeeded|failed --because``."""

    def proof(self, world: World) -> CompositionAttemptProofV1:
        """Return the last proof."""
        found = read(CompositionAttemptProofV1, list(world.ledger.rows.proofs.values())[-1][1], "a proof")
        assert isinstance(found, CompositionAttemptProofV1), found
        return found

    @pytest.mark.parametrize("outcome", [AttemptState.SUCCEEDED, AttemptState.FAILED])
    @pytest.mark.parametrize("work", [FLIGHTS, MARTS, DAILY], ids=lambda work: work.id)
    @pytest.mark.parametrize("reachable", [True, False])
    def test_it_is_recorded_with_what_the_evidence_showed(
        self,
        world: World,
        active: Occurrence,
        recovery: Recovery,
        outcome: AttemptState,
        work: Work,
        reachable: bool,
    ) -> None:
        binding = unknown(world, world.binding(active, work))
        world.warehouse.reachable = world.analytics.reachable = reachable
        judged = recovery.judge(binding.attempt_id, outcome, because="  seen by eye ", by="ann")
        assert judged.state is outcome
        proof = self.proof(world)
        assert proof.judgement is not None
        assert (proof.judgement.because, proof.judgement.by) == ("seen by eye", "ann")
        assert proof.outcome is outcome
        showed = "SUCCEEDED" if reachable else "COMMIT_UNKNOWN"
        assert [(one.name, one.value) for one in proof.observed] == [("evidence_showed", showed)]
        publication = world.publication(binding)
        expected = {
            AttemptState.SUCCEEDED: PublicationState.PUBLISHED,
            AttemptState.FAILED: PublicationState.NOT_PUBLISHED,
        }
        assert (publication and publication.state) in (None, expected[outcome])

    def test_it_needs_no_deployment_at_hand(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        """Found: what could not be looked at could not be judged either."""
        binding = unknown(world, world.binding(active))

        def lacking(attempt: object) -> object:
            raise DponeError(world.cache.read("nowhere", active.deployment_id))  # type: ignore[arg-type]

        blind = Recovery(
            ledger=recovery.ledger,
            front_door=recovery.front_door,
            observer_of=lacking,  # type: ignore[arg-type]
            task_instances=recovery.task_instances,
            clock=recovery.clock,
        )
        assert (
            blind.judge(binding.attempt_id, AttemptState.FAILED, because="gone", by="ann").state is AttemptState.FAILED
        )
        assert "deployment_not_in_cache" in json.dumps(self.proof(world).model_dump(mode="json"))

    @pytest.mark.parametrize("because", ["", "   ", "x" * 1001])
    def test_it_needs_a_reason(self, world: World, active: Occurrence, recovery: Recovery, because: str) -> None:
        binding = unknown(world, world.binding(active))
        judge = lambda: recovery.judge(binding.attempt_id, AttemptState.FAILED, because=because, by="ann")  # noqa: E731
        refused(Refused, "judgement_without_reason", judge)
        assert world.state(binding) is AttemptState.COMMIT_UNKNOWN

    def test_only_what_is_unknown_is_judged(self, world: World, active: Occurrence, recovery: Recovery) -> None:
        binding = world.binding(active)
        succeeded(world.run(binding))
        judge = lambda: recovery.judge(binding.attempt_id, AttemptState.FAILED, because="x", by="ann")  # noqa: E731
        refused(Refused, "attempt_is_unknown", judge)
