"""The scenes of an authority that goes back, of a copy of one, and of a service that is lost for good.

What is struck is ``dpone control readmit``, ``forget`` or ``bury``; somebody then runs the same command again, and goes
on to a promoted, working environment. Where a ledger forgets, the watch begins anew with what stands then.
"""

from __future__ import annotations

from dataclasses import replace

from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.outcomes import Refused
from tests.crash.stage import STRUCK, Act, Stage
from tests.simulation.authority import Backup, another, bury, forget, readmit
from tests.simulation.invariants import demand
from tests.simulation.world import DAILY, FLIGHTS, MARTS, WORKS

WITHOUT_DAILY = tuple(work for work in WORKS if work is not DAILY)


def gone_back(stage: Stage) -> Act:
    """The ledger is restored: it knows one attempt that ran, and forgot a promotion and two attempts that still do."""
    _at_work(stage)
    backup = Backup(stage.world)
    demand("rest", isinstance(stage.world.promote(stage.world.parent(name="lost")), PromotionReport), "not promoted")
    stage.left_behind("child.event", work=FLIGHTS, run="a forgotten run")
    stage.left_behind("child.event", work=DAILY, run="a forgotten run")
    backup.restore()
    stage.watch_anew()
    return lambda: readmit(stage.world, actor=STRUCK)


def readmitted_again(stage: Stage) -> None:
    """Run ``dpone control readmit`` again, settle what is in doubt, and promote anew."""
    readmit(stage.world, actor=stage.someone())
    demand("rest", readmit(stage.world, actor=stage.someone()).readmission is None, "it has not ended")
    # ClickHouse drops a login to disable it: of one that a process dropped and did not enter, nothing is left to enter.
    entered = {service_id for service_id, _ in stage.world.ledger.rows.strays}
    demand("rest", stage.world.warehouse.service_id in entered, "strays on:", entered)
    stage.settle()
    stage.demand_promoted()
    stage.demand_works()


def copied(stage: Stage) -> Act:
    """The ledger is copied: the copy finds itself in another incarnation, while the original is at work."""
    _at_work(stage)
    stage.left_behind("child.event", work=DAILY)
    stage.original = Backup(stage.world)
    stage.touched = _on_targets(stage)
    stage.world.ledger.says.incarnation = another(stage.world.ledger.says.incarnation)
    return lambda: forget(stage.world, actor=STRUCK)


def forgotten_again(stage: Stage) -> None:
    """Run ``dpone control forget`` again: the copy owns nothing and touched nothing, and the original goes on."""
    forget(stage.world, actor=stage.someone())
    rows = stage.world.ledger.rows
    states = {str(one.state) for one in rows.occurrences.values()}
    demand("rest", states == {"RETIRED"}, "a copy with", states)
    demand("rest", not any(slot.owner_id for slot in rows.slots.values()), "a copy that owns slots")
    demand("rest", _on_targets(stage) == stage.touched, "a copy touched a target")
    refused = stage.promote()
    demand("rest", isinstance(refused, Refused), "a copy promoted:", refused)
    assert stage.original is not None
    stage.original.restore(into=stage.original.incarnation)
    stage.watch_anew()
    stage.settle()
    stage.demand_promoted()
    stage.demand_works()


def lost_for_good(stage: Stage) -> Act:
    """ClickHouse is gone for good while an attempt writes it, and another writes elsewhere; both are dead."""
    _at_work(stage)
    stage.left_behind("child.event", work=DAILY)
    stage.world.analytics.reachable = False
    return lambda: bury(stage.world, stage.world.analytics.service_id, actor=STRUCK)


def buried_again(stage: Stage) -> None:
    """Run ``dpone control bury`` again, judge what was lost, and promote what does without the service."""
    world = stage.world
    gone = world.analytics.service_id
    bury(world, gone, actor=stage.someone())
    demand("rest", not bury(world, gone, actor=stage.someone()).attempts, "it has not ended")
    with world.actors.acting(stage.someone()):
        world.recovery.recover_dead(None)
        for one in list(world.ledger.rows.attempts.values()):
            if one.state is AttemptState.COMMIT_UNKNOWN:
                demand("rest", one.services == (gone,), one)
                world.recovery.judge(one.attempt_id, AttemptState.FAILED, because="it is gone", by="operator")
    stage.last = world.parent(WITHOUT_DAILY, name="without")
    stage.demand_promoted()
    stage.demand_works()


def _at_work(stage: Stage) -> None:
    """Everything is promoted, dbt has run, and a transfer's process is dead."""
    stage.work = FLIGHTS
    stage.world.active(stage.last)
    stage.run(stage.binding(run="before", work=MARTS))
    stage.left_behind("child.event", work=FLIGHTS)


def _on_targets(stage: Stage) -> object:
    """Return what stands on the targets: logins, tables, markers."""
    return [
        (
            server.enrolled and replace(server.enrolled),
            {name: replace(login) for name, login in server.logins.items()},
            sorted(map(str, server.tables)),
        )
        for server in stage.world.servers.values()
    ]
