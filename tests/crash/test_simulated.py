"""Every crash point on the simulator: a crash, an error and a lost answer at each, then every way out."""

from __future__ import annotations

import pytest

from tests.crash.naming import differences
from tests.crash.playing import FAULTS, play
from tests.crash.registry import of_scene, registered
from tests.crash.scenes import SCENES, Scene, scene_of

POINTS = registered()
AT_LEAST = 100


def test_there_are_enough_points() -> None:
    assert len(POINTS) >= AT_LEAST


def test_every_registered_point_is_of_a_scene() -> None:
    assert {name.partition(".")[0] for name in POINTS} == {scene.name for scene in SCENES}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_scene_hits_exactly_its_registered_points(scene: Scene) -> None:
    hit = play(scene).hit
    assert differences(of_scene(scene.name, POINTS), hit) == []


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_every_way_is_right_where_nothing_went_wrong(scene: Scene) -> None:
    for way in scene.ways:
        play(scene, way=way)


@pytest.mark.parametrize("point", POINTS)
def test_a_fault_at_a_point(point: str) -> None:
    scene = scene_of(point)
    for fault in FAULTS:
        for way in scene.ways:
            assert play(scene, point, fault, way).struck, f"{point} was never hit"
