"""What each outcome means: the protocol's table, row by row, for the three kinds of workload."""

from __future__ import annotations

import pytest

from dpone_provider.application.ports.dbt import NodeStatus
from dpone_provider.application.ports.ledger import ReceiptRow
from dpone_provider.documents.attempt_proof import CompositionAttemptProofV1, NamedGate
from dpone_provider.documents.reading import read
from dpone_provider.domain.attempt import AttemptState, ProofKind
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptBinding
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import Refused, Unknown
from dpone_provider.domain.publication import PublicationState, Verb
from tests.simulation.actors import Crash
from tests.simulation.children import SimulatedChild
from tests.simulation.deployments import DbtWork, Work
from tests.simulation.outcomes import failure_of, report_of, succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import (
    DAILY,
    FLIGHTS,
    MART_DAILY,
    MART_LOG,
    MARTS,
    ROWS,
    SERVING_DAILY,
    STAGE_FLIGHTS,
    World,
)

TRANSFERS = pytest.mark.parametrize("work", [FLIGHTS, DAILY], ids=["sql", "clickhouse"])


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


def proof(world: World, binding: AttemptBinding) -> CompositionAttemptProofV1:
    """Return the outcome proof of an attempt, read as strictly as any document."""
    proofs = [
        evidence
        for proof, evidence in world.ledger.rows.proofs.values()
        if proof.attempt_id == binding.attempt_id and proof.kind is ProofKind.OUTCOME
    ]
    found = read(CompositionAttemptProofV1, proofs[-1], "a proof")
    assert isinstance(found, CompositionAttemptProofV1), found
    return found


def observed(world: World, binding: AttemptBinding) -> dict[str, str]:
    """Return what the outcome proof of an attempt says was observed."""
    return {one.name: one.value for one in proof(world, binding).observed}


def settled(world: World, binding: AttemptBinding, state: PublicationState) -> None:
    """Demand the publication's state."""
    publication = world.publication(binding)
    assert publication is not None
    assert publication.state is state


class TestTransfers:
    """Both kinds of target."""

    @TRANSFERS
    def test_never_delivered_is_failed(self, world: World, active: Occurrence, work: Work) -> None:
        binding = world.binding(active, work)
        world.strike("ledger.deliver", Fault.ERROR)
        report_of(world.run(binding), AttemptState.FAILED)
        settled(world, binding, PublicationState.NOT_PUBLISHED)

    @TRANSFERS
    def test_never_intended_is_failed(self, world: World, active: Occurrence, work: Work) -> None:
        binding = world.binding(active, work)
        world.strike("publisher.bind", Fault.ERROR)
        report_of(world.run(binding), AttemptState.FAILED)
        assert world.publication(binding) is None
        assert observed(world, binding)["publication"] == "never intended"

    @TRANSFERS
    def test_published_is_succeeded(self, world: World, active: Occurrence, work: Work) -> None:
        binding = world.binding(active, work)
        succeeded(world.run(binding))
        settled(world, binding, PublicationState.PUBLISHED)
        assert observed(world, binding)["rows"] == str(len(ROWS))
        assert proof(world, binding).names_gates == (NamedGate.of(world.gate_of(binding).principal.gate_name),)
        assert proof(world, binding).outcome is AttemptState.SUCCEEDED

    @TRANSFERS
    def test_not_published_is_failed(self, world: World, active: Occurrence, work: Work) -> None:
        binding = world.binding(active, work)
        world.strike("staging.write", Fault.ERROR)
        report_of(world.run(binding), AttemptState.FAILED)
        settled(world, binding, PublicationState.NOT_PUBLISHED)

    @TRANSFERS
    @pytest.mark.parametrize("call", ["publisher.discard_staged", "publisher.observe"])
    def test_what_was_dispatched_and_cannot_be_read_is_unknown(
        self, world: World, active: Occurrence, work: Work, call: str
    ) -> None:
        binding = world.binding(active, work)
        world.strike(call, Fault.ERROR)
        world.strike("target.commit", Fault.ERROR)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
        settled(world, binding, PublicationState.UNKNOWN)
        assert "unreadable" in observed(world, binding)["unreadable"]

    @TRANSFERS
    @pytest.mark.parametrize("until", ["ledger.journal", "child.start"])
    def test_what_was_never_dispatched_waits_for_its_target(
        self, world: World, active: Occurrence, work: Work, until: str
    ) -> None:
        """Found: the seal was refused by a law of the ledger, as a fault of the program."""
        binding = world.binding(active, work)
        world.strike("publisher.discard_staged", Fault.ERROR, nth=None)
        world.strike("publisher.observe", Fault.ERROR, nth=None)
        world.strike(until, Fault.ERROR if until != "child.start" else Fault.CRASH)
        if until == "child.start":
            with pytest.raises(Crash):
                world.run(binding)
            found = world.recovery.recover_on_word(binding.attempt_id)
            failure_of(found.problem, Unknown, "unreadable")
        else:
            failure_of(world.run(binding), Unknown, "unreadable")
        assert world.state(binding) is AttemptState.RUNNING
        assert world.gate_of(binding).state is GateState.CLOSED
        world.wire.hooks.clear()
        world.airflow.kill(binding.airflow)
        succeeded(world.run(world.binding(active, work, run="run 2"), actor="next"))
        assert world.state(binding) is AttemptState.FAILED

    @TRANSFERS
    def test_a_server_that_speaks_in_tongues(self, world: World, active: Occurrence, work: Work) -> None:
        """Found: a message without canonical form was a ValueError instead of an outcome."""
        binding = world.binding(active, work)
        server = world.warehouse if work is FLIGHTS else world.analytics
        server.outage = "says cafe\u0301 \ud800"

        def go_silent() -> None:
            server.reachable = False

        world.strike("publisher.observe", do=go_silent)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
        assert "says caf\u00e9 ?" in observed(world, binding)["unreadable"]


class TestSqlTransfer:
    """The receipt decides."""

    def test_a_receipt_decides_whatever_the_worker_said(self, world: World, active: Occurrence) -> None:
        binding = world.binding(active)
        world.strike("target.commit", Fault.ANSWER_LOST)
        succeeded(world.run(binding))

    def test_a_receipt_decides_although_staging_cannot_be_dropped(self, world: World, active: Occurrence) -> None:
        """Found: a success was COMMIT_UNKNOWN because its staging table could not be dropped."""
        binding = world.binding(active)
        world.strike("publisher.discard_staged", Fault.ERROR)
        succeeded(world.run(binding))

    def test_no_receipt_is_final_only_when_staging_is_gone(self, world: World, active: Occurrence) -> None:
        binding = world.binding(active)
        world.strike("target.commit", Fault.ERROR)
        world.strike("publisher.discard_staged", Fault.ERROR)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)

    def test_a_worker_that_publishes_without_being_let_go_stays_visible(self, world: World, active: Occurrence) -> None:
        """The ledger has no way from INTENDED to PUBLISHED: a rogue's work is never sealed as a success."""
        binding = world.binding(active)

        def rogue() -> None:
            world.warehouse.receipts[binding.attempt_id] = ReceiptRow(
                attempt_id=binding.attempt_id,
                slot_id=world.slot(STAGE_FLIGHTS).slot_id,
                epoch=1,
                rows=3,
                content_digest="xxh3sum128:0",
            )

        world.strike("staging.write", Fault.ERROR)
        world.strike("publisher.observe", do=rogue)
        failure_of(world.run(binding), Refused, "publication_is_unsettled")
        assert world.state(binding) is AttemptState.RUNNING


class TestClickHousePublication:
    """The UUID at the target decides."""

    def test_a_first_load_renames_and_a_refresh_exchanges(self, world: World, active: Occurrence) -> None:
        first, second = world.binding(active, DAILY), world.binding(active, DAILY, run="run 2")
        for binding in (first, second):
            succeeded(world.run(binding))
        verbs = [world.publication(binding) for binding in (first, second)]
        assert [one.verb for one in verbs if one] == [Verb.RENAME, Verb.EXCHANGE]

    def test_a_lost_answer_is_decided_by_the_uuid(self, world: World, active: Occurrence) -> None:
        """F13."""
        world.strike("publisher.dispatch", Fault.ANSWER_LOST)
        succeeded(world.run(world.binding(active, DAILY)))

    def test_an_error_is_never_green(self, world: World, active: Occurrence) -> None:
        """F15: FAILED only after the staged table is gone; the old rows stay; never a rename instead."""
        succeeded(world.run(world.binding(active, DAILY)))
        shown = world.analytics.tables[SERVING_DAILY].identity
        binding = world.binding(active, DAILY, run="run 2")
        world.strike("publisher.dispatch", Fault.ERROR)
        report_of(world.run(binding), AttemptState.FAILED)
        assert world.analytics.tables[SERVING_DAILY].identity == shown
        assert list(world.analytics.tables) == [SERVING_DAILY]
        assert world.wire.calls("controller").count("publisher.dispatch") == 2

    def test_a_late_exchange_finds_nothing(self, world: World, active: Occurrence) -> None:
        """The dispatch stands still while somebody ends the attempt; then it is sent."""
        succeeded(world.run(world.binding(active, DAILY)))
        binding = world.binding(active, DAILY, run="run 2")

        def recover() -> None:
            with world.actors.acting("operator"):
                world.recovery.recover_on_word(binding.attempt_id)

        world.strike("publisher.dispatch", do=recover)
        report_of(world.run(binding), AttemptState.FAILED)
        publication = world.publication(binding)
        assert publication is not None
        assert world.analytics.tables[SERVING_DAILY].identity != publication.staged_identity

    def test_a_staged_object_that_is_still_there_decides_nothing(self, world: World, active: Occurrence) -> None:
        binding = world.binding(active, DAILY)
        world.strike("publisher.dispatch", Fault.ERROR)
        hook = world.strike("publisher.discard_staged", Fault.ERROR)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
        assert hook.met == 1

    def test_rows_that_came_after_the_workers_count_are_not_published(self, world: World, active: Occurrence) -> None:
        """The staged table is counted again after the gate is CLOSED, and only then exchanged."""
        binding = world.binding(active, DAILY)

        def late_insert() -> None:
            (staged,) = (table for name, table in world.analytics.tables.items() if name.schema == "dpone_stage")
            staged.batches.extend(staged.batches[:1])

        world.strike("ledger.closing", do=late_insert)
        report_of(world.run(binding), AttemptState.FAILED)
        assert "not_dispatched" in observed(world, binding)
        assert "publisher.dispatch" not in world.wire.calls("controller")

    @pytest.mark.parametrize("call", ["ledger.stage", "ledger.dispatch"])
    @pytest.mark.parametrize("fault", [Fault.ERROR, Fault.ANSWER_LOST], ids=lambda fault: fault.name)
    def test_without_the_journal_nothing_is_sent(
        self, world: World, active: Occurrence, call: str, fault: Fault
    ) -> None:
        binding = world.binding(active, DAILY)
        world.strike(call, fault)
        report_of(world.run(binding), AttemptState.FAILED)
        assert "publisher.dispatch" not in world.wire.calls("controller")
        settled(world, binding, PublicationState.NOT_PUBLISHED)


class TestDbt:
    """Events, exit code and the catalog decide."""

    def test_complete_and_confirmed_is_succeeded(self, world: World, active: Occurrence) -> None:
        binding = world.binding(active, MARTS)
        succeeded(world.run(binding))
        seen = observed(world, binding)
        assert seen["exit_code"] == "0"
        assert seen["results_digest"].startswith("sha256:")
        assert seen["good"] == "model.flights.daily; model.flights.log; test.flights.daily"

    @pytest.mark.parametrize(
        ("node", "status"),
        [("model.flights.daily", NodeStatus.ERROR), ("test.flights.daily", NodeStatus.FAIL)],
    )
    def test_a_node_that_failed_is_failed(
        self, world: World, active: Occurrence, node: str, status: NodeStatus
    ) -> None:
        world.dbt_program.ends[node] = status
        report = report_of(world.run(world.binding(active, MARTS)), AttemptState.FAILED)
        assert report.problem is not None
        assert f"{node} ({status})" in report.problem.problem.found

    def test_killed_in_what_a_next_run_rebuilds_is_failed(self, world: World, active: Occurrence) -> None:
        binding = world.binding(active, MARTS)
        world.dbt_program.dies_in = "test.flights.daily"
        report_of(world.run(binding), AttemptState.FAILED)
        assert observed(world, binding)["in_flight"] == "test.flights.daily"

    @pytest.mark.parametrize("node", ["model.flights.daily", "model.flights.log"])
    def test_killed_with_an_incremental_in_flight_is_unknown(self, world: World, active: Occurrence, node: str) -> None:
        """Also when it had not begun yet, for all that the events show."""
        world.dbt_program.dies_in = node
        report = report_of(world.run(world.binding(active, MARTS)), AttemptState.COMMIT_UNKNOWN)
        failure_of(report.problem, Unknown, "commit_unknown")

    def test_dbt_that_ends_inside_an_incremental_is_unknown(self, world: World, active: Occurrence) -> None:
        """Found: an exit code of its own made FAILED of a node that it had begun and never ended."""
        world.children.program = _ends_inside
        report_of(world.run(world.binding(active, MARTS)), AttemptState.COMMIT_UNKNOWN)

    def test_dbt_that_could_not_run_is_failed(self, world: World, active: Occurrence) -> None:
        world.strike("child.start", do=lambda: world.warehouse.logins.clear())
        report = report_of(world.run(world.binding(active, MARTS)), AttemptState.FAILED)
        assert report.problem is not None
        assert report.problem.problem.reason == "dbt_did_not_run"

    def test_never_delivered_is_failed(self, world: World, active: Occurrence) -> None:
        world.strike("ledger.deliver", Fault.ERROR)
        report_of(world.run(world.binding(active, MARTS)), AttemptState.FAILED)

    def test_delivered_without_events_is_in_flight(self, world: World, active: Occurrence) -> None:
        world.strike("child.start", do=lambda: _crash(world))
        with pytest.raises(Crash):
            world.run(world.binding(active, MARTS))
        found = world.recovery.recover_on_word(world.binding(active, MARTS).attempt_id)
        assert found.attempt.state is AttemptState.COMMIT_UNKNOWN

    def test_delivered_without_events_and_all_rebuilt_whole_is_failed(self, world: World) -> None:
        whole = DbtWork(id="native.flights.marts", models={"model.flights.daily": (MART_DAILY, True)})
        occurrence = world.active(world.parent((whole,), name="whole"))
        world.strike("child.start", Fault.CRASH)
        binding = world.binding(occurrence, whole)
        with pytest.raises(Crash):
            world.run(binding)
        assert world.recovery.recover_on_word(binding.attempt_id).attempt.state is AttemptState.FAILED

    def test_a_catalog_that_lacks_a_relation_is_failed(self, world: World, active: Occurrence) -> None:
        world.dbt_program.forgets.add("model.flights.log")
        del world.warehouse.tables[MART_LOG]
        report_of(world.run(world.binding(active, MARTS)), AttemptState.FAILED)

    def test_a_catalog_that_cannot_be_read_is_unknown_until_it_can(self, world: World, active: Occurrence) -> None:
        binding = world.binding(active, MARTS)
        world.strike("catalog.observe", Fault.ERROR)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
        assert world.recovery.reconcile(binding.attempt_id).state is AttemptState.SUCCEEDED

    def test_a_node_that_was_not_selected_is_unknown(self, world: World, active: Occurrence) -> None:
        world.dbt_program.also = ("model.flights.other",)
        binding = world.binding(active, MARTS)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
        assert observed(world, binding)["unexpected"] == "model.flights.other"


def _ends_inside(child: SimulatedChild) -> int:
    child.say({"node": "model.flights.log", "status": "started"})
    child.say({"finished": False, "results": {}, "problem": "an internal error"})
    return 2


def _crash(world: World) -> None:
    world.actors.dead.add(world.actors.current)
    raise Crash(world.actors.current)
