"""Running one pair in one scene, in every order that can differ, and judging each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

from dpone_provider.application.ledger.admission import Admitted, AlreadyAdmitted
from dpone_provider.domain.outcomes import Failed, Unknown
from tests.interleaving.actors import Broken
from tests.interleaving.engine import Run, Stepper, Work
from tests.interleaving.footprints import Blocking, Footprint, Order, class_of, next_order
from tests.interleaving.scenes import WRITER
from tests.interleaving.scripts import ACTORS, FENCE, FENCED_COMMIT
from tests.interleaving.stage import Final, Solo, Stage

MOST_ORDERS = 60
SCENES_WITH_BOTH = 3
SCENES_WITH_ONE = 1
Pair = tuple[str, str]
PAIRS: tuple[Pair, ...] = tuple(combinations_with_replacement([*ACTORS, FENCE, FENCED_COMMIT], 2))


@dataclass(frozen=True, slots=True)
class Judged:
    """One order: what happened, and what is wrong with it (nothing, it is hoped)."""

    run: Run
    works: dict[str, Work]
    faults: tuple[str, ...]


def scenes_of(stage: Stage, pair: Pair, scenes: tuple[str, ...], with_both: int = SCENES_WITH_BOTH) -> list[str]:
    """Return the scenes for a pair: ``with_both`` where both change something, else where one does; most in conflict
    first."""
    both, one = [], []
    for scene in scenes:
        solos = [stage.solo(actor, scene) for actor in pair]
        if all(solo is not None and solo.effective for solo in solos):
            both.append(scene)
        elif all(solos) and any(solo is not None and solo.effective for solo in solos):
            one.append(scene)
    if both:
        chosen = sorted(both, key=lambda scene: -_conflicts(stage, pair, scene))[:with_both]
    else:
        chosen = sorted(one, key=lambda scene: -_conflicts(stage, pair, scene))[:SCENES_WITH_ONE]
    enabled = ENABLED_IN.get(pair)
    return chosen if enabled in (None, *chosen) else [*chosen, str(enabled)]


ENABLED_IN: dict[Pair, str] = {
    ("prepare", "seal"): "retiring busy",
    ("prepare", "seal unknown"): "retiring busy",
    ("prepare", "reconcile"): "retiring unknown",
    ("retire", "seal"): "retiring busy",
    ("retire", "reconcile"): "retiring unknown",
    ("drain", "prepare"): "succession",
    ("drain", "retire"): "succession",
    ("drain", "reconcile"): "unknown",
    ("drain", "seal unknown"): "dispatched",
    ("begin retirement", "prepare"): "succession",
    ("begin retirement", "retire"): "active",
    ("begin retirement", "activate"): "prepared",
    ("begin retirement", "reconcile"): "unknown",
    ("begin retirement", "seal unknown"): "dispatched",
    ("prepare", "activate"): "draining",
    ("prepare", "abandon"): "requested",
    ("prepare", "retire"): "draining",
    ("activate", "admit writer"): "prepared",
    ("activate", "admit reader"): "prepared",
    ("activate", "admit the same"): "prepared",
    ("retire", "abandon"): "prepared",
    ("admit reader", "seal"): "dispatched",
    ("admit writer", "seal"): "reading",
    ("admit next try", "seal"): "dispatched",
    ("admit next try", "reconcile"): "unknown",
    ("journal", "ready"): "running",
    ("journal", "closing"): "running",
    ("ready", "deliver"): "journaled",
    ("ready", "fence"): "journaled",
    ("closing", "closed"): "ready",
    ("closed", "dispatch"): "closing",
    ("closed", "seal"): "closing",
    ("bar", "seal"): "running",
    ("intend", "stage"): "running",
    ("stage", "dispatch"): "ready",
    ("seal unknown", "reconcile"): "dispatched",
}
"""Scenes in which one of the two makes the other possible: run beside those that are chosen by counting."""


def orders(stage: Stage, pair: Pair, scene: str) -> Iterator[Judged]:
    """Run the pair in every order, the two serial ones first."""
    first, second = _solo(stage, pair[0], scene), _solo(stage, pair[1], scene)
    seen: set[object] = set()
    blocking = Blocking()
    allowed = [first.final, second.final]
    for serial in _serial(first.footprint, second.footprint):
        judged, final = _run(stage, pair, scene, serial, blocking)
        seen.add(class_of(first.footprint, second.footprint, judged.run.steps))
        allowed.append(final)
        yield judged
    for _ in range(MOST_ORDERS):
        order = next_order(first.footprint, second.footprint, seen, blocking)
        if order is None:
            return
        judged, final = _run(stage, pair, scene, order, blocking)
        seen.add(class_of(first.footprint, second.footprint, judged.run.steps))
        if final not in allowed:
            judged = Judged(judged.run, judged.works, (*judged.faults, "no serial order leaves these rows"))
        yield judged
    raise AssertionError(f"{pair} in {scene} has more than {MOST_ORDERS} orders")


def _serial(first: Footprint, second: Footprint) -> tuple[Order, Order]:
    ones, others = (True,) * len(first), (False,) * len(second)
    return ones + others, others + ones


def _run(stage: Stage, pair: Pair, scene: str, order: Order, blocking: Blocking) -> tuple[Judged, Final]:
    one, other = stage.work(pair[0], scene, "A"), stage.work(pair[1], scene, "B")
    assert one is not None
    assert other is not None
    stage.set(scene, one, other)
    run = Stepper(one, other, stage.ground, blocking).through(order)
    final = stage.final()
    faults = [*stage.ground.violations(), *_broken(run), *_fence_came_late(pair, run, final), *_twins(pair, run)]
    return Judged(run, {"A": one, "B": other}, tuple(faults)), final


def _broken(run: Run) -> list[str]:
    """A script that a law of the database had to stop lacks a guard; one that raised is broken."""
    return [
        f"{side}: {outcome}" for side, outcome in run.outcomes.items() if isinstance(outcome, Failed | Unknown | Broken)
    ]


def _fence_came_late(pair: Pair, run: Run, final: Final) -> list[str]:
    """I11: what was fenced is committed before its attempt ends."""
    fenced = [side for side, actor in zip("AB", pair, strict=True) if actor in (FENCE, FENCED_COMMIT)]
    if len(fenced) != 1 or run.outcomes[fenced[0]] != "committed":
        return []
    commits = [line.side for line in run.lines if line.text == "commit"]
    ended = any(WRITER.attempt_id in row and "RUNNING" not in row for row in final["attempt"])
    if ended and len(commits) > 1 and commits[-1] == fenced[0]:
        return ["i11_fenced_commit: the fenced transaction committed after its attempt had ended"]
    return []


def _twins(pair: Pair, run: Run) -> list[str]:
    """I4: of two deliveries of one attempt, one is admitted, and the other one is told so, which is no failure."""
    if pair[0] != pair[1] or not any(isinstance(outcome, Admitted) for outcome in run.outcomes.values()):
        return []
    if {type(outcome) for outcome in run.outcomes.values()} == {Admitted, AlreadyAdmitted}:
        return []
    return [f"i4_one_execution: a redelivery was told {sorted(map(str, run.outcomes.values()))}"]


def _conflicts(stage: Stage, pair: Pair, scene: str) -> int:
    one, other = (_solo(stage, actor, scene).footprint for actor in pair)
    return sum(event.conflicts(rival) for event in one for rival in other)


def _solo(stage: Stage, actor: str, scene: str) -> Solo:
    found = stage.solo(actor, scene)
    assert found is not None
    return found
