"""Every durable point on the lab's engines: a process is killed there, and the way out leads to a working environment.

Of a ledger transaction everything has been said but COMMIT.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.acceptance.world import World
from tests.crash.lab import PLAYS, dbt_stage_of, place_in, stage_of
from tests.crash.lab_stage import DBT, LabStage
from tests.crash.naming import POLLING, differences, is_durable
from tests.crash.registry import SCENES_ON_THE_LAB, WITH_DBT, of_scene, registered

pytestmark = pytest.mark.lab
KNOWN = registered()
ON_THE_LAB = [name for name, on_the_lab in KNOWN.items() if on_the_lab]
WITH_A_STUB = [name for name in ON_THE_LAB if name not in WITH_DBT]
ALL = os.environ.get("DPONE_TEST_CRASHES") == "all"
"""Whether every point is struck here; otherwise one of each scene is. The simulator strikes them all in every run."""
AT_LEAST = 100
STANDS_ELSEWHERE = frozenset({"publish.require-unchanged.catalog.incarnation@shop"})
"""On the simulator the transfer to ClickHouse reads the warehouse."""
AS_OFTEN_AS_IT_TAKES = POLLING | {"close-stray"}
"""The steps that do the same for each of what was left behind: here by whatever was played before, too."""
BESIDE = ("look.ledger.standing", "witnessed.witness.allegiance", "require-unchanged.catalog.raise-mark@")
"""What a command asks before anything else, as the simulator's scenes begin after it; and a mark that came to lag here
by what was played before: where an attempt raises one is a point of the scenes that are about it."""


def one_of(scene: str) -> str:
    """Return the point in the middle of a scene."""
    points = of_scene(scene, WITH_A_STUB)
    return points[len(points) // 2]


STRUCK = WITH_A_STUB if ALL else [one_of(scene) for scene in sorted(SCENES_ON_THE_LAB)]


@pytest.fixture(scope="module")
def stage(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabStage]:
    """One place for all; each play leaves it working."""
    made = stage_of(place_in(tmp_path_factory.mktemp("crash"), the_world))
    made.finish_promotion(made.deployments[0])
    yield made
    the_world.up()
    assert the_world.violations() == []


def play(stage: LabStage, point: str) -> None:
    """Play a scene in which a process is killed at a point, and go on; it passes registered points only.

    A step that does the same as often as it takes may do it more often here, or where the simulator had no need.
    """
    scene = point.partition(".")[0]
    stage.workload, act = PLAYS[scene]
    passed = act(stage, point)
    assert point in passed, f"{point} was never passed"
    stage.settle()
    stage.demand_rest()
    strange = {one for one in passed if one not in KNOWN and one.split(".")[1] not in AS_OFTEN_AS_IT_TAKES}
    beside = {one for one in strange if one.partition(".")[2].startswith(BESIDE)}
    assert strange - beside <= STANDS_ELSEWHERE
    durable = [one for one in passed if one in KNOWN and is_durable(one)]
    assert [one for one in differences(of_scene(scene, ON_THE_LAB), durable) if one.startswith("hit")] == []


def test_there_are_enough_points() -> None:
    assert len(WITH_A_STUB) >= AT_LEAST
    assert PLAYS.keys() == SCENES_ON_THE_LAB
    assert len(WITH_DBT) == 10
    assert set(WITH_DBT) <= set(ON_THE_LAB), "a point that has another name by now"


@pytest.mark.parametrize("point", STRUCK)
def test_a_crash_at_a_point(stage: LabStage, point: str) -> None:
    play(stage, point)


@pytest.mark.timeout(600)
@pytest.mark.skipif(not ALL, reason="dbt takes minutes: DPONE_TEST_CRASHES=all runs it, as make soak CRASHES=all does")
def test_a_crash_at_ten_points_with_dbt_itself(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each is recovered from; the next one's run is the proof that nothing of it is in the way."""
    stage = dbt_stage_of(place_in(tmp_path_factory.mktemp("dbt"), the_world))
    for point in WITH_DBT:
        assert point in stage.crash(point), f"{point} was never passed"
        stage.settle()
    assert stage.workload == DBT
    stage.demand_works()
    stage.demand_rest()
