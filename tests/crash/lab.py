"""The scenes on the lab's real engines: a process is killed at a named point, and somebody goes on from there.

The same names and the same scenes as on the simulator; each of them leaves its place as it found it, so that a scene
is played over and over in one place. Of a ledger transaction everything was said but COMMIT when the process dies.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance import dbt
from tests.acceptance.world import Place, succeeded
from tests.crash import lab_control, struck
from tests.crash.lab_stage import CLICKHOUSE, DBT, SQL, LabStage

# ─── scenes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Play = Callable[[LabStage, str], list[str]]
"""Plays a scene in which a process is killed at a point (empty: at none), and returns the points that were passed."""


def promote(stage: LabStage, at: str) -> list[str]:
    """Into an environment that nothing holds."""
    if stage.promoted is not None:
        stage.place.runtime().retire(stage.occurrence("ACTIVE"), 10.0)
    wanted = stage.deployments[0]
    passed = stage.strike("promote", at, struck.promote, stage.place.order(wanted))
    stage.finish_promotion(wanted)
    return passed


def handover(stage: LabStage, at: str) -> list[str]:
    """Over a predecessor with a dead attempt."""
    stage.left_behind()
    wanted = stage.other()
    passed = stage.strike("handover", at, struck.promote, stage.place.order(wanted))
    stage.finish_promotion(wanted)
    return passed


def continued(stage: LabStage, at: str) -> list[str]:
    """After prepare."""
    wanted = stage.other()
    stage.killed_at("point.cache.swap-pointer", struck.promote, stage.place.order(wanted))
    passed = stage.strike("continue", at, struck.promote, stage.place.order(wanted))
    stage.finish_promotion(wanted)
    return passed


def follow(stage: LabStage, at: str) -> list[str]:
    """Into another cache."""
    wanted = next(
        one for one in stage.deployments if stage.promoted and one.deployment_id == stage.promoted.deployment_id
    )
    other = stage.place.root / f"machine-{next(stage._numbers)}"
    other.mkdir()
    here, stage.place.root = stage.place.root, other
    try:
        passed = stage.strike("follow", at, struck.promote, stage.place.order(wanted))
        stage.place.promote(wanted)
        assert wanted.deployment_id in stage.place.pointer.read_text()
    finally:
        stage.place.root = here
    return passed


def withdraw(stage: LabStage, at: str) -> list[str]:
    """What was requested."""
    wanted = stage.other()
    stage.killed_at("drain-predecessor.ledger.drain", struck.promote, stage.place.order(wanted))
    passed = stage.strike("withdraw", at, struck.withdraw, stage.occurrence("REQUESTED"))
    stage.finish_promotion(wanted)
    return passed


def abandon(stage: LabStage, at: str) -> list[str]:
    """What was prepared."""
    wanted = stage.other()
    stage.killed_at("point.cache.swap-pointer", struck.promote, stage.place.order(wanted))
    passed = stage.strike("abandon", at, struck.abandon, stage.occurrence("PREPARED"))
    stage.finish_promotion(wanted)
    return passed


def retire(stage: LabStage, at: str) -> list[str]:
    """With a dead attempt."""
    stage.left_behind()
    occurrence_id = stage.occurrence("ACTIVE")
    passed = stage.strike("retire", at, struck.retire, occurrence_id)
    stage.place.runtime().retire(occurrence_id, 10.0)
    stage.finish_promotion(stage.deployments[0])
    return passed


def attempt(scene: str) -> Play:
    """Return a scene of one attempt, whose target's mark lags; the next try or ``recover`` goes on, by turns."""

    def play(stage: LabStage, at: str) -> list[str]:
        stage.let_marks_lag()
        stage.tried = stage.place.tried("the run of " + str(next(stage._numbers)))
        passed = stage.strike(scene, at, struck.run, *stage.arguments(stage.tried))
        if len(at) % 2:
            stage.try_again()
        stage.settle()
        if not len(at) % 2:
            stage.demand_works()
        return passed

    return play


def retry(stage: LabStage, at: str) -> list[str]:
    """The next try of a dead one."""
    first = stage.left_behind()
    stage.tried = stage.place.tried(first.run_id, number=2)
    passed = stage.strike("retry", at, struck.run, *stage.arguments(stage.tried), until="begin")
    stage.settle()
    stage.demand_works()
    return passed


def recovering(scene: str, step: str) -> Play:
    """Return a scene of ``dpone recover`` after a process that was killed at a step."""

    def play(stage: LabStage, at: str) -> list[str]:
        stage.left_behind(step)
        passed = stage.strike(scene, at, struck.recover)
        stage.settle()
        stage.demand_works()
        return passed

    return play


def reconciling(scene: str, act: Callable[..., object]) -> Play:
    """Return a scene of ``dpone attempt reconcile``: the target could not be read when its gate was CLOSED."""

    def play(stage: LabStage, at: str) -> list[str]:
        wire = stage.place.world.wires["analytics" if stage.workload == CLICKHOUSE else "warehouse"]
        looking = b"DROP TABLE IF EXISTS" if stage.workload == CLICKHOUSE else b"dpone publisher: observe"
        moment = wire.at_bytes(looking, wire.down if stage.workload == CLICKHOUSE else wire.cut)
        stage.run()
        assert moment.came()
        stage.place.world.up()
        passed = stage.strike(scene, at, act, stage.attempt())
        stage.settle()
        stage.demand_works()
        return passed

    return play


PLAYS: dict[str, tuple[str, Play]] = {
    "promote": (SQL, promote),
    "handover": (SQL, handover),
    "continue": (SQL, continued),
    "follow": (SQL, follow),
    "withdraw": (SQL, withdraw),
    "abandon": (SQL, abandon),
    "retire": (SQL, retire),
    "transfer": (SQL, attempt("transfer")),
    "publish": (CLICKHOUSE, attempt("publish")),
    "retry": (SQL, retry),
    "recover": (SQL, recovering("recover", "listen.child.event@staged")),
    "recover-unissued": (SQL, recovering("recover-unissued", "begin.publisher.bind")),
    "recover-dispatched": (CLICKHOUSE, recovering("recover-dispatched", "workload-record.ledger.read")),
    "reconcile": (SQL, reconciling("reconcile", struck.reconcile)),
    "reconcile-published": (CLICKHOUSE, reconciling("reconcile-published", struck.reconcile)),
    "readmit": (SQL, lab_control.readmit),
    "forget": (SQL, lab_control.forget),
    "bury": (SQL, lab_control.bury),
}
"""Every scene that is played on the lab, with the workload that it is about."""


def stage_of(place: Place) -> LabStage:
    """Set a place: a table that goes to the warehouse and to ClickHouse; two deployments of both transfers."""
    place.source("orders")
    both = [place.transfer("orders"), place.onward("orders", id="marts")]
    first = place.release(*both)
    second = place.release(place.transfer("orders", timeout_seconds=60), both[1])
    return LabStage(place, [first, second])


def dbt_stage_of(place: Place) -> LabStage:
    """Set a place: a table that was brought to the warehouse, and a dbt model over it."""
    place.source("orders")
    workspace = place.workspace(place.transfer("orders"), native=dbt.native())
    dbt.project(place, workspace)
    deployment = place.released(workspace)
    stage = LabStage(place, [deployment])
    stage.finish_promotion(deployment)
    succeeded(stage.run())
    stage.workload = DBT
    return stage


def place_in(root: Path, world: Any) -> Place:
    """Return a new place."""
    return Place(world, root)
