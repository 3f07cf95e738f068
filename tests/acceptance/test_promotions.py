"""Promotions that meet: with one another, with a kill, and with an operator who withdrew them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.outcomes import Busy, Failure, Refused, Unknown
from tests.acceptance.commands import cache_sync, dpone
from tests.acceptance.processes import Process, promote
from tests.acceptance.stage import WRITES, Stage, set_stage
from tests.acceptance.wire import Phase
from tests.acceptance.world import Deployment, Place, World

STEPS = {
    "admit": "resolve connections",
    "request": "request ownership",
    "drain": "drain the predecessor",
    "prepare": "move ownership",
    "point": "point ",
    "activate": "activate",
}
"""The steps of a promotion, by how each is told when it begins."""
AFTER_REQUEST = ("drain", "prepare")
AFTER_PREPARE = ("point", "activate")


@dataclass(slots=True)
class Paused:
    """A promotion in a thread of its own that waits at the beginning of one step until it is let go."""

    place: Place
    deployment: Deployment
    step: str
    outcome: PromotionReport | Failure | None = None
    _there: threading.Event = field(default_factory=threading.Event)
    _go: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Paused:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._there.wait(30), f"it never came to step {self.step}: {self.outcome}"
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()

    def let_go(self) -> PromotionReport | Failure:
        """Let it go on, and return what it came to."""
        self._go.set()
        assert self._thread is not None
        self._thread.join(60)
        assert self.outcome is not None
        return self.outcome

    def _run(self) -> None:
        self.outcome = self.place.try_to_promote(self.deployment, self._told)
        self._there.set()

    def _told(self, line: str) -> None:
        if line.startswith(STEPS[self.step]) and not self._there.is_set():
            self._there.set()
            self._go.wait(60)


@pytest.fixture(scope="module")
def stage(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with set_stage(the_world, tmp_path_factory.mktemp("promotions")) as made:
        yield made


def elsewhere(place: Place, root: Path) -> Place:
    """Return the same environment with another cache on the same machine."""
    return replace(place, root=root)


# ─── two at once ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("step", STEPS)
def test_the_same_deployment_while_one_is_under_way(stage: Stage, step: str) -> None:
    generation = stage.place.generation()
    with Paused(stage.place, stage.next, step) as first:
        second = cache_sync(stage.place, stage.next)
        assert second.code == 0, second.everything
        outcome = first.let_go()
    # It is told that somebody was first, or that what it wanted is there.
    assert isinstance(outcome, PromotionReport | Refused), outcome
    stage.finish(generation)


@pytest.mark.parametrize("step", STEPS)
def test_the_same_deployment_from_another_cache(stage: Stage, tmp_path: Path, step: str) -> None:
    generation = stage.place.generation()
    other = elsewhere(stage.place, tmp_path)
    with Paused(stage.place, stage.next, step) as first:
        assert cache_sync(other, stage.next).code == 0
        first.let_go()
    stage.finish(generation)
    again = cache_sync(other, stage.deployments[stage.active])
    assert (again.code, again.out.split(":")[0]) == (0, "already active")
    assert other.pointer.read_bytes().split(b'"at"')[1][30:] == stage.place.pointer.read_bytes().split(b'"at"')[1][30:]


@pytest.mark.parametrize("step", STEPS)
def test_another_deployment_while_one_is_under_way(stage: Stage, step: str) -> None:
    generation = stage.place.generation()
    third = stage.place.release(stage.place.transfer("orders", timeout_seconds=77))
    wanted = stage.next
    with Paused(stage.place, wanted, step) as first:
        other = cache_sync(stage.place, third, "--format", "json")
        if step in ("admit", "request"):
            # Nothing of the first stands in the ledger yet; it learns that it came second.
            assert other.code == 0, other.everything
        else:
            assert (other.code, other.json["reason"]) == (10, "another_promotion_pending")
            assert wanted.deployment_id in other.json["next_command"]
            way_out = "withdraw" if step in AFTER_REQUEST else "abandon"
            assert f"dpone occurrence {way_out}" in other.json["next_command"]
        outcome = first.let_go()
    if step in ("admit", "request"):
        assert isinstance(outcome, Refused), outcome
        assert stage.place.generation() == generation + 1
        generation += 1
    else:
        assert isinstance(outcome, PromotionReport), outcome
    stage.finish(generation)


@pytest.mark.parametrize("same", [True, False])
def test_two_processes_at_the_same_time(stage: Stage, tmp_path: Path, same: bool) -> None:
    generation = stage.place.generation()
    third = stage.place.release(stage.place.transfer("orders", timeout_seconds=78))
    wanted = [stage.next, stage.next if same else third]
    places = [stage.place, elsewhere(stage.place, tmp_path)]
    processes = [
        Process(promote, (place.settings, place.order(deployment)))
        for place, deployment in zip(places, wanted, strict=True)
    ]
    for one in processes:
        one.begin()
    outcomes = [one.result() for one in processes]
    assert any(isinstance(one, PromotionReport) for one in outcomes), outcomes
    assert all(isinstance(one, PromotionReport | Refused | Busy) for one in outcomes), outcomes
    expected = 1 if same else sum(isinstance(one, PromotionReport) for one in outcomes)
    assert stage.place.generation() == generation + expected
    assert cache_sync(stage.place, third).code == 0
    assert stage.place.states()[-1] == "ACTIVE"
    stage.finish(stage.place.generation())


# ─── killed ─────────────────────────────────────────────────────────────────────────────────────────────────────────

BETWEEN = (("read", 1), ("authority", 1), ("read", 5), ("read", 6), ("read back", 1), ("read", 9), ("read", 10))
KILLS = [
    *((script, nth, Phase.OPENS) for script, nth in BETWEEN),
    *((script, 1, phase) for script in WRITES for phase in Phase),
]


@pytest.mark.parametrize(("script", "nth", "phase"), KILLS)
def test_a_cache_sync_that_is_killed_is_run_again(stage: Stage, script: str, nth: int, phase: Phase) -> None:
    """Killed before it has said what it was about to say: the message is lost with its connection."""
    generation = stage.place.generation()
    process = Process(promote, (stage.place.settings, stage.place.order(stage.next)))
    wire = stage.wire

    def die() -> None:
        process.kill()
        wire.cut()

    moment = wire.at(script, phase, die, nth=nth)
    assert process.begin().result() is None
    assert moment.came()
    stage.finish(generation)


# ─── withdrawn and abandoned ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("then", ["nothing", "another"])
@pytest.mark.parametrize("step", AFTER_REQUEST)
def test_a_withdrawn_promotion_whose_process_resumes(stage: Stage, step: str, then: str) -> None:
    """The live one is not drained by it, and what came after is left alone."""
    place, generation = stage.place, stage.place.generation()
    with Paused(place, stage.next, step) as paused:
        ((occurrence,),) = place.ledger(
            "SELECT occurrence_id FROM dpone_control.occurrence WHERE environment = %s AND state = 'REQUESTED'",
            place.name,
        )
        assert dpone(place, "occurrence", "withdraw", str(occurrence)).code == 0
        drained = "RETIRING" in place.states()
        if then == "another":
            third = place.release(place.transfer("orders", timeout_seconds=79))
            assert cache_sync(place, third).code == 0
        before = place.states()
        outcome = paused.let_go()
    assert isinstance(outcome, Refused | Unknown), outcome
    assert outcome.problem.next_command
    assert place.states() == before
    assert drained == (step == "prepare")
    if then == "another":
        assert place.states()[-1] == "ACTIVE"
        generation += 1
    stage.finish(generation)


@pytest.mark.parametrize("step", AFTER_PREPARE)
def test_an_abandoned_promotion_whose_process_resumes(stage: Stage, step: str) -> None:
    place, generation = stage.place, stage.place.generation()
    with Paused(place, stage.next, step) as paused:
        ((occurrence,),) = place.ledger(
            "SELECT occurrence_id FROM dpone_control.occurrence WHERE environment = %s AND state = 'PREPARED'",
            place.name,
        )
        said = dpone(place, "occurrence", "abandon", str(occurrence))
        assert said.code == 0, said.everything
        before = place.states()
        outcome = paused.let_go()
    assert isinstance(outcome, Refused | Unknown), outcome
    assert place.states() == before
    assert before[-1] == "RETIRED"
    stage.finish(generation + 1)


def test_old_deployments_are_collected_and_what_is_needed_stays(place: Place) -> None:
    """The roll back that they are kept for works, and so does promoting one anew that was removed."""
    place.source("orders")
    made = [place.release(place.transfer("orders", timeout_seconds=seconds)) for seconds in (71, 72, 73)]
    for deployment in made:
        place.promote(deployment)
    first, second, third = (deployment.deployment_id for deployment in made)
    planned = dpone(place, "airflow", "cache-collect", "--plan", "--format", "json")
    assert planned.code == 3, planned.everything
    assert [one["deployment_id"] for one in planned.json["removed"]] == [first]
    place.world.wires["authority"].down()
    unanswered = dpone(place, "airflow", "cache-collect", "--format", "json")
    place.world.up()
    assert (unanswered.code, unanswered.json["state_change"]) == (12, "nothing changed"), unanswered.everything
    done = dpone(place, "airflow", "cache-collect", "--format", "json")
    assert done.code == 0, done.everything
    assert done.json["removed"] == planned.json["removed"]
    assert {one["deployment_id"]: one["why"] for one in done.json["kept"]} == {
        third: "the pointer names it",
        second: "in service before, as generation 2: kept for a roll back",
    }
    again = dpone(place, "airflow", "cache-collect", "--plan")
    assert again.code == 0, again.everything
    for deployment in (made[1], made[0]):
        assert cache_sync(place, deployment).code == 0
    assert dpone(place, "airflow", "cache-collect", "--earlier", "0").code == 0
    with Paused(place, made[2], "drain"):
        said = dpone(place, "airflow", "cache-collect", "--plan", "--earlier", "0", "--format", "json")
    assert made[2].deployment_id in {one["deployment_id"] for one in said.json["kept"]}, said.everything
