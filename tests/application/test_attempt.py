"""Running attempts: admission, issuing, closing, and whatever comes in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.ledger import retirement
from dpone_provider.application.ledger.calls import require
from dpone_provider.application.ports.readmission import StrayGate
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.times import AttemptTimes
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptBinding, OccurrenceId, digest_of, principal_name
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Busy, Failed, Refused, StateChange, Unknown
from dpone_provider.domain.publication import PublicationState
from tests.simulation.actors import Crash
from tests.simulation.deployments import Work
from tests.simulation.outcomes import failure_of, problem_of, report_of, succeeded
from tests.simulation.server import ServerSession
from tests.simulation.wire import Fault
from tests.simulation.world import (
    DAILY,
    FLIGHTS,
    MART_DAILY,
    MART_LOG,
    MARTS,
    PLANES,
    ROWS,
    SERVING_DAILY,
    STAGE_FLIGHTS,
    WORKS,
    World,
)


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


@pytest.fixture
def active(world: World) -> Occurrence:
    """Everything is promoted."""
    return world.active()


@pytest.fixture
def flights(world: World, active: Occurrence) -> AttemptBinding:
    """The first try of the transfer into the warehouse."""
    return world.binding(active, FLIGHTS)


def crash(world: World, binding: AttemptBinding, call: str, *, actor: str = "controller", nth: int = 1) -> None:
    """Run an attempt whose controller dies before this call; Airflow sees that it is dead."""
    hook = world.strike(call, Fault.CRASH, actor=actor, nth=nth)
    with pytest.raises(Crash):
        world.run(binding, actor=actor)
    world.wire.hooks.remove(hook)
    world.airflow.kill(binding.airflow)


def running(world: World, binding: AttemptBinding) -> AttemptBinding:
    """Leave an attempt RUNNING, delivered, with its task alive: its controller is stopped."""
    crash(world, binding, "child.start", actor=f"controller of {binding.attempt_id[:8]}")
    world.airflow.begin(binding.airflow)
    return binding


def unknown_attempt(world: World, binding: AttemptBinding) -> AttemptBinding:
    """Leave an attempt COMMIT_UNKNOWN: nothing of its target could be read when it was looked at."""
    hooks = [world.strike(f"publisher.{name}", Fault.ERROR, nth=None) for name in ("observe", "discard_staged")]
    report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
    for hook in hooks:
        world.wire.hooks.remove(hook)
    return binding


class TestSuccess:
    """Every kind of workload, from admission to seal."""

    def test_an_sql_transfer(self, world: World, flights: AttemptBinding) -> None:
        report = succeeded(world.run(flights))
        assert not report.followed
        assert report.metrics["rows"] == len(ROWS)
        assert [tuple(row.values()) for row in world.rows_at(world.warehouse, STAGE_FLIGHTS)] == list(ROWS)
        assert world.gate_of(flights).state is GateState.CLOSED
        assert world.gate_of(flights).delivered
        publication = world.publication(flights)
        assert publication is not None
        assert publication.state is PublicationState.PUBLISHED
        assert not world.warehouse.logins

    def test_the_steps_come_in_the_order_of_the_protocol(self, world: World, flights: AttemptBinding) -> None:
        succeeded(world.run(flights))
        steps = [call for call in world.wire.calls("controller") if call not in ("ledger.read", "ledger.gate")]
        assert steps == [
            *("ledger.admit", "catalog.enrolment", "catalog.incarnation", "ledger.admit"),
            *("publisher.bind", "ledger.intend", "publisher.create_staged"),
            *("ledger.journal", "ledger.ready", "gate.create", "gate.enable", "gate.read_back", "ledger.deliver"),
            *("child.start", "child.event", "ledger.stage", "ledger.dispatch", "child.answer", "child.event"),
            *("ledger.closing", "gate.disable", "gate.read_back", "gate.observe", "ledger.closed"),
            *("publisher.discard_staged", "publisher.observe", "ledger.seal", "gate.collect"),
        ]

    def test_a_clickhouse_transfer_is_dispatched_after_its_gate_is_closed(
        self, world: World, active: Occurrence
    ) -> None:
        succeeded(world.run(world.binding(active, MARTS)))
        daily = world.binding(active, DAILY)
        succeeded(world.run(daily))
        calls = world.wire.calls("controller")
        exchanged = calls.index("publisher.dispatch")
        assert "ledger.closed" in calls[:exchanged]
        assert calls[:exchanged].count("ledger.closed") == 2
        assert len(world.rows_at(world.analytics, SERVING_DAILY)) == len(ROWS)

    def test_a_second_refresh_replaces_the_first(self, world: World, active: Occurrence) -> None:
        succeeded(world.run(world.binding(active, MARTS)))
        for run in ("run 1", "run 2"):
            succeeded(world.run(world.binding(active, DAILY, run=run)))
        assert len(world.rows_at(world.analytics, SERVING_DAILY)) == len(ROWS)
        assert list(world.analytics.tables) == [SERVING_DAILY]

    def test_a_dbt_workload(self, world: World, active: Occurrence) -> None:
        marts = world.binding(active, MARTS)
        report = succeeded(world.run(marts))
        assert report.metrics == {"nodes": 3, "nodes_good": 3}
        assert {MART_DAILY, MART_LOG} <= set(world.warehouse.tables)
        assert "native.flights.marts: model.flights.log success" in world.told

    def test_an_empty_source_empties_the_target(self, world: World, active: Occurrence) -> None:
        succeeded(world.run(world.binding(active)))
        for table in world.shop.tables.values():
            table.batches.clear()
        report = succeeded(world.run(world.binding(active, run="run 2")))
        assert report.metrics["rows"] == 0
        assert world.rows_at(world.warehouse, STAGE_FLIGHTS) == []


class TestOneExecution:
    """The same attempt, delivered again (F1)."""

    def test_after_its_end_it_is_told_the_outcome(self, world: World, flights: AttemptBinding) -> None:
        succeeded(world.run(flights))
        before = world.ledger.rows.copy()
        report = succeeded(world.run(flights, actor="copy"))
        assert report.followed
        assert len(world.children.started) == 1
        assert world.ledger.rows == before
        assert set(world.wire.calls("copy")) == {"ledger.admit"}

    def test_while_it_runs_the_copy_follows(self, world: World, flights: AttemptBinding) -> None:
        copy = world.actors.spawn("copy", lambda: world.run(flights, actor="copy"))
        succeeded(world.run(flights))
        world.actors.run_all()
        assert isinstance(copy.result, AttemptReport)
        assert succeeded(copy.result).followed
        assert len(world.children.started) == 1

    def test_a_failed_winner_is_told_as_failed(self, world: World, flights: AttemptBinding) -> None:
        world.strike("publisher.bind", Fault.ERROR)
        report_of(world.run(flights), AttemptState.FAILED)
        report = report_of(world.run(flights, actor="copy"), AttemptState.FAILED)
        failure_of(report.problem, Failed, "attempt_failed")

    def test_at_its_own_deadline_the_copy_takes_the_front_door(self, world: World, flights: AttemptBinding) -> None:
        crash(world, flights, "child.start")
        began = world.clock.monotonic()
        report = report_of(world.run(flights, actor="copy"), AttemptState.FAILED)
        assert report.followed
        assert world.clock.monotonic() >= began + world.times.execution
        assert world.gate_of(flights).state is GateState.CLOSED

    def test_a_silent_ledger_ends_no_following(self, world: World, flights: AttemptBinding) -> None:
        running(world, flights)
        world.strike("ledger.read", Fault.ERROR, nth=None, actor="copy")
        copy = world.actors.spawn("copy", lambda: world.run(flights, actor="copy"))
        world.clock.wait(10.0)
        assert not copy.ended
        world.wire.hooks.clear()
        assert world.recovery.recover_on_word(flights.attempt_id).attempt.state is AttemptState.FAILED
        world.actors.run_all()
        assert isinstance(copy.result, AttemptReport)

    def test_a_redelivery_is_followed_whatever_became_of_the_target(
        self, world: World, flights: AttemptBinding
    ) -> None:
        """Found: the target was to be compared before it was known that somebody else runs."""
        succeeded(world.run(flights))
        world.warehouse.replace_database()
        assert succeeded(world.run(flights, actor="copy")).followed


class TestEarlierTry:
    """The next try takes the front door for the one before it, before any refusal."""

    @pytest.mark.parametrize("work", WORKS, ids=lambda work: work.id)
    @pytest.mark.parametrize("step", [3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 32])
    def test_whatever_became_of_it(self, world: World, active: Occurrence, work: Work, step: int) -> None:
        """The controller of try 1 dies before one of its calls."""
        if work is DAILY:
            succeeded(world.run(world.binding(active, MARTS), actor="before"))
        first = world.binding(active, work)
        world.strike_step(step, "controller", Fault.CRASH)
        with pytest.raises(Crash):
            world.run(first)
        world.airflow.kill(first.airflow)
        second = world.binding(active, work, try_number=2)
        outcome = world.run(second, actor="next")
        if world.ledger.rows.attempts.get(first.attempt_id) is not None:
            assert world.state(first) is not AttemptState.RUNNING
        if isinstance(outcome, Refused):
            assert outcome.problem.reason == "holder_commit_unknown"
            assert world.state(first) is AttemptState.COMMIT_UNKNOWN
        else:
            succeeded(outcome)

    def test_an_earlier_success_is_seen_as_one(self, world: World, active: Occurrence, flights: AttemptBinding) -> None:
        crash(world, flights, "ledger.closing")
        succeeded(world.run(world.binding(active, try_number=2), actor="next"))
        assert world.state(flights) is AttemptState.SUCCEEDED

    def test_an_unknown_one_is_reported_at_once(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        unknown_attempt(world, flights)
        began = world.clock.monotonic()
        outcome = world.run(world.binding(active, try_number=2))
        refused = failure_of(outcome, Refused, "holder_commit_unknown")
        assert refused.problem.next_command == f"dpone attempt reconcile {flights.attempt_id}"
        assert refused.change is StateChange.NONE
        assert world.clock.monotonic() == began

    def test_one_that_becomes_unknown_is_reported(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        crash(world, flights, "child.answer")
        world.strike("publisher.observe", Fault.ERROR)
        outcome = world.run(world.binding(active, try_number=2), actor="next")
        failure_of(outcome, Refused, "holder_commit_unknown")
        assert world.state(flights) is AttemptState.COMMIT_UNKNOWN

    def test_one_that_cannot_be_closed_is_waited_for(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        """Found: the new try ended as *unknown*, for good, though it had dispatched nothing."""
        running(world, flights)
        world.warehouse.sees_all = False
        outcome = world.run(world.binding(active, try_number=2), actor="next")
        busy = failure_of(outcome, Busy, "earlier_try_lives")
        assert "gate_not_closed" in busy.holder
        assert world.state(flights) is AttemptState.RUNNING
        assert world.gate_of(flights).state is GateState.CLOSING

    def test_one_that_can_be_closed_at_last_is(self, active: Occurrence, world: World, flights: AttemptBinding) -> None:
        running(world, flights)
        world.warehouse.sees_all = False
        world.times = AttemptTimes(admission=300.0)

        def administrator() -> None:
            world.clock.wait(100.0)
            world.warehouse.sees_all = True

        world.actors.spawn("administrator", administrator)
        succeeded(world.run(world.binding(active, try_number=2), actor="next"))

    def test_it_is_ended_before_the_new_one_is_refused(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        running(world, flights)
        begin_retirement(world, active)
        outcome = world.run(world.binding(active, try_number=2), actor="next")
        failure_of(outcome, Refused, "run_of_an_old_occurrence")
        assert world.state(flights) is AttemptState.FAILED

    def test_it_is_ended_before_the_target_is_compared(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        running(world, flights)
        world.warehouse.enrolled.other_writers = ("somebody",)  # type: ignore[union-attr]
        outcome = world.run(world.binding(active, try_number=2), actor="next")
        failure_of(outcome, Refused, "other_writers")
        assert world.state(flights) is AttemptState.FAILED

    def test_one_of_a_service_without_gate_refuses(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        running(world, flights)
        hand = world.gates.pop(world.warehouse.service_id)
        outcome = world.run(world.binding(active, try_number=2), actor="next")
        failure_of(outcome, Refused, "service_not_connected")
        world.gates[world.warehouse.service_id] = hand
        succeeded(world.run(world.binding(active, try_number=3), actor="next"))

    def test_an_older_try_than_one_admitted_is_superseded(self, world: World, active: Occurrence) -> None:
        succeeded(world.run(world.binding(active, try_number=2)))
        failure_of(world.run(world.binding(active, try_number=1)), Refused, "not_superseded")


class TestBusy:
    """Somebody else holds the slots."""

    def test_a_writer_is_waited_for_and_named(self, world: World, active: Occurrence, flights: AttemptBinding) -> None:
        running(world, flights)
        began = world.clock.monotonic()
        outcome = world.run(world.binding(active, run="run 2"), actor="rival")
        busy = failure_of(outcome, Busy, "slots_in_use")
        assert flights.attempt_id[:12] in busy.holder
        assert world.clock.monotonic() >= began + world.times.admission
        assert world.state(flights) is AttemptState.RUNNING

    def test_a_writer_that_ends_lets_in(self, world: World, active: Occurrence, flights: AttemptBinding) -> None:
        running(world, flights)

        def operator() -> None:
            world.clock.wait(5.0)
            world.recovery.recover_on_word(flights.attempt_id)

        world.actors.spawn("operator", operator)
        succeeded(world.run(world.binding(active, run="run 2"), actor="rival"))

    def test_a_reader_is_waited_for(self, world: World, active: Occurrence) -> None:
        running(world, world.binding(active, MARTS))
        outcome = world.run(world.binding(active, FLIGHTS), actor="rival")
        failure_of(outcome, Busy, "slots_in_use")

    def test_a_writer_keeps_readers_out(self, world: World, active: Occurrence, flights: AttemptBinding) -> None:
        running(world, flights)
        failure_of(world.run(world.binding(active, MARTS), actor="rival"), Busy, "slots_in_use")

    def test_other_slots_are_free(self, world: World, active: Occurrence, flights: AttemptBinding) -> None:
        running(world, flights)
        succeeded(world.run(world.binding(active, PLANES), actor="rival"))

    @pytest.mark.parametrize("admission", [60.0, 0.0])
    def test_a_dead_holder_is_ended(
        self, world: World, active: Occurrence, flights: AttemptBinding, admission: float
    ) -> None:
        """Also when nothing was to be waited for."""
        crash(world, flights, "child.start")
        world.times = AttemptTimes(admission=admission)
        succeeded(world.run(world.binding(active, run="run 2"), actor="rival"))
        assert world.state(flights) is AttemptState.FAILED

    def test_only_a_holder_in_the_way_is_ended(self, world: World, active: Occurrence, flights: AttemptBinding) -> None:
        """Found: every dead attempt of the occurrence was ended, whatever it wrote."""
        planes = world.binding(active, PLANES)
        crash(world, planes, "child.start", actor="other")
        running(world, flights)
        failure_of(world.run(world.binding(active, run="run 2"), actor="rival"), Busy, "slots_in_use")
        assert world.state(planes) is AttemptState.RUNNING

    def test_nobody_is_ended_when_airflow_cannot_be_asked(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        crash(world, flights, "child.start")
        world.airflow.reachable = False
        failure_of(world.run(world.binding(active, run="run 2"), actor="rival"), Busy, "slots_in_use")
        assert world.state(flights) is AttemptState.RUNNING

    def test_a_dead_holder_that_cannot_be_closed_is_waited_for(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        """Found: the waiting attempt ended as *unknown*, with the holder's own problem."""
        crash(world, flights, "child.start")
        world.warehouse.sees_all = False
        failure_of(world.run(world.binding(active, run="run 2"), actor="rival"), Busy, "slots_in_use")

    def test_an_unreadable_ledger_while_holders_are_looked_for(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        running(world, flights)
        world.strike("ledger.read", Fault.ERROR, nth=2, actor="rival")
        failure_of(world.run(world.binding(active, run="run 2"), actor="rival"), Busy, "slots_in_use")

    def test_an_unknown_holder_is_reported_at_once(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        unknown_attempt(world, flights)
        began = world.clock.monotonic()
        failure_of(world.run(world.binding(active, run="run 2")), Refused, "holder_commit_unknown")
        assert world.clock.monotonic() == began

    def test_a_prepared_occurrence_is_busy(self, world: World) -> None:
        world.strike("cache.swap_pointer", Fault.CRASH)
        parent = world.parent()
        with pytest.raises(Crash):
            world.promote(parent)
        (prepared,) = world.ledger.rows.occurrences.values()
        assert prepared.state is OccurrenceState.PREPARED
        binding = world.binding(prepared)
        failure_of(world.run(binding), Busy, "occurrence_not_active_yet")
        world.wire.hooks.clear()
        world.promote(parent, actor="again")
        succeeded(world.run(binding))


class TestRefused:
    """Nothing is admitted."""

    def test_a_retiring_occurrence(self, world: World, active: Occurrence, flights: AttemptBinding) -> None:
        begin_retirement(world, active)
        refused = failure_of(world.run(flights), Refused, "run_of_an_old_occurrence")
        assert refused.problem.next_command == "trigger a new run"
        assert not world.ledger.rows.attempts

    def test_other_digests(self, world: World, flights: AttemptBinding) -> None:
        other = replace(flights, pack_digest=digest_of(b"another pack"))
        failure_of(world.run(other), Refused, "digests_as_requested")

    def test_a_run_of_another_occurrence(self, world: World, active: Occurrence) -> None:
        succeeded(world.run(world.binding(active, FLIGHTS)))
        second = world.active(world.parent((FLIGHTS, PLANES), name="second"))
        failure_of(world.run(world.binding(second, FLIGHTS, try_number=2)), Refused, "run_of_this_occurrence")
        succeeded(world.run(world.binding(second, FLIGHTS, run="run 2")))

    def test_no_such_occurrence_or_workload(self, world: World, flights: AttemptBinding) -> None:
        workload = world.workload(world.parent(), FLIGHTS.id)
        nowhere = replace(flights, occurrence_id=OccurrenceId("00000000-0000-4000-8000-000000000000"))
        failure_of(world.runner.run("synthetic", nowhere, workload), Refused, "no_such_occurrence")
        failure_of(world.runner.run("elsewhere", flights, workload), Refused, "no_such_occurrence")
        nothing = replace(flights, workload_id="ordinary.nothing")
        failure_of(world.runner.run("synthetic", nothing, workload), Refused, "no_such_workload")

    def test_a_replaced_database(self, world: World, flights: AttemptBinding) -> None:
        """Found: nothing was read again at admission (I13)."""
        world.warehouse.replace_database()
        failure_of(world.run(flights), Refused, "incarnation_changed")
        assert not world.ledger.rows.attempts

    def test_a_replaced_source(self, world: World, flights: AttemptBinding) -> None:
        """Found: what stood under the source's name was taken for it, and published."""
        world.shop.replace_database()
        failure_of(world.run(flights), Refused, "incarnation_changed")
        assert not world.ledger.rows.attempts

    def test_a_source_that_cannot_be_read(self, world: World, flights: AttemptBinding) -> None:
        world.shop.reachable = False
        unknown = failure_of(world.run(flights), Unknown, "unreadable")
        assert unknown.change is StateChange.NONE
        assert not world.ledger.rows.attempts

    def test_a_target_ahead_of_the_ledger(self, world: World, flights: AttemptBinding) -> None:
        world.warehouse.enrolled.mark = 10_000_000  # type: ignore[union-attr]
        failure_of(world.run(flights), Refused, "authority_went_back")

    def test_a_target_that_cannot_be_read(self, world: World, flights: AttemptBinding) -> None:
        """Found: it was told as if something might have changed, so that nobody would try again."""
        world.warehouse.reachable = False
        unknown = failure_of(world.run(flights), Unknown, "unreadable")
        assert unknown.change is StateChange.NONE
        assert not world.ledger.rows.attempts

    def test_a_silent_ledger(self, world: World, flights: AttemptBinding) -> None:
        world.ledger.reachable = False
        unknown = failure_of(world.run(flights), Unknown, "authority_unreachable")
        assert unknown.change is StateChange.NONE


class TestIssuing:
    """Journal, create, READY, read back, DELIVERED, once."""

    @pytest.mark.parametrize("work", [FLIGHTS, DAILY], ids=lambda work: work.id)
    @pytest.mark.parametrize("fault", [Fault.ERROR, Fault.ANSWER_LOST], ids=lambda fault: fault.name)
    @pytest.mark.parametrize(
        "call",
        [
            *("publisher.bind", "ledger.intend", "publisher.create_staged"),
            *("ledger.journal", "gate.create", "ledger.ready", "gate.enable", "gate.read_back", "ledger.deliver"),
        ],
    )
    def test_a_failing_step_closes_and_fails(
        self, world: World, active: Occurrence, work: Work, call: str, fault: Fault
    ) -> None:
        """No child ever starts, nothing of the login is left, and another try may follow at once."""
        binding = world.binding(active, work)
        world.strike(call, fault)
        report = report_of(world.run(binding), AttemptState.FAILED)
        problem_of(report, Failed)
        assert world.gate_of(binding).state is GateState.CLOSED
        assert not world.children.started
        assert not {**world.warehouse.logins, **world.analytics.logins}
        succeeded(
            world.run(world.binding(active, work, try_number=2)) if work is FLIGHTS else _after_marts(world, active)
        )

    def test_a_login_that_cannot_log_in_is_not_delivered(self, world: World, active: Occurrence) -> None:
        daily = world.binding(active, DAILY)
        world.strike("gate.read_back", do=lambda: world.analytics.logins.clear())
        report = report_of(world.run(daily), AttemptState.FAILED)
        failure_of(report.problem, Failed, "login_not_issued")
        assert not world.gate_of(daily).delivered

    def test_a_name_that_another_attempt_took_is_chosen_anew(self) -> None:
        world = World(pool=("dpone_v3_pool_1", "dpone_v3_pool_2"))
        active = world.active()
        daily = world.binding(active, DAILY)

        def taken() -> None:
            """Another attempt takes the first name, after it was proposed to this one."""
            taken_by = running(world, world.binding(active, FLIGHTS))
            row = world.gate_of(taken_by)
            pooled = replace(row.principal, service_id=world.analytics.service_id, name="dpone_v3_pool_1", sid="1")
            world.ledger.rows.gates[taken_by.attempt_id, world.analytics.service_id] = replace(row, principal=pooled)

        succeeded(world.run(world.binding(active, MARTS), actor="before"))
        world.strike("ledger.journal", do=taken, actor="controller")
        succeeded(world.run(daily))
        assert world.gate_of(daily).principal.name == "dpone_v3_pool_2"

    def test_a_name_from_before_the_ledger_went_back_is_not_used_again(self, world: World, active: Occurrence) -> None:
        """Of a stray the ledger keeps the name only: its law tells, and no other name follows from the attempt."""
        binding = world.binding(active)
        service, name = world.warehouse.service_id, principal_name(binding.attempt_id)
        world.ledger.rows.strays[service, name] = StrayGate(service_id=service, name=name, evidence=b"{}")
        report = report_of(world.run(binding), AttemptState.FAILED)
        failure_of(report.problem, Refused, "principal_name_used")

    def test_a_name_that_was_never_used_is_journaled_without_reading_all_that_were(
        self, world: World, flights: AttemptBinding
    ) -> None:
        """There are as many as there ever were attempts."""
        succeeded(world.run(flights))
        calls = world.wire.calls("controller")
        before = calls[: calls.index("ledger.journal")]
        assert before[-2:] == ["ledger.intend", "publisher.create_staged"]

    def test_a_pool_that_is_used_up_refuses(self) -> None:
        world = World(pool=("dpone_v3_pool_1",))
        active = world.active()
        succeeded(world.run(world.binding(active, MARTS)))
        succeeded(world.run(world.binding(active, DAILY)))
        report = report_of(world.run(world.binding(active, DAILY, run="run 2")), AttemptState.FAILED)
        failure_of(report.problem, Refused, "principal_name_used")

    def test_a_gate_that_was_barred_meanwhile_stops_it(self, world: World, flights: AttemptBinding) -> None:
        """A recoverer bars and seals while the controller is about to journal: it issues nothing any more."""

        def recover() -> None:
            with world.actors.acting("operator"):
                world.recovery.recover_on_word(flights.attempt_id)

        world.strike("ledger.journal", do=recover)
        report = report_of(world.run(flights), AttemptState.FAILED)
        failure_of(report.problem, Refused, "attempt_is_running")
        assert world.gate_of(flights).barred
        assert not world.children.started

    def test_a_conflict_with_its_own_row_is_no_login(self, world: World, flights: AttemptBinding) -> None:
        """Somebody journaled for this very attempt: its own login is not issued a second time."""
        running(world, flights)
        row = world.gate_of(flights)
        del world.ledger.rows.gates[flights.attempt_id, row.service_id]
        hand = world.gates[row.service_id]
        assert hand.read_back(row.principal)

        def back() -> None:
            world.ledger.rows.gates[flights.attempt_id, row.service_id] = row

        runner = world.runner
        attempt = world.attempt(flights)
        world.strike("ledger.journal", do=back)
        with pytest.raises(Exception, match="one_gate_per_service"):
            runner._journal(flights.attempt_id, row.service_id, hand, Deadline.after(world.clock, 1.0))
        assert attempt.state is AttemptState.RUNNING

    def test_a_service_without_gate_is_a_refusal(self, world: World, flights: AttemptBinding) -> None:
        """Found: a KeyError."""
        hand = world.gates.pop(world.warehouse.service_id)
        report = report_of(world.run(flights), AttemptState.FAILED)
        failure_of(report.problem, Refused, "service_not_connected")
        assert world.gate_of(flights).barred
        world.gates[world.warehouse.service_id] = hand

    def test_no_secret_is_ever_journaled_or_told(self, world: World, active: Occurrence) -> None:
        for work in WORKS:
            succeeded(world.run(world.binding(active, work)))
        assert "CANARY" not in repr((world.ledger.rows, world.told, world.wire.log))


class TestClosing:
    """Whatever happened, the door is closed behind it; what cannot be proven stays visible."""

    @pytest.mark.parametrize("sight", ["blind", "stubborn", "half-open"])
    def test_what_cannot_be_proven_closed_stays_running(
        self, world: World, flights: AttemptBinding, sight: str
    ) -> None:
        def disturb() -> None:
            match sight:
                case "blind":
                    world.warehouse.sees_all = False
                case "half-open":
                    world.warehouse.half_open.append("pid 7, logging in")
                case _:
                    linger(world, flights, stubborn=True)

        world.strike("target.replace", do=disturb, actor="child 1")
        unknown = failure_of(world.run(flights), Unknown, "gate_not_closed")
        assert f"dpone recover --attempt {flights.attempt_id}" in unknown.problem.next_command
        assert world.state(flights) is AttemptState.RUNNING
        assert world.gate_of(flights).state is GateState.CLOSING

    def test_a_session_that_is_left_is_ended_after_the_grace(self, world: World, flights: AttemptBinding) -> None:
        """The worker's process is gone, its session is not."""
        world.strike("target.replace", do=lambda: linger(world, flights, stubborn=False), actor="child 1")
        began = world.clock.monotonic()
        succeeded(world.run(flights))
        assert "gate.end_sessions" in world.wire.calls("controller")
        assert world.clock.monotonic() >= began + world.grace
        assert not world.warehouse.sessions

    def test_a_poll_that_gets_no_answer_is_repeated(self, world: World, flights: AttemptBinding) -> None:
        """Found: one lost poll left the attempt blocked."""
        world.strike("gate.observe", Fault.ERROR)
        succeeded(world.run(flights))

    def test_polls_that_never_get_an_answer_leave_it_closing(self, world: World, flights: AttemptBinding) -> None:
        world.strike("gate.observe", Fault.ERROR, nth=None)
        unknown = failure_of(world.run(flights), Unknown, "gate_not_closed")
        assert "unreadable" in unknown.problem.found

    def test_a_login_that_stays_enabled_is_never_called_closed(self, world: World, flights: AttemptBinding) -> None:
        hand = world.gates[world.warehouse.service_id]
        assert hand
        world.strike("gate.read_back", do=lambda: _enable_all(world), nth=2)
        unknown = failure_of(world.run(flights), Unknown, "gate_not_closed")
        assert "can still log in" in unknown.problem.found

    @pytest.mark.parametrize(
        "call", ["gate.disable", "gate.read_back", "ledger.closing", "ledger.closed", "ledger.seal"]
    )
    def test_an_error_while_closing_leaves_it_to_the_next_front_door(
        self, world: World, active: Occurrence, flights: AttemptBinding, call: str
    ) -> None:
        world.strike(call, Fault.ERROR, nth=2 if call == "gate.read_back" else 1)
        problem_of(world.run(flights), Unknown)
        assert world.state(flights) is AttemptState.RUNNING
        succeeded(world.run(world.binding(active, try_number=2)))
        assert world.state(flights) is AttemptState.SUCCEEDED

    @pytest.mark.parametrize("call", ["ledger.bar", "ledger.closing", "ledger.closed", "ledger.seal"])
    def test_a_lost_answer_of_the_ledger_is_read_again(self, world: World, flights: AttemptBinding, call: str) -> None:
        """Found: an attempt that was sealed as SUCCEEDED was reported as *unknown*, for good."""
        if call == "ledger.bar":
            world.strike("publisher.bind", Fault.ERROR)
        world.strike(call, Fault.ANSWER_LOST)
        report = world.run(flights)
        report_of(report, AttemptState.FAILED if call == "ledger.bar" else AttemptState.SUCCEEDED)

    def test_answers_lost_for_ever_are_unknown(self, world: World, flights: AttemptBinding) -> None:
        world.strike("ledger.closing", Fault.ANSWER_LOST, nth=None)
        failure_of(world.run(flights), Unknown, "ledger_answer_lost")

    def test_a_seal_that_was_made_is_not_made_again(self, world: World, flights: AttemptBinding) -> None:
        world.strike("ledger.seal", Fault.ANSWER_LOST)
        succeeded(world.run(flights))
        assert world.wire.calls().count("ledger.seal") == 1


class TestInterrupts:
    """Ctrl-C, SIGTERM, a fault of the program: the door is closed and they pass on."""

    @pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, ZeroDivisionError])
    @pytest.mark.parametrize(
        "call", ["publisher.bind", "ledger.journal", "gate.enable", "ledger.deliver", "child.start", "child.event"]
    )
    def test_it_passes_on_and_the_attempt_has_ended(
        self, world: World, flights: AttemptBinding, call: str, interrupt: type[BaseException]
    ) -> None:
        world.strike(call, do=lambda: _raise(interrupt))
        with pytest.raises(interrupt):
            world.run(flights)
        assert world.state(flights) is AttemptState.FAILED
        assert world.gate_of(flights).state is GateState.CLOSED
        assert not world.warehouse.logins

    def test_it_passes_on_when_the_door_cannot_be_closed(self, world: World, flights: AttemptBinding) -> None:
        """Found: the interrupt was swallowed, and the gate's problem returned instead."""

        def disturb() -> None:
            world.warehouse.sees_all = False
            raise KeyboardInterrupt

        world.strike("child.event", do=disturb)
        with pytest.raises(KeyboardInterrupt):
            world.run(flights)
        assert world.state(flights) is AttemptState.RUNNING
        assert world.gate_of(flights).state is GateState.CLOSING

    def test_between_admission_and_the_first_step_the_next_try_ends_it(
        self, world: World, active: Occurrence, flights: AttemptBinding
    ) -> None:
        crash(world, flights, "publisher.bind")
        assert world.state(flights) is AttemptState.RUNNING
        succeeded(world.run(world.binding(active, try_number=2), actor="next"))
        assert world.gate_of(flights).barred


class TestProblems:
    """What a FAILED or COMMIT_UNKNOWN attempt is to its caller."""

    def test_a_lost_commit_that_did_not_happen_is_failed(self, world: World, flights: AttemptBinding) -> None:
        """Found: the worker's *unknown* was reported although the target shows that nothing happened."""

        def forget() -> None:
            world.warehouse.receipts.clear()

        world.strike("target.commit", Fault.ANSWER_LOST, actor="child 1")
        world.strike("publisher.observe", do=forget)
        report = report_of(world.run(flights), AttemptState.FAILED)
        failure_of(report.problem, Failed, "commit_answer_lost")

    def test_a_lost_commit_that_did_happen_is_success(self, world: World, flights: AttemptBinding) -> None:
        world.strike("target.commit", Fault.ANSWER_LOST, actor="child 1")
        succeeded(world.run(flights))

    def test_a_busy_ledger_in_the_middle_is_failed(self, world: World, flights: AttemptBinding) -> None:
        """Found: *busy* after admission, which a caller would wait for."""
        world.ledger.held[flights.attempt_id] = "somebody"
        world.strike("ledger.closing", do=lambda: world.ledger.held.clear())
        world.strike("ledger.bar", do=lambda: world.ledger.held.clear())
        report = report_of(world.run(flights), AttemptState.FAILED)
        failure_of(report.problem, Failed, "ledger_row_locked")

    def test_a_refusal_stays_one(self, world: World, flights: AttemptBinding) -> None:
        world.shop.tables.clear()
        report = report_of(world.run(flights), AttemptState.FAILED)
        failure_of(report.problem, Refused, "source_differs")

    def test_its_own_unknown_names_the_attempt(self, world: World, flights: AttemptBinding) -> None:
        """Found: it was reported as that of an earlier attempt."""
        unknown_attempt(world, flights)
        report = report_of(world.run(flights, actor="copy"), AttemptState.COMMIT_UNKNOWN)
        failure_of(report.problem, Unknown, "commit_unknown")

    def test_why_it_is_unknown_is_told(self, world: World, flights: AttemptBinding) -> None:
        world.strike("publisher.observe", Fault.ERROR)
        report = report_of(world.run(flights), AttemptState.COMMIT_UNKNOWN)
        unknown = failure_of(report.problem, Unknown, "commit_unknown")
        assert "unreadable" in unknown.problem.found

    def test_why_a_dispatch_was_not_sent_is_told(self, world: World, active: Occurrence) -> None:
        """Found: it stood in the evidence only."""
        succeeded(world.run(world.binding(active, MARTS)))
        daily = world.binding(active, DAILY)
        world.strike("publisher.verify", do=lambda: _spoil(world))
        report = report_of(world.run(daily), AttemptState.FAILED)
        failure_of(report.problem, Failed, "publication_failed")


def begin_retirement(world: World, occurrence: Occurrence) -> None:
    """An operator stops the occurrence."""
    deadline = Deadline.after(world.clock, 10.0)
    script = lambda tx: retirement.begin_retirement(tx, occurrence.occurrence_id)  # noqa: E731
    require(world.ledger, "begin retirement", script, deadline)


def linger(world: World, binding: AttemptBinding, *, stubborn: bool) -> None:
    """Leave a session of the attempt's login on the warehouse; a stubborn one does not let itself be ended."""
    login = world.gate_of(binding).principal.name
    world.warehouse.sessions.append(ServerSession(999, login, stubborn=stubborn))


def _after_marts(world: World, active: Occurrence) -> AttemptReport:
    succeeded(world.run(world.binding(active, MARTS)))
    return succeeded(world.run(world.binding(active, DAILY, try_number=2)))


def _enable_all(world: World) -> None:
    for login in world.warehouse.logins.values():
        login.enabled = True


def _raise(interrupt: type[BaseException]) -> None:
    raise interrupt


def _spoil(world: World) -> None:
    for name, table in world.analytics.tables.items():
        if name.schema == "dpone_stage":
            table.batches.clear()
