"""A dbt workload as its controller sees it: every event is journaled before anything is concluded."""

from __future__ import annotations

import pytest

from dpone_provider.application.observation import DBT_EXIT, DBT_RESULTS
from dpone_provider.application.ports.dbt import NodeStatus
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AttemptBinding
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import Failed, Refused
from tests.simulation.children import SimulatedChild
from tests.simulation.outcomes import failure_of, report_of, succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import MARTS, World


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


@pytest.fixture
def active(world: World) -> Occurrence:
    """Everything is promoted."""
    return world.active()


@pytest.fixture
def marts(world: World, active: Occurrence) -> AttemptBinding:
    """The first try of the dbt workload."""
    return world.binding(active, MARTS)


def journaled(world: World) -> list[tuple[str, str]]:
    """Return the events that are in the ledger."""
    return [(one.node_id, one.status) for one in world.ledger.rows.node_events]


def test_every_event_is_in_the_ledger(world: World, marts: AttemptBinding) -> None:
    succeeded(world.run(marts))
    events = journaled(world)
    assert events[:6] == [
        ("model.flights.daily", "started"),
        ("model.flights.daily", "success"),
        ("model.flights.log", "started"),
        ("model.flights.log", "success"),
        ("test.flights.daily", "started"),
        ("test.flights.daily", "pass"),
    ]
    assert [node for node, _ in events[6:]] == [DBT_RESULTS, DBT_EXIT]
    assert events[-1] == (DBT_EXIT, "exit 0")
    whole = {one.node_id: one.rebuilt_whole for one in world.ledger.rows.node_events}
    assert (whole["model.flights.daily"], whole["model.flights.log"]) == (True, False)


def test_a_ledger_that_does_not_answer_stops_dbt(world: World, marts: AttemptBinding) -> None:
    """Nothing runs on without its events."""
    world.strike("ledger.node", Fault.ERROR, nth=3)
    report_of(world.run(marts), AttemptState.COMMIT_UNKNOWN)
    assert world.children.started[0].exit_code() is not None
    assert ("model.flights.log", "started") not in journaled(world)


def test_events_of_an_attempt_that_was_ended_stop_it(world: World, marts: AttemptBinding) -> None:
    """A recoverer sealed it meanwhile: the stray's event is refused and its dbt is stopped."""

    def recover() -> None:
        with world.actors.acting("operator"):
            world.recovery.recover_on_word(marts.attempt_id)

    world.strike("ledger.node", do=recover, nth=2)
    report = world.run(marts)
    ended = report_of(report, AttemptState.COMMIT_UNKNOWN)
    assert ended.attempt == world.attempt(marts)
    assert journaled(world) == [("model.flights.daily", "started")]


def test_how_dbt_failed_is_told(world: World, marts: AttemptBinding) -> None:
    world.dbt_program.ends["model.flights.daily"] = NodeStatus.ERROR
    world.dbt_program.ends["test.flights.daily"] = NodeStatus.SKIPPED
    report = report_of(world.run(marts), AttemptState.FAILED)
    failed = failure_of(report.problem, Failed, "dbt_node_failed")
    assert failed.problem.found == "model.flights.daily (error), test.flights.daily (skipped)"
    assert report.metrics == {"nodes": 3, "nodes_good": 1}


def test_a_run_without_a_node_that_failed_tells_its_exit_code(world: World, marts: AttemptBinding) -> None:
    def program(child: SimulatedChild) -> int:
        child.say({"finished": False, "results": {}})
        return 2

    world.children.program = program
    failed = failure_of(report_of(world.run(marts), AttemptState.FAILED).problem, Failed, "dbt_did_not_run")
    assert failed.problem.found == "exit 2"


def test_a_run_that_is_killed_has_no_exit_code(world: World, marts: AttemptBinding) -> None:
    def program(child: SimulatedChild) -> int:
        child.say({"song": 1})
        child.say({"node": "model.flights.daily", "status": "started"})
        return -9

    world.children.program = program
    report_of(world.run(marts), AttemptState.COMMIT_UNKNOWN)
    assert DBT_EXIT not in dict(journaled(world))


def test_success_that_ends_with_another_code_is_none(world: World, marts: AttemptBinding) -> None:
    """Results say success, the process says 1: dbt did not end as it should."""
    real = world.dbt_program

    def program(child: SimulatedChild) -> int:
        return real(child) + 1

    world.children.program = program
    report = report_of(world.run(marts), AttemptState.FAILED)
    failure_of(report.problem, Failed, "dbt_did_not_run")


def test_the_login_may_write_the_schemas_of_its_models(world: World, marts: AttemptBinding) -> None:
    seen: list[tuple[str, ...]] = []
    world.strike("child.start", do=lambda: seen.extend(one.grants for one in world.warehouse.logins.values()))
    succeeded(world.run(marts))
    assert seen == [("mart",)]


def test_a_replaced_database_is_refused_before_admission(world: World, marts: AttemptBinding) -> None:
    world.warehouse.replace_database()
    failure_of(world.run(marts), Refused, "incarnation_changed")
    assert not world.ledger.rows.attempts
