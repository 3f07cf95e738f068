"""Every durable point on the lab's engines: a process is killed there, and the way out leads to a working environment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.world import World
from tests.crash.lab import PLAYS, LabStage, place_in, stage_of
from tests.crash.naming import differences
from tests.crash.registry import of_scene, registered

pytestmark = pytest.mark.lab
ON_THE_LAB = [name for name, on_the_lab in registered().items() if on_the_lab]


@pytest.fixture(scope="module")
def stage(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabStage]:
    """One place for all; each play leaves it working."""
    made = stage_of(place_in(tmp_path_factory.mktemp("crash"), the_world))
    made.finish_promotion(made.deployments[0])
    yield made
    the_world.up()
    assert the_world.violations() == []


def play(stage: LabStage, scene: str, at: str) -> list[str]:
    """Play a scene, and demand that everything works afterwards."""
    stage.workload, act = PLAYS[scene]
    passed = act(stage, at)
    stage.settle()
    stage.demand_works()
    return passed


@pytest.mark.parametrize("scene", PLAYS)
def test_a_scene_passes_exactly_its_registered_points(stage: LabStage, scene: str) -> None:
    passed = [name for name in play(stage, scene, "")]
    registered_here = of_scene(scene, registered())
    assert [name for name in differences(registered_here, passed) if name.startswith("hit")] == []
    assert differences(of_scene(scene, ON_THE_LAB), [one for one in passed if one in ON_THE_LAB]) == []


@pytest.mark.parametrize("point", ON_THE_LAB)
def test_a_crash_at_a_point(stage: LabStage, point: str) -> None:
    scene = point.partition(".")[0]
    assert point in play(stage, scene, point), f"{point} was never passed"
