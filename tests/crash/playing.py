"""Playing a scene: once as it is, or with one fault at one point, and going on from there in one way."""

from __future__ import annotations

from tests.crash.naming import Names
from tests.crash.scenes import Scene
from tests.crash.stage import Stage, Strike
from tests.simulation.invariants import Violated
from tests.simulation.wire import Fault

FAULTS = (Fault.CRASH, Fault.ERROR, Fault.ANSWER_LOST)


def play(scene: Scene, point: str = "", fault: Fault | None = None, way: str | None = None) -> Strike:
    """Play a scene; with a ``way``, go on from where the fault left it until everything has come to rest.

    Raises:
        Violated: an invariant, or what must stand at the end; the message says in which play.
    """
    strike = Strike(Names(scene.name, scene.until), at=point, fault=fault)
    stage = Stage()
    try:
        act = scene.set(stage)
        stage.strike(strike, act)
        if way is not None:
            scene.ways[way](stage)
    except Violated as error:
        raise Violated(f"{point}, {fault.name if fault else 'no fault'}, then {way}: {error}") from error
    return strike
