"""The scenes of an authority that goes back, of a copy of one, and of a lost service, on the lab's engines.

Each leaves the one place as it found it. What an administrator's hand does here, no product does: rows are put back
past every trigger, and a burial is taken back so that the next scene has its service again.
"""

from __future__ import annotations

from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import ServiceId
from dpone_provider.domain.outcomes import Refused
from dpone_provider.lab.provisioning import WAREHOUSE
from tests.acceptance.world import Deployment, Place, World
from tests.crash import struck_control
from tests.crash.lab_stage import CLICKHOUSE, SQL, LabStage
from tests.crash.struck import Strike
from tests.wentback.backup import Backup
from tests.wentback.copies import at_authority, clone, markers


def readmit(stage: LabStage, at: str) -> list[str]:
    """The ledger knows one attempt that ran, and forgot a promotion and two attempts that still do."""
    stage.left_behind()
    backup = Backup(stage.place.world.lab)
    stage.finish_promotion(stage.other())
    _both_left_behind(stage)
    backup.restore()
    passed = stage.strike("readmit", at, struck_control.readmit)
    _again(stage.place).readmit(struck_control.BECAUSE, take_over=False)
    _, done = _again(stage.place).readmit(struck_control.BECAUSE, take_over=False)
    assert done.readmission is None
    stage.settle()
    stage.finish_promotion(stage.deployments[0])
    stage.demand_works()
    return passed


def forget(stage: LabStage, at: str) -> list[str]:
    """A copy beside the original, which is at work: it touches nothing, and the original goes on."""
    _both_left_behind(stage)
    original, world = stage.place, stage.place.world
    clone(world, "copied")
    before = markers(world)
    stage.place = at_authority(original, "copied", original.root)
    try:
        passed = stage.strike("forget", at, struck_control.forget)
        _again(stage.place).forget(struck_control.BECAUSE)
        states = world.sql("copied", "SELECT DISTINCT state FROM dpone_control.occurrence")
        assert {state for (state,) in states} <= {"RETIRED", "WITHDRAWN"}
        assert isinstance(stage.place.try_to_promote(stage.deployments[0]), Refused)
        assert markers(world) == before
    finally:
        stage.place = original
        world.sql("postgres", "DROP DATABASE copied WITH (FORCE)")
    stage.settle()
    stage.finish_promotion(stage.deployments[0])
    stage.demand_works()
    return passed


def bury(stage: LabStage, at: str) -> list[str]:
    """ClickHouse is gone for good while an attempt writes it, and another writes elsewhere."""
    _both_left_behind(stage)
    place, world = stage.place, stage.place.world
    service = ServiceId(str(place.environment["connections"]["analytics.lab"]["composition_service_id"]))
    world.wires["analytics"].down()
    passed = stage.strike("bury", at, struck_control.bury, service)
    _again(place).bury(service, struck_control.BECAUSE)
    assert _again(place).bury(service, struck_control.BECAUSE).attempts == ()
    runtime = place.runtime()
    runtime.recover_dead()
    for one in runtime.attempts(unresolved_only=True, limit=100):
        assert one.services == (service,)
        runtime.judge_attempt(one.attempt_id, AttemptState.FAILED, because="it is gone", by="operator")
    stage.finish_promotion(_without_clickhouse(stage))
    stage.demand_works()
    world.up()
    _dug_up(world)
    stage.finish_promotion(stage.deployments[0])
    return passed


def _both_left_behind(stage: LabStage) -> None:
    for workload in (CLICKHOUSE, SQL):
        stage.workload = workload
        stage.left_behind()


def _again(place: Place) -> struck_control.Control:
    """Return the control of another process, which nothing happens to."""
    return struck_control.control(place.settings, Strike("", "", place.root / "passed"))


def _without_clickhouse(stage: LabStage) -> Deployment:
    return stage.place.release(stage.place.transfer("orders"))


def _dug_up(world: World) -> None:
    """Take back what a burial did, and drop what the lost service still had staged."""
    back = "BEGIN SET LOCAL session_replication_role = replica; DELETE FROM dpone_control.burial; END"
    world.sql(WAREHOUSE, f"DO $$ {back} $$")
    staged = world.clickhouse("SELECT name FROM system.tables WHERE match(name, '^dpone_[0-9a-f]{16}')")
    for name in staged.split():
        world.clickhouse(f"DROP TABLE dpone_stage.{name}")
