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


def _run(stage: Stage, actor: str, exclusive: str, order: tuple[bool, ...]) -> Run:
    scene = _scene_of(stage, actor)
    first = stage.work(actor, scene, "A")
    assert first is not None
    stage.set(scene, first)
    second = stage.sides["B"].work(exclusive, EXCLUSIVE[exclusive])
    return Stepper(first, second, stage.admin, Blocking()).through(order)


def _waits(run: Run) -> list[tuple[str, str]]:
    return [(line.side, line.text) for line in run.lines if line.waits]


@pytest.mark.parametrize("exclusive", EXCLUSIVE)
@pytest.mark.parametrize("actor", ACTORS)
def test_it_waits_for_whoever_is_inside(stage: Stage, actor: str, exclusive: str) -> None:
    """The other has sent its first statement: the lock is not given before it has ended."""
    run = _run(stage, actor, exclusive, (True, False, False))
    assert _waits(run) == [("B", LOCKS)], run.lines
    assert run.deadlocks == 0
    last = max(number for number, line in enumerate(run.lines) if line.side == "A")
    goes_on = next(number for number, line in enumerate(run.lines) if line.text == "goes on")
    assert goes_on > last


@pytest.mark.parametrize("exclusive", EXCLUSIVE)
@pytest.mark.parametrize("actor", ACTORS)
def test_nobody_comes_in_while_it_is_inside(stage: Stage, actor: str, exclusive: str) -> None:
    """It has its lock: the other waits at its very first statement, and then finds what was committed."""
    run = _run(stage, actor, exclusive, (False, False, False, True))
    ((side, statement),) = _waits(run)
    assert (side, statement) == ("A", "open transaction"), run.lines
    assert run.deadlocks == 0
    last = max(number for number, line in enumerate(run.lines) if line.side == "B")
    goes_on = next(number for number, line in enumerate(run.lines) if line.text == "goes on")
    assert goes_on > last
