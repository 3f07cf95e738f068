"""A transfer as its controller sees it: what the worker says is for messages, the journal and the target decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.ports.catalog import ObjectKind
from dpone_provider.application.transfer_workload import TransferWorkload
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import AttemptBinding
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import Failed, Refused
from dpone_provider.domain.publication import PublicationState
from tests.application.test_recovery import left
from tests.simulation.children import SimulatedChild
from tests.simulation.deployments import STAGING, Transfer
from tests.simulation.outcomes import failure_of, report_of, succeeded
from tests.simulation.server import StoredTable
from tests.simulation.wire import Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, ROWS, SOURCE_FLIGHTS, STAGE_FLIGHTS, World

FAILURE = {
    "event": "failed",
    "class": "failed",
    "reason": "source_broke",
    "subject": "the source",
    "found": "nothing",
    "allowed": "rows",
    "next_command": "retry",
}
STAGED = {"event": "staged", "rows": 3, "bytes": 10, "content_digest": "xxh3sum128:0", "milliseconds": 1}


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


def says(
    world: World, *events: Mapping[str, object], code: int = 0, end: Callable[[SimulatedChild], None] | None = None
) -> None:
    """Let workers say these events and end."""

    def program(child: SimulatedChild) -> int:
        for event in events:
            child.say(event)
        if end is not None:
            end(child)
        return code

    world.children.program = program


def answers(world: World) -> list[dict[str, object]]:
    """What the last worker was told and did not read."""
    return [dict(one) for one in world.children.started[-1].answers]


class TestTheWorker:
    """What it says."""

    def test_progress_is_told(self, world: World, flights: AttemptBinding) -> None:
        says(world, {"event": "progress", "rows": 2, "bytes": 1000}, {"event": "progress", "rows": None})
        report_of(world.run(flights), AttemptState.FAILED)
        assert world.told[-2:] == [
            "ordinary.flights: 2 rows, 1,000 bytes staged",
            "ordinary.flights: 0 rows, 0 bytes staged",
        ]

    def test_its_failure_is_the_problem(self, world: World, flights: AttemptBinding) -> None:
        says(world, FAILURE, code=1)
        report = report_of(world.run(flights), AttemptState.FAILED)
        failure_of(report.problem, Failed, "source_broke")

    def test_the_first_failure_counts(self, world: World, flights: AttemptBinding) -> None:
        says(world, FAILURE, FAILURE | {"reason": "another"}, code=1)
        failure_of(report_of(world.run(flights), AttemptState.FAILED).problem, Failed, "source_broke")

    @pytest.mark.parametrize("code", [1, -9])
    def test_a_worker_that_dies_silently(self, world: World, flights: AttemptBinding, code: int) -> None:
        says(world, code=code)
        failed = failure_of(report_of(world.run(flights), AttemptState.FAILED).problem, Failed, "worker_died")
        assert str(code) in failed.problem.found

    def test_a_worker_that_ends_without_a_word_published_nothing(self, world: World, flights: AttemptBinding) -> None:
        says(world)
        failure_of(report_of(world.run(flights), AttemptState.FAILED).problem, Failed, "attempt_failed")

    def test_an_unknown_event_is_ignored(self, world: World, flights: AttemptBinding) -> None:
        says(world, {"event": "song"}, {"nothing": 1})
        report_of(world.run(flights), AttemptState.FAILED)

    def test_a_worker_that_hangs_is_stopped_at_the_deadline(self, world: World, flights: AttemptBinding) -> None:
        says(world, end=lambda child: child.actors.wait_for(lambda: False, world.clock.monotonic() + 1e9))
        began = world.clock.monotonic()
        report = report_of(world.run(flights), AttemptState.FAILED)
        failure_of(report.problem, Failed, "deadline_passed")
        assert began + world.times.execution <= world.clock.monotonic() < began + 2 * world.times.execution

    def test_a_claim_without_digest_is_no_success(self, world: World, active: Occurrence) -> None:
        succeeded(world.run(world.binding(active, MARTS)))
        daily = world.binding(active, DAILY)
        says(world, {"event": "staged", "rows": 3})
        report_of(world.run(daily), AttemptState.FAILED)

    def test_a_claim_that_a_failure_follows_is_not_dispatched(self, world: World, active: Occurrence) -> None:
        succeeded(world.run(world.binding(active, MARTS)))
        says(world, STAGED, FAILURE, code=1)
        report_of(world.run(world.binding(active, DAILY)), AttemptState.FAILED)
        assert "publisher.verify" not in world.wire.calls()

    def test_an_sql_claim_is_not_dispatched_by_the_controller(self, world: World, flights: AttemptBinding) -> None:
        """It says that it staged, is let go, and ends without publishing."""
        says(world, STAGED)
        report_of(world.run(flights), AttemptState.FAILED)
        assert "publisher.verify" not in world.wire.calls()
        assert answers(world) == [{"dispatch": True}]


class TestLettingGo:
    """STAGED and DISPATCHED are journaled before the worker may send its one transaction."""

    def test_it_is_journaled_first(self, world: World, flights: AttemptBinding) -> None:
        seen: list[PublicationState] = []

        def look() -> None:
            publication = world.publication(flights)
            assert publication is not None
            seen.append(publication.state)

        world.strike("child.answer", do=look)
        succeeded(world.run(flights))
        assert seen == [PublicationState.DISPATCHED]

    @pytest.mark.parametrize("call", ["ledger.stage", "ledger.dispatch"])
    @pytest.mark.parametrize("fault", [Fault.ERROR, Fault.ANSWER_LOST], ids=lambda fault: fault.name)
    def test_without_the_journal_it_is_not_let_go(
        self, world: World, flights: AttemptBinding, call: str, fault: Fault
    ) -> None:
        world.strike(call, fault)
        report_of(world.run(flights), AttemptState.FAILED)
        assert not world.warehouse.receipts
        assert "target.commit" not in world.wire.calls()

    def test_a_second_claim_is_refused(self, world: World, flights: AttemptBinding) -> None:
        says(world, STAGED, STAGED)
        failure_of(report_of(world.run(flights), AttemptState.FAILED).problem, Refused, "publication_is_intended")
        assert answers(world) == [{"dispatch": True}, {"dispatch": False}]

    def test_an_answer_that_does_not_arrive_publishes_nothing(self, world: World, flights: AttemptBinding) -> None:
        world.strike("child.answer", Fault.ERROR)
        report_of(world.run(flights), AttemptState.FAILED)
        assert not world.warehouse.receipts

    def test_the_fence_stops_one_that_lost_its_gate(self, world: World, flights: AttemptBinding) -> None:
        """F3: the attempt is ended while its worker stands in its target transaction."""

        def recover() -> None:
            world.actors.spawn("operator", lambda: world.recovery.recover_on_word(flights.attempt_id))
            world.actors.wait_for(lambda: "gate.end_sessions" in world.wire.calls("operator"))

        world.strike("target.replace", do=recover, actor="child 1")
        report_of(world.run(flights), AttemptState.FAILED)
        world.actors.run_all()
        assert not world.warehouse.receipts
        assert STAGE_FLIGHTS not in world.warehouse.tables


class TestBeginning:
    """Bind, journal the intent, create what is staged."""

    def test_the_same_intent_twice_is_one(self, world: World, active: Occurrence, flights: AttemptBinding) -> None:
        succeeded(world.run(flights))
        assert world.wire.calls().count("ledger.intend") == 1

    def test_a_target_of_another_kind_refuses(self, world: World, flights: AttemptBinding) -> None:
        world.warehouse.tables[STAGE_FLIGHTS] = StoredTable("1", kind=ObjectKind.VIEW)
        report = report_of(world.run(flights), AttemptState.FAILED)
        failure_of(report.problem, Refused, "target_not_refreshable")

    def test_grants_are_the_plans_own(self, world: World, active: Occurrence) -> None:
        succeeded(world.run(world.binding(active, MARTS)))
        grants: dict[str, tuple[str, ...]] = {}

        def look() -> None:
            for server in (world.warehouse, world.analytics):
                for login in server.logins.values():
                    grants[server.database] = login.grants

        world.strike("child.start", do=look, nth=None)
        succeeded(world.run(world.binding(active, FLIGHTS)))
        succeeded(world.run(world.binding(active, DAILY)))
        assert grants["warehouse"] == ("stage",)
        (staged,) = grants["serving"]
        assert staged.startswith("dpone_stage.dpone_")

    def test_the_child_gets_nothing_but_its_own(self, world: World, flights: AttemptBinding) -> None:
        succeeded(world.run(flights))
        command = world.children.started[0].command
        assert set(command.environment) == {"PATH", "LANG", "HOME", "TMPDIR"}
        assert "CANARY" not in repr(command)
        assert len(command.masked) == 2


class TestBounds:
    """The worker's own checks, through the whole path."""

    def test_more_rows_than_declared_publish_nothing(self, world: World) -> None:
        small = Transfer(
            id="ordinary.flights",
            source=("shop", SOURCE_FLIGHTS),
            target=("warehouse", STAGE_FLIGHTS),
            max_rows=len(ROWS) - 1,
        )
        occurrence = world.active(world.parent((small,)))
        report = report_of(world.run(world.binding(occurrence, small)), AttemptState.FAILED)
        failure_of(report.problem, Failed, "bounds_passed")
        assert STAGE_FLIGHTS not in world.warehouse.tables


def test_the_observer_of_somebody_elses_run_never_dispatches(world: World, active: Occurrence) -> None:
    """Recovery looks only: what was staged by a run that it did not see is dropped."""
    parent = world.parent()
    workload = world.workload(parent, DAILY.id)
    assert isinstance(workload, TransferWorkload)
    binding = world.binding(active, DAILY)
    succeeded(world.run(world.binding(active, MARTS)))
    world.strike("ledger.closing", Fault.ERROR)
    world.run(binding)
    assert world.recovery.recover_on_word(binding.attempt_id).attempt.state is AttemptState.FAILED
    assert "publisher.verify" not in world.wire.calls()


class TestLeftOver:
    """Staged tables of other attempts on the slot."""

    @pytest.mark.parametrize("call", ["publisher.bind", "ledger.intend", "publisher.create_staged"])
    def test_a_controller_that_stood_still_drops_nothing_of_the_next_attempt(
        self, world: World, active: Occurrence, call: str
    ) -> None:
        """It was ended while it stood still, and the next attempt has staged: each drops names of the ended only."""
        succeeded(world.run(world.binding(active, MARTS, run="before")))
        late, following = (world.binding(active, DAILY, run=run) for run in ("late", "following"))

        def meanwhile() -> None:
            with world.actors.acting("operator"):
                world.recovery.recover_on_word(late.attempt_id)
            left(world, following)

        world.strike(call, do=meanwhile, actor="late")
        failure = world.run(late, actor="late")
        assert not isinstance(failure, AttemptReport) or failure.problem is not None
        publication = world.publication(following)
        assert publication is not None
        staged = [table for table in world.analytics.tables.values() if table.identity == publication.staged_identity]
        assert len(staged) == 1

    def test_what_was_left_is_dropped_by_the_next_attempt(self, world: World, active: Occurrence) -> None:
        """A controller created it after its attempt had been ended."""
        succeeded(world.run(world.binding(active, MARTS, run="before")))
        late = world.binding(active, DAILY, run="late")

        def meanwhile() -> None:
            with world.actors.acting("operator"):
                world.recovery.recover_on_word(late.attempt_id)

        world.strike("publisher.create_staged", do=meanwhile, actor="late")
        world.run(late, actor="late")
        assert staged_tables(world)
        succeeded(world.run(world.binding(active, DAILY, run="next")))
        assert not staged_tables(world)


def staged_tables(world: World) -> list[str]:
    """Return the staged tables in ClickHouse."""
    return [str(name) for name in world.analytics.tables if name.schema == STAGING]
