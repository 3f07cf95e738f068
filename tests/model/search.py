"""The search: breadth first, every state once, until no state is left that was not looked at."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from itertools import pairwise

from tests.model.laws import Violated
from tests.model.world import World


@dataclass(frozen=True, slots=True)
class Searched:
    """Every state that can be reached was reached, and none breaks an invariant."""

    states: int
    steps: int
    depth: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The shortest way to a state or step that breaks an invariant: its steps in words."""

    steps: tuple[str, ...]
    invariant: str
    found: str
    states: int


def explore(world: World, start: int) -> Searched | Violated:
    """Visit every state; no bound but the cast's own size."""
    began = time.monotonic()
    seen = {start}
    frontier = [start]
    steps = depth = 0
    add = seen.add
    # Nothing of what is kept here is ever part of a cycle.
    gc.disable()
    try:
        while frontier:
            depth += 1
            following: list[int] = []
            append = following.append
            for state in frontier:
                for deltas, _ in world.moves(state):
                    for delta in deltas:
                        after = state + delta
                        if after not in seen:
                            add(after)
                            append(after)
                    steps += len(deltas)
            frontier = following
    except Violated as violated:
        return violated
    finally:
        gc.enable()
    return Searched(states=len(seen), steps=steps, depth=depth, seconds=time.monotonic() - began)


def hunt(world: World, start: int) -> Counterexample | Searched:
    """Search for the shortest counterexample, keeping how each state was reached."""
    began = time.monotonic()
    came: dict[int, int] = {start: -1}
    frontier = [start]
    steps = depth = 0
    while frontier:
        depth += 1
        following: list[int] = []
        for state in frontier:
            try:
                moves = tuple(world.moves(state))
            except Violated as violated:
                return _told(world, came, state, violated)
            for deltas, _ in moves:
                steps += len(deltas)
                for delta in deltas:
                    after = state + delta
                    if after not in came:
                        came[after] = state
                        following.append(after)
        frontier = following
    return Searched(states=len(came), steps=steps, depth=depth, seconds=time.monotonic() - began)


def _told(world: World, came: dict[int, int], state: int, violated: Violated) -> Counterexample:
    path = [state]
    while came[path[-1]] >= 0:
        path.append(came[path[-1]])
    path.reverse()
    labels = [_label(world, before, after) for before, after in pairwise(path)]
    last = [violated.step] if violated.step else []
    return Counterexample((*labels, *last), violated.invariant, violated.found, len(came))


def _label(world: World, before: int, after: int) -> str:
    for deltas, labels in world.moves(before):
        for delta, label in zip(deltas, labels, strict=True):
            if before + delta == after:
                return label
    raise AssertionError("no step leads there")
