"""The coordinator: request, drain, prepare, activate, abandon, retire, withdraw; each step again, and out of turn."""

from __future__ import annotations

import pytest

from dpone_provider.application.activation import CompositionActivationCoordinator
from dpone_provider.application.admission import Admission
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.documents.activation_receipt import CompositionActivationReceiptV1
from dpone_provider.documents.reading import read
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import OccurrenceId
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Busy, DponeError, Refused, StateChange, Unknown
from tests.simulation.actors import Crash
from tests.simulation.outcomes import Kind, failure_of, report_of, succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, PLANES, STAGE_FLIGHTS, World

NOBODY = OccurrenceId("00000000-0000-4000-8000-000000000000")


@pytest.fixture
def world() -> World:
    """A world with nothing in it."""
    return World()


@pytest.fixture
def coordinator(world: World) -> CompositionActivationCoordinator:
    """The coordinator of it."""
    return world.coordinator


@pytest.fixture
def parent(world: World) -> Parent:
    """One deployment."""
    return world.parent()


def soon(world: World, seconds: float = 10.0) -> Deadline:
    """Some seconds from now."""
    return Deadline.after(world.clock, seconds)


def admission(world: World, parent: Parent) -> Admission:
    """Admit a deployment physically."""
    return world.admitter.admit(parent, soon(world))


def refused(kind: type[Kind], reason: str, call: object) -> Kind:
    """Call, and demand a failure."""
    assert callable(call)
    with pytest.raises(DponeError) as found:
        call()
    return failure_of(found.value, kind, reason)


def state(world: World, occurrence: Occurrence) -> OccurrenceState:
    """Return its present state."""
    return world.ledger.rows.occurrences[occurrence.occurrence_id].state


class TestTheWay:
    """REQUESTED → PREPARED → ACTIVE → RETIRING → RETIRED."""

    def test_step_by_step_and_each_again(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        requested = coordinator.request(admission(world, parent), None)
        assert requested.state is OccurrenceState.REQUESTED
        first = coordinator.prepare(requested.occurrence_id, parent)
        again = coordinator.prepare(requested.occurrence_id, parent)
        assert first == again
        assert first.occurrence.generation == 1
        pointed = requested.occurrence_id
        assert coordinator.activate(pointed, pointed) == coordinator.activate(pointed, pointed)
        assert coordinator.prepare(pointed, parent).epochs == first.epochs
        assert coordinator.require_active(pointed).state is OccurrenceState.ACTIVE
        for _ in range(2):
            assert coordinator.begin_retirement(pointed).state is OccurrenceState.RETIRING
        for _ in range(2):
            retired = coordinator.finalize_retirement(pointed, soon(world), world.told.append)
            assert retired.state is OccurrenceState.RETIRED
        assert coordinator.begin_retirement(pointed).state is OccurrenceState.RETIRED
        assert world.slot(STAGE_FLIGHTS).owner_id is None
        assert world.ledger.rows.environments["synthetic"].holder_id is None

    def test_the_receipt_says_what_was_given(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        requested = coordinator.request(admission(world, parent), None)
        prepared = coordinator.prepare(requested.occurrence_id, parent)
        receipt = read(CompositionActivationReceiptV1, prepared.receipt, "a receipt")
        assert isinstance(receipt, CompositionActivationReceiptV1)
        assert receipt.occurrence_id == requested.occurrence_id
        assert receipt.request_digest == requested.request_digest
        assert {(one.slot_id, one.epoch) for one in receipt.epochs} == set(prepared.epochs)
        assert receipt.state is OccurrenceState.PREPARED

    def test_the_request_is_loaded_and_never_computed_again(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        requested = coordinator.request(admission(world, parent), None)
        document = coordinator.request_document(requested.occurrence_id)
        assert document.digest == requested.request_digest
        assert document.context.deployment_id == parent.deployment_id

    def test_a_view_of_nothing(self, coordinator: CompositionActivationCoordinator) -> None:
        view = coordinator.view("nowhere")
        assert (view.environment, view.pending, view.holder) == (None, None, None)

    def test_draining_nobody_is_nothing(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        requested = coordinator.request(admission(world, parent), None)
        coordinator.drain_predecessor(requested, soon(world), world.told.append)


class TestOutOfTurn:
    """Each step says what it found instead."""

    def test_requesting_for_another_predecessor(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        first = world.active(world.parent((FLIGHTS,)))
        wanted = admission(world, parent)
        refused(Refused, "predecessor_is_holder", lambda: coordinator.request(wanted, None))
        coordinator.request(wanted, first.occurrence_id)
        refused(Refused, "no_other_pending", lambda: coordinator.request(wanted, first.occurrence_id))

    def test_slots_that_somebody_registered_meanwhile(
        self, world: World, coordinator: CompositionActivationCoordinator
    ) -> None:
        stale = admission(world, world.parent((FLIGHTS,), environment="other"))
        world.active(world.parent((PLANES,)))
        refused(Refused, "slots_registered_meanwhile", lambda: coordinator.request(stale, None))

    def test_a_slot_that_somebody_claims(self, world: World, coordinator: CompositionActivationCoordinator) -> None:
        """Both were observed before either was requested; the slot was registered by who reads it."""
        world.active(world.parent((MARTS,), environment="reader"))
        wanted = [admission(world, world.parent((FLIGHTS,), environment=name)) for name in ("one", "two")]
        coordinator.request(wanted[0], None)
        refused(Refused, "slot_unclaimed", lambda: coordinator.request(wanted[1], None))

    def test_preparing_with_another_deployment(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        requested = coordinator.request(admission(world, parent), None)
        other = world.parent((FLIGHTS,))
        refused(Refused, "another_deployment", lambda: coordinator.prepare(requested.occurrence_id, other))

    def test_preparing_before_the_predecessor_was_drained(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        first = world.active(world.parent((FLIGHTS,)))
        requested = coordinator.request(admission(world, parent), first.occurrence_id)
        refused(Refused, "predecessor_takes_no_work", lambda: coordinator.prepare(requested.occurrence_id, parent))

    def test_activating_what_the_pointer_does_not_name(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        requested = coordinator.request(admission(world, parent), None)
        one = requested.occurrence_id
        refused(Refused, "occurrence_is_prepared", lambda: coordinator.activate(one, one))
        refused(Refused, "occurrence_not_active", lambda: coordinator.require_active(one))
        coordinator.prepare(one, parent)
        refused(Refused, "pointer_names_it", lambda: coordinator.activate(one, None))
        refused(Refused, "pointer_names_it", lambda: coordinator.activate(one, NOBODY))

    def test_nothing_is_known_of_nobody(self, world: World, coordinator: CompositionActivationCoordinator) -> None:
        for call in (
            lambda: coordinator.require_active(NOBODY),
            lambda: coordinator.begin_retirement(NOBODY),
            lambda: coordinator.withdraw(NOBODY),
            lambda: coordinator.abandon(NOBODY),
            lambda: coordinator.activate(NOBODY, NOBODY),
        ):
            refused(Refused, "no_such_occurrence", call)

    def test_what_was_prepared_and_abandoned_meanwhile(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        """Between the transaction and its reading back."""
        requested = coordinator.request(admission(world, parent), None)

        def abandon() -> None:
            world.coordinator.abandon(requested.occurrence_id)

        world.strike("ledger.read back", do=abandon)
        refused(Refused, "occurrence_not_prepared", lambda: coordinator.prepare(requested.occurrence_id, parent))

    def test_a_target_that_cannot_be_read_at_prepare(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        requested = coordinator.request(admission(world, parent), None)
        world.analytics.reachable = False
        refused(Unknown, "unreadable", lambda: coordinator.prepare(requested.occurrence_id, parent))
        assert state(world, requested) is OccurrenceState.REQUESTED


class TestEndings:
    """Withdraw, abandon, retire."""

    def test_withdrawing_drops_the_claims(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        requested = coordinator.request(admission(world, parent), None)
        assert world.ledger.rows.claims
        for _ in range(2):
            assert coordinator.withdraw(requested.occurrence_id).state is OccurrenceState.WITHDRAWN
        assert not world.ledger.rows.claims
        refused(Refused, "occurrence_holds_nothing", lambda: coordinator.begin_retirement(requested.occurrence_id))

    def test_what_is_requested_is_withdrawn_not_retired(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        """Found: the refusal gave no way out."""
        requested = coordinator.request(admission(world, parent), None)
        found = refused(
            Refused, "occurrence_holds_nothing", lambda: coordinator.begin_retirement(requested.occurrence_id)
        )
        assert found.problem.next_command == f"dpone occurrence withdraw {requested.occurrence_id}"

    def test_what_is_prepared_is_abandoned_and_the_environment_is_free(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        first = world.active(world.parent((FLIGHTS,)))
        world.strike("cache.swap_pointer", Fault.ERROR)
        world.promote(parent)
        prepared = coordinator.view("synthetic").pending
        assert prepared is not None
        refused(Refused, "occurrence_is_requested", lambda: coordinator.withdraw(prepared.occurrence_id))
        for end in (coordinator.begin_retirement, coordinator.abandon):
            assert end(prepared.occurrence_id).state is OccurrenceState.RETIRING
        coordinator.finalize_retirement(prepared.occurrence_id, soon(world), world.told.append)
        assert state(world, first) is OccurrenceState.RETIRED
        assert world.slot(STAGE_FLIGHTS).owner_id is None
        active = world.active(world.parent((PLANES, FLIGHTS)))
        assert active.generation == 3
        assert active.predecessor_id is None

    def test_what_became_active_is_not_abandoned(
        self, world: World, coordinator: CompositionActivationCoordinator
    ) -> None:
        """Found: abandoning retired the environment that had just been activated."""
        active = world.active()
        refused(Refused, "occurrence_is_prepared", lambda: coordinator.abandon(active.occurrence_id))
        assert state(world, active) is OccurrenceState.ACTIVE

    @pytest.mark.parametrize("call", ["ledger.read", "ledger.retire"])
    def test_a_retirement_that_fails_half_way_says_so(
        self, world: World, coordinator: CompositionActivationCoordinator, call: str
    ) -> None:
        """Found: *nothing changed* was said although the occurrence took no new work any more."""
        one = world.active().occurrence_id
        coordinator.begin_retirement(one)
        world.strike(call, Fault.ERROR)
        seen = refused(
            Unknown,
            "authority_unreachable",
            lambda: coordinator.finalize_retirement(one, soon(world), world.told.append),
        )
        assert seen.change is StateChange.MAYBE
        assert one in seen.problem.found

    def test_retiring_drains_first(self, world: World, coordinator: CompositionActivationCoordinator) -> None:
        active = world.active()
        binding = world.binding(active, FLIGHTS)
        world.strike("child.start", Fault.CRASH)
        with pytest.raises(Crash):
            world.run(binding)
        coordinator.begin_retirement(active.occurrence_id)
        one = active.occurrence_id
        refused(Busy, "drain_timed_out", lambda: coordinator.finalize_retirement(one, soon(world), world.told.append))
        world.airflow.kill(binding.airflow)
        coordinator.finalize_retirement(active.occurrence_id, soon(world), world.told.append)
        assert world.state(binding) is AttemptState.FAILED

    def test_an_unknown_attempt_keeps_an_environment(
        self, world: World, coordinator: CompositionActivationCoordinator
    ) -> None:
        active = world.active()
        binding = world.binding(active, FLIGHTS)
        world.strike("publisher.observe", Fault.ERROR)
        report_of(world.run(binding), AttemptState.COMMIT_UNKNOWN)
        refused(Refused, "no_commit_unknown", lambda: coordinator.begin_retirement(active.occurrence_id))
        succeeded(world.run(world.binding(active, PLANES)))

    def test_retiring_under_a_requested_successor(
        self, world: World, coordinator: CompositionActivationCoordinator, parent: Parent
    ) -> None:
        """The operator retires the predecessor for good; the successor's promotion goes on."""
        first = world.active(world.parent((FLIGHTS, DAILY, MARTS)))
        requested = coordinator.request(admission(world, parent), first.occurrence_id)
        coordinator.begin_retirement(first.occurrence_id)
        coordinator.finalize_retirement(first.occurrence_id, soon(world), world.told.append)
        coordinator.drain_predecessor(requested, soon(world), world.told.append)
        assert coordinator.prepare(requested.occurrence_id, parent).occurrence.generation == 2


class TestWhatIsOwned:
    """Slots by name."""

    def test_by_database(self, world: World, coordinator: CompositionActivationCoordinator) -> None:
        active = world.active()
        names = set(coordinator.owned_slots(active.occurrence_id).values())
        assert names == {
            "postgres warehouse: stage.flights",
            "postgres warehouse: stage.planes",
            "postgres warehouse: mart.daily",
            "postgres warehouse: mart.log",
            "clickhouse serving: serving.daily",
        }
        assert coordinator.owned_slots(NOBODY) == {}
