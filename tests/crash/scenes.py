"""The scenes: what a process is asked to do while it is struck, and the ways in which somebody goes on afterwards.

A scene is played once without a fault, which gives its points their names; then once for each point, each kind of
fault and each way. Whatever was struck, every way leads to the same: the environment is promoted, its workload runs,
nothing is left behind, and the ledger's word on every attempt is what its target has seen.

To add the points of another command, add a `Scene` to `SCENES` and run ``python -m tests.crash.registry --write``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpone_provider.application.recovery import RecoveredAttempt
from dpone_provider.application.standing import MARK_LAG
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.secret import Secret
from tests.crash import went_back
from tests.crash.stage import STRUCK, Act, Stage
from tests.simulation.deployments import Work
from tests.simulation.wire import Fault
from tests.simulation.world import DAILY, FLIGHTS, MARTS, PLANES

Way = Callable[[Stage], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """``set`` prepares a stage and returns what is done under faults; each of ``ways`` goes on from whatever stands."""

    name: str
    what: str
    set: Callable[[Stage], Act]
    ways: Mapping[str, Way]
    until: str = ""
    """The step at which another scene's points begin; empty: all points are its own."""


# ─── promotions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def first(stage: Stage) -> Act:
    """The environment is new."""
    return lambda: stage.world.promote(stage.last, actor=STRUCK)


def over_a_predecessor(stage: Stage) -> Act:
    """A predecessor is ACTIVE, and an attempt of it is dead."""
    stage.world.active(stage.world.parent((FLIGHTS, PLANES), name="before"))
    stage.left_behind("child.event")
    return lambda: stage.world.promote(stage.last, actor=STRUCK)


def from_prepared(stage: Stage) -> Act:
    """A promotion ended after it was prepared."""
    stage.world.active(stage.world.parent((FLIGHTS, PLANES), name="before"))
    stage.left_pending("cache.swap_pointer")
    return lambda: stage.world.promote(stage.last, actor=STRUCK)


def on_another_machine(stage: Stage) -> Act:
    """The deployment is ACTIVE; another machine's cache has nothing."""
    stage.world.active(stage.last)
    cache = stage.world.another_cache()
    return lambda: stage.world.promote(stage.last, cache=cache, actor=STRUCK)


def withdrawing(stage: Stage) -> Act:
    """A promotion ended before the drain, and is withdrawn."""
    stage.world.active(stage.world.parent((FLIGHTS, PLANES), name="before"))
    stage.left_pending("ledger.drain")
    return lambda: stage.world.coordinator.withdraw(stage.pending)


def abandoning(stage: Stage) -> Act:
    """A promotion ended after it was prepared, and is abandoned."""
    stage.left_pending("cache.swap_pointer")

    def act() -> object:
        stage.world.coordinator.abandon(stage.pending)
        return stage.world.coordinator.finalize_retirement(stage.pending, stage.soon(), stage.world.told.append)

    return act


def retiring(stage: Stage) -> Act:
    """An ACTIVE occurrence, with a dead attempt, is retired for good."""
    stage.world.active(stage.last)
    stage.left_behind("child.event")
    occurrence_id = stage.active().occurrence_id

    def act() -> object:
        stage.world.coordinator.begin_retirement(occurrence_id)
        return stage.world.coordinator.finalize_retirement(occurrence_id, stage.soon(), stage.world.told.append)

    return act


def promoted_again(stage: Stage) -> None:
    """Run cache-sync again."""
    stage.demand_promoted()
    stage.settle()
    stage.demand_works()


def ended_and_promoted(stage: Stage) -> None:
    """Withdraw or abandon whatever is pending, then run cache-sync."""
    stage.end_pending()
    promoted_again(stage)


PROMOTING: Mapping[str, Way] = {"cache-sync again": promoted_again, "withdraw or abandon": ended_and_promoted}

# ─── attempts ───────────────────────────────────────────────────────────────────────────────────────────────────────


def attempt_of(work: Work) -> Callable[[Stage], Act]:
    """Return the setting of an attempt of a workload, after a first run of everything that it reads.

    So much has happened since the promotion that the target's mark lags.
    """

    def setting(stage: Stage) -> Act:
        _promoted(stage, work)
        binding = stage.binding()
        stage.world.ledger.numbers.last += MARK_LAG + 1
        return lambda: stage.world.run(binding, actor=STRUCK)

    return setting


def next_try(stage: Stage) -> Act:
    """The process of the first try ended while its worker ran."""
    _promoted(stage, FLIGHTS)
    stage.left_behind("child.event")
    binding = stage.binding(try_number=2)
    stage.tries = 2
    return lambda: stage.world.run(binding, actor=STRUCK)


def delivered_again(stage: Stage) -> Act:
    """The process of the first delivery ended; the same attempt is delivered a second time."""
    _promoted(stage, FLIGHTS)
    binding = stage.left_behind("child.event")

    def act() -> object:
        with stage.impatient(0.5):
            return stage.world.run(binding, actor=STRUCK)

    return act


def held_by_the_dead(stage: Stage) -> Act:
    """Another run's attempt holds the slots, and is dead."""
    _promoted(stage, FLIGHTS)
    stage.left_behind("child.event")
    binding = stage.binding(run="another run")
    return lambda: stage.world.run(binding, actor=STRUCK)


def recovering(work: Work, call: str, fault: Fault = Fault.CRASH) -> Callable[[Stage], Act]:
    """Return the setting of ``dpone recover`` after a process that ended at a call; a session of it is left."""

    def setting(stage: Stage) -> Act:
        _promoted(stage, work)
        stage.left_behind(call, fault)
        for server in (stage.world.warehouse, stage.world.analytics):
            for login in [one for one in server.logins.values() if one.enabled]:
                server.log_in(Credential(login.name, Secret(login.secret)))
        return lambda: _said(stage.world.recovery.recover_dead(None))

    return setting


def on_word(stage: Stage) -> Act:
    """An operator says that an attempt is dead; its process is, Airflow does not know yet."""
    _promoted(stage, FLIGHTS)
    binding = stage.left_behind("child.event")
    stage.world.airflow.begin(binding.airflow)
    return lambda: _said((stage.world.recovery.recover_on_word(binding.attempt_id),))


def reconciling(work: Work) -> Callable[[Stage], Act]:
    """Return the setting of ``dpone attempt reconcile``: the target could not be read when the gates were CLOSED."""

    def setting(stage: Stage) -> Act:
        attempt_id = _unknown(stage, work)
        return lambda: stage.world.recovery.reconcile(attempt_id)

    return setting


def judging(stage: Stage) -> Act:
    """dbt was killed in a node that no later run rebuilds: nothing can tell, and the operator judges."""
    attempt_id = _unknown(stage, MARTS)
    judge = stage.world.recovery.judge
    return lambda: judge(attempt_id, AttemptState.FAILED, because="looked at the table", by="operator")


def _unknown(stage: Stage, work: Work) -> object:
    _promoted(stage, work)
    binding = stage.binding()
    hook = stage.world.strike("publisher.observe", Fault.ERROR)
    if work is MARTS:
        stage.world.dbt_program.dies_in = "model.flights.log"
    stage.run(binding)
    stage.world.dbt_program.dies_in = None
    stage.world.wire.hooks.remove(hook)
    assert stage.world.state(binding) is AttemptState.COMMIT_UNKNOWN
    return binding.attempt_id


def _promoted(stage: Stage, work: Work) -> None:
    stage.work = work
    stage.world.active(stage.last)
    if work is DAILY:
        stage.run(stage.binding(run="before", work=MARTS))


def _said(recovered: tuple[RecoveredAttempt, ...]) -> object:
    """Return why one could not be ended, if there is one."""
    return next((one.problem for one in recovered if one.problem is not None), recovered)


def tried_again(stage: Stage) -> None:
    """Airflow runs the next try."""
    stage.demand_tried_again()
    stage.settle()
    stage.demand_works()


def recovered(stage: Stage) -> None:
    """An operator runs ``dpone recover``, and ``dpone attempt reconcile`` for what is unknown."""
    stage.settle()
    stage.demand_works()


def redelivered(stage: Stage) -> None:
    """Airflow delivers the very same attempt again, which follows the first and then ends it."""
    with stage.impatient(10.0):
        stage.run(stage.binding(try_number=stage.tries))
    recovered(stage)


TRYING: Mapping[str, Way] = {"next try": tried_again, "recover": recovered, "delivered again": redelivered}
ENDING: Mapping[str, Way] = {"next try": tried_again, "recover again": recovered}
SETTLING: Mapping[str, Way] = {"reconcile again": recovered, "next try": tried_again}

SCENES = (
    Scene(name="promote", what="cache-sync into a new environment", set=first, ways=PROMOTING),
    Scene(
        name="handover",
        what="cache-sync over a predecessor with a dead attempt",
        set=over_a_predecessor,
        ways=PROMOTING,
    ),
    Scene(name="continue", what="cache-sync that continues after prepare", set=from_prepared, ways=PROMOTING),
    Scene(name="follow", what="cache-sync on another machine", set=on_another_machine, ways=PROMOTING),
    Scene(name="withdraw", what="occurrence withdraw", set=withdrawing, ways=PROMOTING),
    Scene(name="abandon", what="occurrence abandon", set=abandoning, ways=PROMOTING),
    Scene(name="retire", what="occurrence retire with a dead attempt", set=retiring, ways=PROMOTING),
    Scene(name="transfer", what="an attempt into an SQL target", set=attempt_of(FLIGHTS), ways=TRYING),
    Scene(name="publish", what="an attempt into ClickHouse", set=attempt_of(DAILY), ways=TRYING),
    Scene(name="dbt", what="an attempt of a dbt workload", set=attempt_of(MARTS), ways=TRYING),
    Scene(name="retry", what="a try whose earlier one is dead", set=next_try, ways=TRYING, until="begin"),
    Scene(name="redeliver", what="an attempt delivered again after its process died", set=delivered_again, ways=TRYING),
    Scene(
        name="wait", what="an attempt whose slots a dead one holds", set=held_by_the_dead, ways=TRYING, until="begin"
    ),
    Scene(name="recover", what="recover: a worker was loading", set=recovering(FLIGHTS, "child.event"), ways=ENDING),
    Scene(
        name="recover-unissued",
        what="recover: admitted, and no login journaled",
        set=recovering(FLIGHTS, "publisher.bind"),
        ways=ENDING,
    ),
    Scene(
        name="recover-dispatched",
        what="recover: the exchange was sent",
        set=recovering(DAILY, "publisher.dispatch", Fault.CRASH_AFTER),
        ways=ENDING,
    ),
    Scene(name="recover-word", what="recover --attempt", set=on_word, ways=ENDING),
    Scene(name="reconcile", what="attempt reconcile, by the receipt", set=reconciling(FLIGHTS), ways=SETTLING),
    Scene(name="reconcile-published", what="attempt reconcile, by the UUID", set=reconciling(DAILY), ways=SETTLING),
    Scene(name="judge", what="attempt reconcile --as failed", set=judging, ways=SETTLING),
    Scene(
        name="readmit",
        what="control readmit: it forgot a promotion, and what ran under it",
        set=went_back.gone_back,
        ways={"readmit again": went_back.readmitted_again},
    ),
    Scene(
        name="forget",
        what="control forget, on a copy",
        set=went_back.copied,
        ways={"forget again": went_back.forgotten_again},
    ),
    Scene(
        name="bury",
        what="control bury: attempts write the lost service and another",
        set=went_back.lost_for_good,
        ways={"bury again": went_back.buried_again},
    ),
)


def scene_of(point: str) -> Scene:
    """Return the scene that a point is of."""
    (found,) = [one for one in SCENES if one.name == point.partition(".")[0]]
    return found
