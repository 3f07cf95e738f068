"""An authority that went back: refused, readmitted from wherever it stopped, promoted anew, and at work again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pytest

from dpone_provider.application.ledger import readmission as scripts
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import AttemptBinding, principal_name
from dpone_provider.domain.occurrence import OccurrenceState
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, fail
from dpone_provider.domain.publication import PublicationState
from dpone_provider.domain.readmission import Readmission, ReadmissionKind
from tests.application.test_recovery import left
from tests.simulation.actors import Crash
from tests.simulation.authority import Backup, another, readmit, revive, standing
from tests.simulation.invariants import Watch
from tests.simulation.outcomes import failure_of, succeeded
from tests.simulation.wire import Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, PLANES, STAGE_FLIGHTS, World


@dataclass(slots=True)
class Lost:
    """A world whose ledger was restored: what it still knows to run, and what it forgot."""

    world: World
    known: AttemptBinding
    forgotten: AttemptBinding
    generation: int
    epoch: int


def lost(*, into: str | None = None) -> Lost:
    """Let an attempt run and a promotion be requested; back up; hand over, run and leave more; restore."""
    world = World()
    first = world.active()
    succeeded(world.run(world.binding(first, MARTS, run="before"), actor="before"))
    known = left(world, world.binding(first, FLIGHTS))
    hook = world.strike("ledger.drain", Fault.CRASH, actor="promoter")
    with pytest.raises(Crash):
        world.promote(world.parent(name="next"))
    world.wire.hooks.remove(hook)
    backup = Backup(world)
    report = world.promote(world.parent(name="next"), actor="second promoter")
    assert isinstance(report, PromotionReport), report
    second = next(one for one in world.ledger.rows.occurrences.values() if one.state is OccurrenceState.ACTIVE)
    for work in (FLIGHTS, MARTS, DAILY):
        succeeded(world.run(world.binding(second, work, run="lost"), actor=f"lost {work.id}"))
    forgotten = left(world, world.binding(second, PLANES, run="forgotten"))
    found = Lost(world, known, forgotten, report.generation or 0, world.slot(STAGE_FLIGHTS).epoch)
    backup.restore(into=into)
    return found


def goes_on(one: Lost) -> None:
    """What was readmitted is whole: stopped, closed, above what was seen; and it works."""
    world, rows = one.world, one.world.ledger.rows
    states = sorted(str(each.state) for each in rows.occurrences.values())
    assert states == ["RETIRING", "WITHDRAWN"]
    assert world.state(one.known) is AttemptState.COMMIT_UNKNOWN
    assert {gate.state for gate in rows.gates.values()} == {GateState.CLOSED}
    # A login that could not be removed lets nobody in, and goes with the next sweep.
    assert not any(login.enabled for login in world.warehouse.logins.values())
    world.front_door.sweep(Deadline.after(world.clock, 30.0))
    assert principal_name(one.forgotten.attempt_id) not in world.warehouse.logins
    assert not world.warehouse.sessions
    assert standing(world).refusal is None
    assert principal_name(one.forgotten.attempt_id) in {name for _, name in rows.strays}

    failure_of(world.promote(world.parent(), actor="third promoter"), Refused, "attempt_commit_unknown")
    assert world.recovery.reconcile(one.known.attempt_id).state is AttemptState.FAILED
    report = world.promote(world.parent(), actor="third promoter")
    assert isinstance(report, PromotionReport), report
    assert report.generation is not None
    assert report.generation > one.generation
    assert world.slot(STAGE_FLIGHTS).epoch > one.epoch
    anew = next(each for each in world.ledger.rows.occurrences.values() if each.state is OccurrenceState.ACTIVE)
    # From here on nothing of the forgotten time is left to be seen.
    world.wire.after.append(Watch(world, receipts=frozenset(world.warehouse.receipts)).look)
    for work in (FLIGHTS, MARTS, DAILY):
        succeeded(world.run(world.binding(anew, work, run="anew"), actor=f"anew {work.id}"))


def test_restored_in_place() -> None:
    """The server is the same, the targets have seen more."""
    one = lost()
    failure_of(one.world.promote(one.world.parent(), actor="other"), Refused, "authority_went_back")
    failure_of(one.world.run(one.known, actor="zombie"), Refused, "authority_went_back")
    done = readmit(one.world)
    assert done.readmission is not None
    assert done.strays == (principal_name(one.forgotten.attempt_id),)
    assert len(done.spent) == 2
    assert readmit(one.world).readmission is None
    goes_on(one)


def test_restored_elsewhere_is_taken_over_only_if_told() -> None:
    """The targets name an incarnation that may still be at work."""
    one = lost(into=another("7/16384/00000001"))
    before = [server.enrolled for server in one.world.servers.values()]
    with pytest.raises(DponeError) as caught:
        readmit(one.world)
    assert caught.value.failure.problem.reason == "target_obeys_another_authority"
    assert one.world.ledger.rows.readmissions == {}
    assert [server.enrolled for server in one.world.servers.values()] == before
    readmit(one.world, take_over=True)
    goes_on(one)


def test_a_prepare_that_rolls_back_raises_no_alarm() -> None:
    """A mark is a number that was taken, and committed, before it was told."""
    world = World()
    world.active()
    for fault in (Fault.ERROR, Fault.ANSWER_LOST, Fault.CRASH):
        hook = world.strike("ledger.prepare", fault, actor=f"promoter {fault}")
        with suppress(Crash):
            world.promote(world.parent(name=f"next-{fault.name.lower()}"), actor=f"promoter {fault}")
        world.wire.hooks.remove(hook)
        assert standing(world).refusal is None
        report = world.promote(world.parent(name=f"next-{fault.name.lower()}"), actor=f"again {fault}")
        assert isinstance(report, PromotionReport), report
        assert standing(world).refusal is None


def test_a_target_that_does_not_answer_stops_it_before_anything_is_done() -> None:
    """Nobody knows what such a target obeys."""
    one = lost()
    one.world.analytics.reachable = False
    with pytest.raises(DponeError):
        readmit(one.world)
    assert one.world.ledger.rows.readmissions == {}
    one.world.analytics.reachable = True
    readmit(one.world)
    goes_on(one)


def test_another_machine_follows_whatever_its_pointer_names() -> None:
    """What was forgotten was promoted into two other caches, of which the readmission sees neither."""
    world = World()
    world.active()
    backup = Backup(world)
    others = [world.another_cache(), world.another_cache()]
    for number, parent in enumerate((world.parent(name="next"), world.parent(name="last"))):
        for cache in others:
            report = world.promote(parent, cache=cache, actor=f"machine {number}")
            assert isinstance(report, PromotionReport), report
    forgotten = [cache.pointers["synthetic"].generation for cache in others]
    assert forgotten == [3, 3]
    backup.restore()
    assert world.cache.pointers["synthetic"].generation == 1
    readmit(world)
    anew = world.active()
    world.wire.after.append(Watch(world, receipts=frozenset(world.warehouse.receipts)).look)
    for number, cache in enumerate(others):
        report = world.promote(world.parent(), cache=cache, actor=f"machine {number}, anew")
        assert isinstance(report, PromotionReport), report
        assert cache.pointers["synthetic"].occurrence_id == anew.occurrence_id
    succeeded(world.run(world.binding(anew, FLIGHTS)))


def test_a_beginning_that_is_rolled_back_hides_nothing() -> None:
    """A sequence is in no transaction: what begins leaves it alone, and the targets' marks still tell."""
    one = lost()
    own = one.world.ledger.rows.authority[0]
    wanted = Readmission(
        readmission_id="00000000-0000-4000-8000-000000000001",
        kind=ReadmissionKind.READMIT,
        authority_id=own.authority_id,
        from_incarnation=own.incarnation,
        incarnation=own.incarnation,
        because="told by a test",
        by="a test",
    )

    def killed(tx: LedgerTransaction) -> Failed:
        assert not isinstance(scripts.begin(tx, wanted), Refused)
        return fail("killed", "the process", found="its end", allowed="COMMIT", next_command="again")

    one.world.ledger.readmitting().run("readmission begin", killed, Deadline.after(one.world.clock, 1.0))
    assert one.world.ledger.rows.readmissions == {}
    assert standing(one.world).refusal is not None
    readmit(one.world)
    goes_on(one)


def test_nobody_is_let_in_while_it_is_open() -> None:
    """Between its steps every other command refuses."""
    one = lost()
    one.world.strike("ledger.readmission settle", Fault.CRASH, actor="operator")
    with pytest.raises(Crash):
        readmit(one.world)
    revive(one.world)
    failure_of(one.world.promote(one.world.parent(), actor="other"), Refused, "authority_went_back")
    readmit(one.world)
    goes_on(one)


@pytest.mark.parametrize("fault", [Fault.CRASH, Fault.CRASH_AFTER, Fault.ERROR, Fault.ANSWER_LOST])
def test_run_again_after_a_fault_at_every_step(fault: Fault) -> None:
    """Wherever it stopped, the same command carries it to its end; promoted anew, every invariant holds."""
    number = 0
    while True:
        number += 1
        one = lost()
        hook = one.world.strike_step(number, "operator", fault)
        try:
            readmit(one.world)
        except (Crash, DponeError):
            assert hook.met >= number
        if hook.met < number:
            break
        revive(one.world)
        readmit(one.world)
        goes_on(one)
    assert number > 25


def test_what_was_running_is_in_doubt_with_its_publication() -> None:
    """The ledger says STAGED at most; the lost time may have dispatched it."""
    world = World()
    first = world.active()
    succeeded(world.run(world.binding(first, MARTS, run="before"), actor="before"))
    daily = left(world, world.binding(first, DAILY))
    backup = Backup(world)
    assert isinstance(world.promote(world.parent(name="next"), actor="second"), PromotionReport)
    backup.restore()
    readmit(world)
    publication = world.publication(daily)
    assert publication is not None
    assert publication.state is PublicationState.UNKNOWN
    assert world.recovery.reconcile(daily.attempt_id).state is AttemptState.FAILED
