"""Controllers that are stopped inside a ledger transaction: others are told who keeps them waiting, and ``recover`` and
the drain end what sleeps. When the stopped one goes on, it learns that nothing of its transaction was committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dpone_provider.application.promotion import PromotionReport
from dpone_provider.application.recovery import Recovered
from dpone_provider.domain.outcomes import Busy, Failed, Refused, Unknown
from tests.acceptance.commands import cache_sync, dpone
from tests.acceptance.processes import Process, promote, run
from tests.acceptance.stage import WRITES, Stage, set_stage
from tests.acceptance.wire import Phase
from tests.acceptance.world import TIMES, Place, World, succeeded
from tests.waiting import wait_until

QUICK = replace(TIMES, ledger=1.5)


@pytest.fixture(scope="module")
def stage(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with set_stage(the_world, tmp_path_factory.mktemp("stopped"), QUICK) as made:
        yield made


def stopped_promoter(stage: Stage, script: str) -> Process:
    """Return a cache-sync that is stopped before the COMMIT of a ledger transaction leaves it."""
    process = Process(promote, (stage.place.settings, stage.place.order(stage.next)))
    moment = stage.wire.at(script, Phase.COMMITS, process.stop, stuck=True)
    process.begin()
    wait_until(moment.came, what=f"the promoter to come to {script}")
    return process


@pytest.mark.parametrize("script", WRITES)
def test_a_promoter(stage: Stage, script: str) -> None:
    place, generation, before = stage.place, stage.place.generation(), stage.stands()
    process = stopped_promoter(stage, script)
    try:
        second = cache_sync(place, stage.next, "--format", "json")
        if script in ("request", "activate"):
            # No drain is on the way to what is locked.
            expected = (11, "ledger_row_locked") if script == "request" else (13, "activation_incomplete")
            assert (second.code, second.json["reason"]) == expected, second.everything
            assert f"dpone/{script}/" in second.json["found"]
            assert "dpone recover" in second.json["found"] + second.json["next_command"]
            said = dpone(place, "recover", "--format", "json")
            assert said.code == 0, said.everything
            (ended,) = said.json["ended_sessions"]
            assert ended.startswith(f"dpone/{script}/")
            assert "idle in transaction" in ended
        else:
            assert (second.code, second.json["ended"]) == (0, "activated"), second.everything
    finally:
        process.resume()
    outcome = process.result()
    # Whether it goes on and finishes or learns that it lost its transaction: nothing happens twice.
    assert isinstance(outcome, PromotionReport | Refused | Unknown), outcome
    assert stage.stands() != before or script == "request"
    stage.finish(generation)


def test_recover_tells_a_person_whom_it_ended(stage: Stage) -> None:
    generation = stage.place.generation()
    process = stopped_promoter(stage, "prepare")
    said = wait_until(lambda: _ended(dpone(stage.place, "recover").err), what="the sleeper to be ended")
    assert "dpone/prepare/" in said
    assert "nothing of its transaction was committed" in said
    process.resume()
    process.result()
    stage.finish(generation)


def _ended(err: str) -> str | None:
    return err if "ended the session" in err else None


# ─── a task's controller ────────────────────────────────────────────────────────────────────────────────────────────

INSIDE = ("admit", "intend", "journal", "ready", "deliver", "stage", "dispatch", "closing", "closed", "seal")
"""The ledger transactions of one attempt."""


@pytest.fixture(scope="module")
def loaded(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, PromotionReport]]:
    place = Place(the_world, tmp_path_factory.mktemp("tasks"), times=replace(QUICK, closing=6.0))
    place.source("orders")
    promoted = place.promote(place.release(place.transfer("orders")))
    yield place, promoted
    the_world.up()
    assert the_world.violations() == []


@pytest.mark.parametrize("script", INSIDE)
def test_a_task(loaded: tuple[Place, PromotionReport], script: str) -> None:
    """Stopped before the COMMIT of each of its ledger transactions; ended on the operator's word."""
    place, promoted = loaded
    tried = place.tried()
    process = Process(run, (place.settings, promoted.occurrence_id, promoted.deployment_id, "ordinary.orders", tried))
    wire = place.world.wires["authority"]
    # Of two transactions named admit, the first only looks.
    moment = wire.at(script, Phase.COMMITS, process.stop, stuck=True, nth=2 if script == "admit" else 1)
    process.begin()
    wait_until(moment.came, what=f"the task to come to {script}")
    live = place.attempts()[-1:]
    if script == "admit":
        # Nobody knows of it; what it locked keeps others out until it is ended.
        rival = place.run(promoted, "orders")
        assert isinstance(rival, Busy), rival
        assert "dpone/admit/" in rival.holder
        assert place.runtime().end_stopped_controllers()
    else:
        assert live[0][1] == "RUNNING"
        recovered = place.runtime().recover_on_word(live[0][0])
        assert recovered.did is Recovered.ENDED, recovered
    process.resume()
    outcome = process.result()
    assert outcome is not None
    assert not isinstance(outcome, Refused) or script == "admit"
    states = [state for _, state in place.attempts()]
    assert set(states) <= {"SUCCEEDED", "FAILED"}, states
    if script != "admit":
        assert place.attempts()[-1][0] == live[0][0]
    if script == INSIDE[-1]:
        # Nothing of all these is in the way of another run.
        succeeded(place.run(promoted, "orders"))
        assert len(place.target("orders")) == 5


def test_the_drain_ends_a_task_that_is_stopped(loaded: tuple[Place, PromotionReport]) -> None:
    """Airflow says that it is dead; its rows are locked by what it was doing."""
    place, promoted = loaded
    tried = place.tried()
    process = Process(run, (place.settings, promoted.occurrence_id, promoted.deployment_id, "ordinary.orders", tried))
    moment = place.world.wires["authority"].at("dispatch", Phase.COMMITS, process.stop, stuck=True)
    process.begin()
    wait_until(moment.came, what="the task to come to dispatch")
    following = place.release(place.transfer("orders", timeout_seconds=61))
    told: list[str] = []
    place.promote(following, told=told.append)
    assert any("dpone/dispatch/" in line for line in told), told
    process.resume()
    outcome = process.result()
    assert outcome is not None
    assert not isinstance(outcome, Failed | Busy)
    assert place.states() == ["RETIRED", "ACTIVE"]
    assert place.attempts()[-1][1] == "FAILED"
