"""What takes the authority's lock runs beside nothing: no ledger transaction is open when it begins, none begins before
it ends. So its pairs have serial orders only, and need not be stepped through.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.application.ledger import burial, readmission
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.domain.readmission import Burial, Readmission, ReadmissionKind
from tests.conformance.ledger_world import ANALYTICS, document, uuid_of
from tests.interleaving.engine import Run, Stepper
from tests.interleaving.footprints import Blocking
from tests.interleaving.scenes import SCENES
from tests.interleaving.scripts import ACTORS
from tests.interleaving.stage import Stage
from tests.interleaving.works import Script

pytestmark = pytest.mark.lab
LOCKS = "lock authority"
WANTED = Readmission(
    readmission_id=uuid_of("readmission"),
    kind=ReadmissionKind.READMIT,
    authority_id=uuid_of("unknown"),
    from_incarnation="",
    incarnation="",
    because="a test",
    by="a test",
)


def _bury(tx: LedgerTransaction) -> object:
    wanted = Burial(service_id=ANALYTICS.service_id, because="a test", by="a test")
    return burial.bury(tx, wanted, lambda *_: document("judgement"))


def _begin(tx: LedgerTransaction) -> object:
    ours = replace(WANTED, authority_id=tx.lock_authority().authority_id)
    return readmission.begin(tx, ours)


EXCLUSIVE: dict[str, Script] = {"bury": _bury, "readmission begin": _begin}


def _scene_of(stage: Stage, actor: str) -> str:
    return next(scene for scene in SCENES if stage.work(actor, scene, "A") is not None)


def run_beside(stage: Stage, actor: str, exclusive: str, order: tuple[bool, ...]) -> Run:
    """Run an actor as A beside it as B, in a scene in which the actor has something to act on."""
    scene = _scene_of(stage, actor)
    first = stage.work(actor, scene, "A")
    assert first is not None
    stage.set(scene, first)
    second = stage.ground.sides["B"].work(exclusive, EXCLUSIVE[exclusive])
    return Stepper(first, second, stage.ground, Blocking()).through(order)


def waits(run: Run) -> list[tuple[str, str]]:
    """Return who waited, and before what."""
    return [(line.side, line.text) for line in run.lines if line.waits]


def goes_on_after(run: Run, side: str) -> bool:
    """Tell whether whoever waited went on only after ``side`` had done everything."""
    last = max(number for number, line in enumerate(run.lines) if line.side == side)
    return next(number for number, line in enumerate(run.lines) if line.text == "goes on") > last


@pytest.mark.parametrize("exclusive", EXCLUSIVE)
@pytest.mark.parametrize("actor", ACTORS)
def test_it_waits_for_whoever_is_inside(stage: Stage, actor: str, exclusive: str) -> None:
    """The other has sent its first statement: the lock is not given before it has ended."""
    run = run_beside(stage, actor, exclusive, (True, False, False))
    assert waits(run) == [("B", LOCKS)], run.lines
    assert run.deadlocks == 0
    assert goes_on_after(run, "A")


@pytest.mark.parametrize("exclusive", EXCLUSIVE)
@pytest.mark.parametrize("actor", ACTORS)
def test_nobody_comes_in_while_it_is_inside(stage: Stage, actor: str, exclusive: str) -> None:
    """It has its lock: the other waits at its very first statement, and then finds what was committed."""
    run = run_beside(stage, actor, exclusive, (False, False, False, True))
    ((side, statement),) = waits(run)
    assert (side, statement) == ("A", "open transaction"), run.lines
    assert run.deadlocks == 0
    assert goes_on_after(run, "B")
