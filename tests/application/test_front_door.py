"""The front door: close, observe, seal; whoever takes it, however often, and whoever comes at the same time."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.recovery import Recovered
from dpone_provider.domain.attempt import Attempt, AttemptState, ProofKind
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptBinding
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import DponeError, Unknown
from dpone_provider.domain.secret import Secret
from tests.simulation.actors import Crash
from tests.simulation.deployments import Work
from tests.simulation.outcomes import failure_of, report_of, succeeded
from tests.simulation.server import LoginDenied, ServerSession, StoredLogin
from tests.simulation.wire import Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, SERVING_DAILY, World

STEPS_OF_TAKING = 15


@pytest.fixture
def world() -> World:
    """A world with everything promoted, and something to transfer."""
    world = World()
    occurrence = world.active()
    succeeded(world.run(world.binding(occurrence, MARTS, run="before"), actor="before"))
    return world


@pytest.fixture
def active(world: World) -> Occurrence:
    """The ACTIVE occurrence."""
    (found,) = world.ledger.rows.occurrences.values()
    return found


def left_behind(world: World, binding: AttemptBinding, call: str = "child.start") -> AttemptBinding:
    """An attempt whose controller died before this call."""
    hook = world.strike(call, Fault.CRASH, actor="dead")
    with pytest.raises(Crash):
        world.run(binding, actor="dead")
    world.actors.dead.discard("dead")
    world.wire.hooks.remove(hook)
    world.airflow.kill(binding.airflow)
    return binding


def take(world: World, binding: AttemptBinding, actor: str = "recoverer") -> Attempt:
    """Take the front door, as ``dpone recover`` does."""
    with world.actors.acting(actor):
        deadline = Deadline.after(world.clock, world.times.closing)
        return world.front_door.take(binding.attempt_id, world.observer_of(world.attempt(binding)), deadline)


def outcomes(world: World, binding: AttemptBinding) -> int:
    """How many outcome proofs the attempt has."""
    proofs = (proof for proof, _ in world.ledger.rows.proofs.values())
    return sum(one.attempt_id == binding.attempt_id and one.kind is ProofKind.OUTCOME for one in proofs)


class TestAgain:
    """Taking it again is nothing (F2)."""

    @pytest.mark.parametrize("work", [FLIGHTS, MARTS, DAILY], ids=lambda work: work.id)
    def test_three_times_the_last_after_the_next_attempt_runs(
        self, world: World, active: Occurrence, work: Work
    ) -> None:
        # A dbt run that may have begun an incremental model would be COMMIT_UNKNOWN.
        lost = left_behind(world, world.binding(active, work), "ledger.deliver" if work is MARTS else "child.start")
        first = take(world, lost)
        assert take(world, lost) == first
        succeeded(world.run(world.binding(active, work, try_number=2)))
        before = world.ledger.rows.copy()
        tables = dict(world.warehouse.tables), dict(world.analytics.tables)
        assert take(world, lost) == first
        assert world.ledger.rows == before
        assert (world.warehouse.tables, world.analytics.tables) == tables
        assert outcomes(world, lost) == 1

    @pytest.mark.parametrize("step", range(1, STEPS_OF_TAKING))
    @pytest.mark.parametrize("work", [FLIGHTS, DAILY], ids=lambda work: work.id)
    def test_a_recoverer_that_dies_is_continued(self, world: World, active: Occurrence, work: Work, step: int) -> None:
        """F5: before and after each of its calls; afterwards nothing of the login is left."""
        for fault in (Fault.CRASH, Fault.CRASH_AFTER):
            lost = left_behind(world, world.binding(active, work, run=f"{fault}"))
            hook = world.strike_step(step, f"recoverer {fault}", fault)
            try:
                take(world, lost, f"recoverer {fault}")
            except Crash:
                assert hook.at
            ended = take(world, lost, "next recoverer")
            assert ended.state is AttemptState.FAILED
            assert outcomes(world, lost) == 1
            world.front_door.sweep(Deadline.after(world.clock, 10.0))
            assert not {**world.warehouse.logins, **world.analytics.logins}


class TestTwoAtOnce:
    """Two recoverers with the same stale view: exactly one acts (F20)."""

    @pytest.mark.parametrize("step", range(1, STEPS_OF_TAKING))
    @pytest.mark.parametrize("work", [FLIGHTS, MARTS, DAILY], ids=lambda work: work.id)
    def test_at_every_step(self, world: World, active: Occurrence, work: Work, step: int) -> None:
        lost = left_behind(world, world.binding(active, work))
        seen: list[Attempt] = []
        world.strike_step(step, "slow", do=lambda: seen.append(take(world, lost, "quick")))
        ended = take(world, lost, "slow")
        seen = seen or [take(world, lost, "quick")]
        assert seen == [ended]
        assert outcomes(world, lost) == 1
        assert world.gate_of(lost).state is GateState.CLOSED

    @pytest.mark.parametrize("step", range(1, STEPS_OF_TAKING))
    @pytest.mark.parametrize("work", [FLIGHTS, DAILY], ids=lambda work: work.id)
    def test_the_slow_one_does_not_touch_what_came_after(
        self, world: World, active: Occurrence, work: Work, step: int
    ) -> None:
        """While it stands still, the attempt is ended, and the next try has staged its rows."""
        lost = left_behind(world, world.binding(active, work))
        second = world.binding(active, work, try_number=2)
        released: list[bool] = []

        def hold(actor: str, call: object) -> None:
            if actor == "next try" and str(call) in ("ledger.stage", "publisher.verify"):
                world.actors.wait_for(lambda: bool(released))

        def meanwhile() -> None:
            take(world, lost, "quick")
            world.wire.hooks.append(hold)
            next_try = world.actors.spawn("next try", lambda: world.run(second, actor="next try"))
            world.actors.wait_for(lambda: next_try.waits_for is not None and _staged(world))

        world.strike_step(step, "slow", do=meanwhile)
        take(world, lost, "slow")
        released.append(True)
        world.actors.run_all()
        for actor in world.actors.known:
            if actor.name == "next try":
                assert isinstance(actor.result, AttemptReport), actor.error
                succeeded(actor.result)
        assert outcomes(world, lost) == 1

    def test_the_own_controller_comes_too_late(self, world: World, active: Occurrence) -> None:
        """F3: the controller was stopped before each of its calls, and its attempt ended meanwhile."""
        for step in range(5, 40):
            binding = world.binding(active, DAILY, run=f"run {step}")
            world.strike_step(step, f"stopped {step}", do=partial(_recover, world, binding))
            outcome = world.run(binding, actor=f"stopped {step}")
            assert isinstance(outcome, AttemptReport), outcome
            assert outcome.attempt == world.attempt(binding)
            assert outcome.attempt.state in (AttemptState.FAILED, AttemptState.SUCCEEDED)
            assert outcomes(world, binding) == 1
            published = world.publication(binding)
            shown = world.analytics.tables.get(SERVING_DAILY)
            if outcome.attempt.state is AttemptState.FAILED and shown is not None and published is not None:
                assert shown.identity != published.staged_identity

    def test_nothing_is_intended_behind_a_barred_door(self, world: World, active: Occurrence) -> None:
        """Found: the recoverer's seal was refused by a law of the ledger, as a fault of the program."""
        lost = world.binding(active, DAILY)
        looked: list[Attempt] = []

        def recover() -> None:
            """The recoverer stands just before its seal while the controller goes on."""
            world.strike("ledger.seal", do=lambda: world.actors.wait_for(lambda: bool(looked)), actor="recoverer")
            world.actors.spawn("recoverer", lambda: _ended(world, lost))
            world.actors.wait_for(lambda: "ledger.bar" in world.wire.calls("recoverer"))

        world.strike("ledger.intend", do=recover, actor="controller")
        world.strike("ledger.seal", do=lambda: looked.append(world.attempt(lost)), actor="controller")
        report_of(world.run(lost), AttemptState.FAILED)
        world.actors.run_all()
        assert world.publication(lost) is None
        assert outcomes(world, lost) == 1


class TestClosing:
    """What is left of a login (F4, F6)."""

    @pytest.mark.parametrize("in_transaction", [False, True])
    @pytest.mark.parametrize(
        "call", ["ledger.closing", "gate.disable", "gate.read_back", "gate.observe", "ledger.closed"]
    )
    def test_an_error_in_any_phase_never_lets_it_in_again(
        self, world: World, active: Occurrence, call: str, in_transaction: bool
    ) -> None:
        lost = left_behind(world, world.binding(active))
        login = world.warehouse.logins[world.gate_of(lost).principal.name]
        credential = Credential(login.name, Secret(login.secret))
        session = world.warehouse.log_in(credential)
        session.in_transaction = in_transaction
        world.strike(call, Fault.ERROR)
        with suppress(DponeError):
            take(world, lost)
        if call != "ledger.closing":
            with pytest.raises(LoginDenied):
                world.warehouse.log_in(credential)
        assert take(world, lost).state is AttemptState.FAILED
        assert session.ended
        with pytest.raises(LoginDenied):
            world.warehouse.log_in(credential)

    def test_a_login_under_way_counts_as_alive(self, world: World, active: Occurrence) -> None:
        lost = left_behind(world, world.binding(active))
        world.warehouse.half_open.append("pid 7")
        with pytest.raises(DponeError) as refused:
            take(world, lost)
        unknown = failure_of(refused.value, Unknown, "gate_not_closed")
        assert "pid 7" in unknown.problem.found
        world.warehouse.half_open.clear()
        assert take(world, lost).state is AttemptState.FAILED

    def test_one_that_began_after_disabling_does_not_count(self, world: World, active: Occurrence) -> None:
        lost = left_behind(world, world.binding(active))
        world.strike("gate.observe", do=lambda: _linger(world, lost))
        world.strike("gate.observe", do=lambda: world.warehouse.half_open.append("pid 8"), nth=2)
        assert take(world, lost).state is AttemptState.FAILED

    def test_a_blind_observer_proves_nothing(self, world: World, active: Occurrence) -> None:
        lost = left_behind(world, world.binding(active))
        world.warehouse.sees_all = False
        with pytest.raises(DponeError) as refused:
            take(world, lost)
        assert "may not see every session" in failure_of(refused.value, Unknown, "gate_not_closed").problem.found


class TestCollecting:
    """Logins are removed after their gate is CLOSED."""

    def test_what_cannot_be_collected_is_left_to_the_sweep(self, world: World, active: Occurrence) -> None:
        binding = world.binding(active)
        world.strike("gate.collect", Fault.ERROR)
        succeeded(world.run(binding))
        name = world.gate_of(binding).principal.name
        assert name in world.warehouse.logins
        world.strike("gate.collect", Fault.ERROR)
        assert world.front_door.sweep(Deadline.after(world.clock, 10.0)) == (name,)
        assert world.front_door.sweep(Deadline.after(world.clock, 10.0)) == ()
        assert not world.warehouse.logins

    def test_collecting_needs_no_connection_to_every_service(self, world: World, active: Occurrence) -> None:
        """Found: an attempt that was sealed was reported as refused, because its login could not be collected."""
        binding = world.binding(active)
        world.strike("ledger.seal", do=lambda: world.gates.pop(world.warehouse.service_id))
        succeeded(world.run(binding))

    def test_the_sweep_leaves_open_gates_and_silent_services_alone(self, world: World, active: Occurrence) -> None:
        lost = left_behind(world, world.binding(active))
        world.analytics.reachable = False
        assert world.front_door.sweep(Deadline.after(world.clock, 10.0)) == ()
        assert world.gate_of(lost).principal.name in world.warehouse.logins

    def test_a_login_that_a_late_statement_made_is_swept(self, world: World, active: Occurrence) -> None:
        """ClickHouse: CREATE USER that the server runs after the gate is CLOSED makes an unreachable login."""
        lost = left_behind(world, world.binding(active, DAILY))
        take(world, lost)
        name = world.gate_of(lost).principal.name
        world.analytics.logins[name] = StoredLogin(name, "late", False, "late", ())
        assert world.front_door.sweep(Deadline.after(world.clock, 10.0)) == ()
        assert not world.analytics.logins


def _staged(world: World) -> bool:
    prefixes = ("dpone_",)
    names = [*world.warehouse.tables, *world.analytics.tables]
    return any(name.name.startswith(prefixes) for name in names)


def _recover(world: World, binding: AttemptBinding) -> None:
    if binding.attempt_id in world.ledger.rows.attempts:
        take(world, binding)


def _ended(world: World, binding: AttemptBinding) -> Attempt:
    found = world.recovery.recover_on_word(binding.attempt_id)
    assert found.did is Recovered.ENDED, found
    return found.attempt


def _linger(world: World, binding: AttemptBinding) -> None:
    world.warehouse.sessions.append(ServerSession(999, world.gate_of(binding).principal.name))
