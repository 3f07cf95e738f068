"""Run as many seeded schedules as asked, and print what they came to.

    python -m tests.simulation.soak --schedules 500000 --seed 0 --workers 2

A violation is printed with its seed, which replays it exactly; the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from tests.simulation.invariants import Violated
from tests.simulation.schedules import Schedule, run

CHUNK = 250


@dataclass(slots=True)
class Figures:
    """What some schedules came to together."""

    schedules: int = 0
    steps: int = 0
    unknown: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    places: set[tuple[str, str]] = field(default_factory=set)
    states: set[int] = field(default_factory=set)
    attempts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, one: Schedule) -> None:
        """Count a schedule."""
        self.schedules += 1
        self.steps += one.steps
        self.unknown += one.unknown
        self.faults.update(kind for kind, _ in one.struck)
        self.places.update(one.struck)
        self.states |= one.states
        self.attempts.update({str(state): number for state, number in one.attempts.items()})

    def join(self, other: Figures) -> None:
        """Count others."""
        self.schedules += other.schedules
        self.steps += other.steps
        self.unknown += other.unknown
        self.faults += other.faults
        self.places |= other.places
        self.states |= other.states
        self.attempts += other.attempts
        self.violations += other.violations

    def __str__(self) -> str:
        """Return them in lines."""
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(self.faults.items()))
        ends = ", ".join(f"{state} {number:,}" for state, number in sorted(self.attempts.items()))
        return "\n".join(
            (
                f"schedules: {self.schedules:,}, steps: {self.steps:,}, distinct ledger states: {len(self.states):,}",
                f"faults: {self.faults.total():,} at {len(self.places)} (kind, call) places: {kinds}",
                f"attempts: {ends}; COMMIT_UNKNOWN before healing: {self.unknown:,}",
                f"violations: {len(self.violations)}",
                *self.violations,
            )
        )


def play(seeds: Iterable[int]) -> Figures:
    """Run these seeds."""
    figures = Figures()
    for seed in seeds:
        try:
            figures.add(run(seed))
        except Violated as error:
            figures.schedules += 1
            figures.violations.append(str(error))
    return figures


def chunks(first: int, number: int) -> Iterator[range]:
    """Yield the seeds in parts."""
    for start in range(first, first + number, CHUNK):
        yield range(start, min(start + CHUNK, first + number))


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run and print; 1 if anything was violated."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--schedules", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow it")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    figures = Figures()
    tell(f"seeds {asked.seed} to {asked.seed + asked.schedules - 1}")
    with ProcessPoolExecutor(asked.workers) as pool:
        for done in pool.map(play, chunks(asked.seed, asked.schedules)):
            figures.join(done)
            took = time.monotonic() - began
            tell(f"{figures.schedules:,} schedules, {len(figures.violations)} violations, {took:.0f} s")
    tell(str(figures))
    return 1 if figures.violations else 0


if __name__ == "__main__":
    sys.exit(main())
