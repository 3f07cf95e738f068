"""How many states were searched, and how long it took.

python -m tests.model.figures           the searches that the tests run
python -m tests.model.figures --deep    one of nine million states, too
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from tests.model.laws import Violated
from tests.model.scenarios import DEEP, FAULTY, LARGE, SMALL, Scenario
from tests.model.search import Searched, explore

ALL = (*LARGE, *FAULTY, *SMALL)
"""Longest first: the last ones to begin should be short."""
_BY_NAME = {one.name: one for one in (*ALL, *DEEP)}


@dataclass(frozen=True, slots=True)
class Figure:
    """What a search came to. ``broken`` says what a state or step broke, if one did."""

    scenario: str
    states: int
    steps: int
    seconds: float
    broken: str = ""


def search(name: str) -> Figure:
    """Search a scenario whole, with every guard in place."""
    world = _BY_NAME[name].world()
    match explore(world, world.start()):
        case Searched() as done:
            return Figure(name, done.states, done.steps, done.seconds)
        case Violated() as violated:
            return Figure(name, 0, 0, 0.0, f"{violated} [{violated.step or 'a state'}]")


def table(figures: Iterable[Figure]) -> str:
    """Return one line per search, and the sum."""
    lines = [f"{'search':<28}{'states':>12}{'steps':>12}{'seconds':>9}"]
    states = steps = 0
    for one in figures:
        lines.append(f"{one.scenario:<28}{one.states:>12,}{one.steps:>12,}{one.seconds:>9.1f}  {one.broken}".rstrip())
        states, steps = states + one.states, steps + one.steps
    return "\n".join((*lines, f"{'in all':<28}{states:>12,}{steps:>12,}"))


def main() -> int:
    """Search and print; return 1 if anything was broken."""
    chosen: tuple[Scenario, ...] = (*DEEP, *ALL) if sys.argv[1:] == ["--deep"] else ALL
    with ProcessPoolExecutor(max_workers=2) as pool:
        figures = tuple(pool.map(search, [one.name for one in chosen]))
    sys.stdout.write(table(figures) + "\n")
    return int(any(one.broken for one in figures))


if __name__ == "__main__":
    sys.exit(main())
