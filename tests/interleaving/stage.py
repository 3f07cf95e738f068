"""Everything that a pair needs: both sides, the scenes, solo runs; on the ground of one server."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.conformance.ledger_world import Steps
from tests.interleaving.engine import Work
from tests.interleaving.footprints import Footprint
from tests.interleaving.ground import Ground, Row, Snapshot
from tests.interleaving.recorder import footprint_of
from tests.interleaving.scenes import SCENES, Cast
from tests.interleaving.scripts import ACTORS, FENCE, FENCED_COMMIT
from tests.interleaving.works import FencedCommit, FenceWork

TIDY_EVERY = 150
OPEN_SCENE = "delivered"
"""Where a fenced transaction may be open: its login is READY and delivered."""
UNSTABLE = frozenset(
    ["ledger_sequence", "closed_sequence", "entered", "at", "requested_at", "admitted_at", "journaled_at", "entered_at"]
)
"""Columns that hold a number or a time, which differ from run to run without meaning anything."""
Final = dict[str, frozenset[Row]]


@dataclass(frozen=True, slots=True)
class Solo:
    """One transaction alone in one scene: what it touched, whether it changed anything, what was there afterwards."""

    footprint: Footprint
    effective: bool
    outcome: object
    final: Final


@dataclass(slots=True)
class Stage:
    """The ground and both sides, for a whole session."""

    ground: Ground
    casts: dict[str, Cast] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    _solos: dict[tuple[str, str], Solo | None] = field(default_factory=dict)
    _restores: int = 0

    def build(self) -> None:
        """Reach every scene once, and keep it."""
        empty = self.ground.save("empty")
        for scene in SCENES.values():
            self.ground.restore(empty)
            self.casts[scene.name] = scene.build(Steps(self.ground.sides["A"].ledger))
            self.snapshots[scene.name] = self.ground.save(scene.name)

    def set(self, scene: str, *works: Work) -> None:
        """Set the scene; where one of ``works`` is a fenced transaction that is past its fence, close its gate then."""
        self._restores += 1
        if self._restores % TIDY_EVERY == 0:
            self.ground.tidy()
        self.ground.restore(self.snapshots[scene])
        begun = [work for work in works if isinstance(work, FencedCommit)]
        for work in begun:
            work.prelude()
        gate = self.casts[scene].gate
        if begun and gate is not None:
            steps = Steps(self.ground.sides["A"].ledger)
            steps.closed(steps.closing(gate))

    def work(self, actor: str, scene: str, side: str) -> Work | None:
        """Return the actor's transaction on a side, or None where it has nothing to act on."""
        cast = self.casts[scene]
        if actor in (FENCE, FENCED_COMMIT):
            if cast.writer is None or (actor == FENCED_COMMIT and scene != OPEN_SCENE):
                return None
            return (FenceWork if actor == FENCE else FencedCommit)(self.ground.fences[side], cast.writer)
        script = ACTORS[actor].make(cast)
        return None if script is None else self.ground.sides[side].work(actor, script)

    def solo(self, actor: str, scene: str) -> Solo | None:
        """Return what the actor does alone, run once."""
        key = actor, scene
        if key not in self._solos:
            self._solos[key] = self._run_alone(actor, scene)
        return self._solos[key]

    def final(self) -> Final:
        """Return every row that is there now, without what differs from run to run anyway."""
        return self.ground.rows(UNSTABLE)

    def _run_alone(self, actor: str, scene: str) -> Solo | None:
        work = self.work(actor, scene, "A")
        if work is None:
            return None
        self.set(scene, work)
        before = self.final()
        outcome = work(lambda _: None)
        final = self.final()
        if isinstance(work, FenceWork):
            return Solo(work.footprint(), final != before, outcome, final)
        return Solo(footprint_of(work.sent(), self.snapshots[scene]), final != before, outcome, final)
