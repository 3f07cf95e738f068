"""Faults that were met in other systems, each as a scenario on the simulator, named by its number in the field cases.

``docs/reference-verification.md`` lists them with their likes on the lab's engines.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.ports.catalog import ObjectKind
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptBinding, Relation
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import Refused, StateChange, Unknown
from dpone_provider.domain.publication import PublicationState
from dpone_provider.domain.secret import Secret
from tests.simulation.actors import Crash
from tests.simulation.invariants import Watch, truth
from tests.simulation.outcomes import problem_of, report_of, succeeded
from tests.simulation.server import LoginDenied, StoredTable
from tests.simulation.wire import Delay, Fault
from tests.simulation.world import (
    DAILY,
    FLIGHTS,
    MARTS,
    ROWS,
    SERVING_DAILY,
    SOURCE_FLIGHTS,
    STAGE_FLIGHTS,
    World,
)

ISSUING = ("ledger.journal", "ledger.ready", "gate.create", "gate.enable", "gate.read_back", "ledger.deliver")
CLOSING = ("ledger.closing", "gate.disable", "gate.read_back", "gate.observe", "ledger.closed")


@pytest.fixture
def world() -> World:
    """A world, watched from its first step, with everything promoted and something to publish."""
    made = World()
    watch = Watch(made)
    made.wire.after.append(watch.look)
    occurrence = made.active()
    succeeded(made.run(made.binding(occurrence, MARTS, run="before"), actor="before"))
    return made


@pytest.fixture
def active(world: World) -> Occurrence:
    """The ACTIVE occurrence."""
    (found,) = world.ledger.rows.occurrences.values()
    return found


def crashed(world: World, binding: AttemptBinding, call: str, fault: Fault = Fault.CRASH, nth: int = 1) -> None:
    """Let the process of an attempt end at a call."""
    hook = world.strike(call, fault, actor="crashed", nth=nth)
    with pytest.raises(Crash):
        world.run(binding, actor="crashed")
    world.actors.dead.discard("crashed")
    world.wire.hooks.remove(hook)
    world.airflow.kill(binding.airflow)


def flights(world: World) -> list[tuple[object, ...]]:
    """Return the rows of the SQL target."""
    return [tuple(row.values()) for row in world.rows_at(world.warehouse, STAGE_FLIGHTS)]


def test_f01_a_second_delivery_is_no_second_executor_and_no_failure(world: World, active: Occurrence) -> None:
    binding = world.binding(active)
    before = len(world.children.started)
    both = [
        world.actors.spawn(name, lambda name=name: world.run(binding, actor=name))  # type: ignore[misc]
        for name in ("first", "second")
    ]
    world.actors.run_all()
    reports = [report_of(one.result, AttemptState.SUCCEEDED) for one in both]  # type: ignore[arg-type]
    assert sorted(one.followed for one in reports) == [False, True]
    assert len(world.children.started) == before + 1


def test_f02_cleaning_up_three_times_is_once(world: World, active: Occurrence) -> None:
    lost = world.binding(active)
    crashed(world, lost, "child.start")
    for _ in range(2):
        world.recovery.recover_dead(None)
    sealed = world.attempt(lost)
    following = world.binding(active, try_number=2)
    succeeded(world.run(following))
    rows = world.ledger.rows
    assert world.recovery.recover_on_word(lost.attempt_id).attempt == sealed
    assert world.ledger.rows is rows


@pytest.mark.parametrize("call", ["target.replace", "target.commit", "staging.write"])
def test_f03_a_stopped_worker_that_goes_on_publishes_nothing(world: World, active: Occurrence, call: str) -> None:
    first = world.binding(active)
    world.strike(call, Delay(500.0))
    stopped = world.actors.spawn("stopped", lambda: world.run(first, actor="stopped"))
    world.actors.wait_for(lambda: False, world.actors.now + 100.0)
    world.airflow.kill(first.airflow)
    succeeded(world.run(world.binding(active, try_number=2), actor="try 2"))
    world.actors.wait_for(lambda: stopped.ended)
    assert world.state(first) is AttemptState.FAILED
    assert first.attempt_id not in world.warehouse.receipts


@pytest.mark.parametrize("call", CLOSING)
@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.ANSWER_LOST])
def test_f04_whatever_fails_in_closing_the_login_stays_out(
    world: World, active: Occurrence, call: str, fault: Fault
) -> None:
    binding = world.binding(active)
    world.strike(call, fault, nth=2 if call == "gate.read_back" else 1)
    world.run(binding)
    gate = world.gate_of(binding)
    login = world.warehouse.logins.get(gate.principal.name)
    if login is not None and gate.state is not GateState.READY:
        with pytest.raises(LoginDenied):
            world.warehouse.log_in(Credential(login.name, Secret(login.secret)))
    world.airflow.kill(binding.airflow)
    world.recovery.recover_dead(None)
    assert gate.principal.name not in world.warehouse.logins


@pytest.mark.parametrize("work", [FLIGHTS, DAILY], ids=["sql", "clickhouse"])
@pytest.mark.parametrize("fault", [Fault.CRASH, Fault.CRASH_AFTER])
@pytest.mark.parametrize("call", ISSUING)
def test_f05_a_crash_while_issuing_leaves_no_login_that_nobody_remembers(
    world: World, active: Occurrence, call: str, fault: Fault, work: object
) -> None:
    binding = world.binding(active, work)  # type: ignore[arg-type]
    crashed(world, binding, call, fault)
    rows = world.ledger.rows
    for server in (world.warehouse, world.analytics):
        for name, login in server.logins.items():
            gate = next(one for one in rows.gates.values() if one.principal.name == name)
            assert gate.state is GateState.READY or not login.enabled
    world.recovery.recover_dead(None)
    assert not world.warehouse.logins
    assert not world.analytics.logins
    assert world.state(binding) is AttemptState.FAILED


def test_f06_a_disable_that_hangs_is_a_typed_end_with_the_gate_closing(world: World, active: Occurrence) -> None:
    binding = world.binding(active)
    world.strike("gate.disable", Fault.ERROR)
    problem_of(world.run(binding), Unknown)
    assert world.gate_of(binding).state is GateState.CLOSING
    assert world.state(binding) is AttemptState.RUNNING


@pytest.mark.parametrize(
    ("fault", "state"), [(Fault.ERROR, AttemptState.FAILED), (Fault.ANSWER_LOST, AttemptState.SUCCEEDED)]
)
def test_f08_a_lost_commit_is_decided_by_the_receipt(
    world: World, active: Occurrence, fault: Fault, state: AttemptState
) -> None:
    binding = world.binding(active)
    world.strike("target.commit", fault)
    report_of(world.run(binding), state)
    assert (binding.attempt_id in world.warehouse.receipts) == (state is AttemptState.SUCCEEDED)


def test_f08_what_nobody_can_tell_is_unknown_also_after_a_restart(world: World, active: Occurrence) -> None:
    binding = world.binding(active)
    world.strike("target.commit", Fault.ANSWER_LOST)
    world.strike("publisher.observe", Fault.ERROR)
    report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
    problem_of(world.run(world.binding(active, try_number=2), actor="restarted"), Refused)
    assert world.state(binding) is AttemptState.COMMIT_UNKNOWN
    assert world.recovery.reconcile(binding.attempt_id).state is AttemptState.SUCCEEDED


def test_f11_two_spellings_of_one_name_are_refused_before_any_reservation(world: World) -> None:
    world.warehouse.folds_case = True
    twin = replace(FLIGHTS, id="ordinary.twin", target=("warehouse", Relation("stage", "Flights")))
    rows = world.ledger.rows
    outcome = world.promote(world.parent((FLIGHTS, twin)))
    assert isinstance(outcome, Refused), outcome
    assert world.ledger.rows == rows


def test_f12_a_catalog_that_cannot_be_read_is_never_an_empty_footprint(world: World) -> None:
    rows = world.ledger.rows
    world.strike("catalog.observe", Fault.ERROR)
    outcome = world.promote(world.parent((FLIGHTS, MARTS)))
    assert isinstance(outcome, Unknown), outcome
    assert world.ledger.rows == rows


@pytest.mark.parametrize(
    ("fault", "state"), [(Fault.ERROR, AttemptState.FAILED), (Fault.ANSWER_LOST, AttemptState.SUCCEEDED)]
)
def test_f13_an_exchange_is_sent_once_and_decided_by_the_uuid(
    world: World, active: Occurrence, fault: Fault, state: AttemptState
) -> None:
    binding = world.binding(active, DAILY)
    world.wire.log.clear()
    world.strike("publisher.dispatch", fault)
    report_of(world.run(binding), state)
    assert world.wire.calls().count("publisher.dispatch") == 1
    assert (SERVING_DAILY in world.analytics.tables) == (state is AttemptState.SUCCEEDED)


def test_f14_a_view_in_the_place_of_a_target_is_refused() -> None:
    world = World()
    active = world.active()
    world.analytics.tables[SERVING_DAILY] = StoredTable("a view's", kind=ObjectKind.VIEW)
    problem_of(world.run(world.binding(active, DAILY)), Refused)
    assert world.analytics.tables[SERVING_DAILY].identity == "a view's"


def test_f15_an_exchange_that_fails_is_failed_only_once_the_staged_table_is_gone(
    world: World, active: Occurrence
) -> None:
    binding = world.binding(active, DAILY)
    world.strike("publisher.dispatch", Fault.ERROR)
    world.strike("publisher.discard_staged", Fault.ERROR)
    report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
    assert world.recovery.reconcile(binding.attempt_id).state is AttemptState.FAILED
    assert SERVING_DAILY not in world.analytics.tables
    assert not [one for one in world.analytics.tables if one.name.startswith("dpone_")]


def test_f19_what_was_committed_before_the_process_died_is_known_from_the_target(
    world: World, active: Occurrence
) -> None:
    binding = world.binding(active)
    crashed(world, binding, "child.event", nth=2)
    world.recovery.recover_dead(None)
    assert world.state(binding) is AttemptState.SUCCEEDED
    assert flights(world) == list(ROWS)


@pytest.mark.parametrize("step", range(1, 16))
def test_f20_of_two_recoverers_with_the_same_list_one_acts(world: World, active: Occurrence, step: int) -> None:
    binding = world.binding(active)
    crashed(world, binding, "child.start")

    def second() -> None:
        with world.actors.acting("second"):
            world.recovery.recover_on_word(binding.attempt_id)

    world.strike_step(step, "first", do=second)
    with world.actors.acting("first"):
        world.recovery.recover_on_word(binding.attempt_id)
    proofs = [one for one, _ in world.ledger.rows.proofs.values() if one.attempt_id == binding.attempt_id]
    assert world.state(binding) is AttemptState.FAILED
    assert len({one.kind for one in proofs}) == len(proofs)


def test_f22_a_marker_that_was_not_saved_appends_nothing_twice(world: World, active: Occurrence) -> None:
    binding = world.binding(active)
    world.strike("ledger.seal", Fault.ERROR)
    world.run(binding)
    world.airflow.kill(binding.airflow)
    succeeded(world.run(world.binding(active, try_number=2)))
    assert flights(world) == list(ROWS)
    assert world.state(binding) is AttemptState.SUCCEEDED


def test_f22_an_empty_source_empties_the_target(world: World, active: Occurrence) -> None:
    succeeded(world.run(world.binding(active)))
    world.servers["shop"].tables[SOURCE_FLIGHTS].batches.clear()
    report = succeeded(world.run(world.binding(active, run="another run")))
    publication = world.ledger.rows.publications[report.attempt.attempt_id]
    assert (publication.state, publication.rows) == (PublicationState.PUBLISHED, 0)
    assert flights(world) == []


@pytest.mark.parametrize("call", ["ledger.closing", "ledger.closed", "ledger.seal"])
def test_a_task_that_fails_after_it_was_admitted_says_that_something_may_have_changed(
    world: World, active: Occurrence, call: str
) -> None:
    """Found: *nothing changed* was said of an attempt that had been admitted, and even of one that had published."""
    world.strike(call, Fault.ERROR)
    seen = problem_of(world.run(world.binding(active)), Unknown)
    assert seen.change is StateChange.MAYBE


def test_a_try_that_ended_the_one_before_says_so_when_it_fails_itself(world: World, active: Occurrence) -> None:
    """Found: *nothing changed* was said although the earlier try had been closed and sealed."""
    first = world.binding(active)
    crashed(world, first, "child.start")
    world.strike("catalog.enrolment", Fault.ERROR)
    seen = problem_of(world.run(world.binding(active, try_number=2)), Unknown)
    assert world.state(first) is AttemptState.FAILED
    assert seen.change is StateChange.MAYBE


@pytest.mark.parametrize("call", ["ledger.closed", "ledger.seal"])
def test_a_recovery_that_fails_half_way_says_so(world: World, active: Occurrence, call: str) -> None:
    """Found: *nothing changed* was said although the gate was CLOSING, or CLOSED."""
    binding = world.binding(active)
    crashed(world, binding, "child.start")
    world.strike(call, Fault.ERROR)
    (one,) = world.recovery.recover_dead(None)
    assert one.problem is not None
    assert one.problem.change is StateChange.MAYBE


def test_every_report_was_of_the_targets_own_word(world: World, active: Occurrence) -> None:
    """The check that the scenarios end on is no formality: it tells a success from what was never published."""
    watch = Watch(world)
    outcome = world.run(world.binding(active))
    assert isinstance(outcome, AttemptReport)
    truth(world, watch)
    world.warehouse.receipts.clear()
    with pytest.raises(AssertionError, match="truth"):
        truth(world, watch)
