"""Run as many seeded schedules as asked, and print what they came to.

    python -m tests.simulation.soak --schedules 500000 --seed 0 --workers 2

A violation is printed with its seed, which replays it exactly. ``--replays`` runs so many of the seeds again in another
interpreter, whose sets and dictionaries hash otherwise, and compares the digests of their traces. The exit code is 1 if
anything was violated, if a trace was another, if a schedule had fewer or more faults than the 2 to 5 that each is to
have, or if a kind of fault never came up in `ENOUGH` schedules.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from dpone_provider.worker.imports import forbid_pandas
from tests.simulation.invariants import Violated
from tests.simulation.schedules import FEWEST_FAULTS, MOST_FAULTS, STANDS_STILL, Met, Schedule, run
from tests.simulation.wire import Fault

CHUNK = 100
ENOUGH = 500
"""In so many schedules every kind of fault comes up."""
KINDS = frozenset({*(fault.name for fault in Fault), f"DELAY {STANDS_STILL:g}", *map(str, Met)})
OTHER_HASHES = "7"


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
    met: Counter[str] = field(default_factory=Counter)
    each: Counter[int] = field(default_factory=Counter)
    """How many schedules had so many faults."""
    digests: dict[int, str] = field(default_factory=dict)
    """Of each seed's trace."""
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
        self.met.update(map(str, one.met))
        self.each[len(one.struck)] += 1
        self.digests[one.seed] = one.digest

    def join(self, other: Figures) -> None:
        """Count others."""
        self.schedules += other.schedules
        self.steps += other.steps
        self.unknown += other.unknown
        self.faults += other.faults
        self.places |= other.places
        self.states |= other.states
        self.attempts += other.attempts
        self.met += other.met
        self.each += other.each
        self.digests |= other.digests
        self.violations += other.violations

    @property
    def never(self) -> list[str]:
        """The kinds of faults that never came up."""
        return sorted(KINDS - self.faults.keys() - self.met.keys())

    def __str__(self) -> str:
        """Return them in lines."""
        each = ", ".join(f"{number} with {faults}" for faults, number in sorted(self.each.items()))
        met = ", ".join(f"{kind} {number:,}" for kind, number in sorted(self.met.items()))
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(self.faults.items()))
        ends = ", ".join(f"{state} {number:,}" for state, number in sorted(self.attempts.items()))
        return "\n".join(
            (
                f"schedules: {self.schedules:,}, steps: {self.steps:,}, distinct ledger states: {len(self.states):,}",
                f"faults: {self.faults.total():,} at {len(self.places)} (kind, call) places: {kinds}",
                f"schedules by their faults: {each}",
                f"schedules with: {met}; never: {', '.join(self.never) or 'nothing'}",
                f"attempts: {ends}; COMMIT_UNKNOWN before healing: {self.unknown:,}",
                f"violations: {len(self.violations)}",
                *self.violations,
            )
        )


def play(seeds: Iterable[int]) -> Figures:
    """Run these seeds."""
    # A world is a few ten thousand objects, most of them gone with it: looking among them for circles more often than
    # once per world finds nothing.
    gc.freeze()
    gc.set_threshold(100_000)
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


def replayed(figures: Figures, first: int, number: int) -> int:
    """Run seeds again in another interpreter; return how many had the same trace."""
    seeds = ("--seed", str(first), "--schedules", str(number))
    argv = (sys.executable, "-m", "tests.simulation.soak", "--digests", *seeds)
    environment = os.environ | {"PYTHONHASHSEED": OTHER_HASHES}
    said = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout
    again = {int(seed): digest for seed, digest in (line.split() for line in said.splitlines())}
    return sum(figures.digests.get(seed) == digest for seed, digest in again.items())


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def soak(first: int, number: int, workers: int) -> Figures:
    """Run so many schedules, and tell how far it is."""
    began = time.monotonic()
    figures = Figures()
    tell(f"seeds {first} to {first + number - 1}")
    with ProcessPoolExecutor(workers) as pool:
        for done in pool.map(play, chunks(first, number)):
            figures.join(done)
            if figures.schedules % 1000 == 0 or figures.schedules == number:
                took = time.monotonic() - began
                tell(f"{figures.schedules:,} schedules, {len(figures.violations)} violations, {took:.0f} s")
    return figures


def main() -> int:
    """Run and print; 1 if anything is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--schedules", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow it")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--replays", type=int, default=0, help="how many of the seeds are run again and compared")
    parser.add_argument("--digests", action="store_true", help="print the digest of each seed's trace, and no more")
    asked = parser.parse_args()
    forbid_pandas()
    if asked.digests:
        for seed in range(asked.seed, asked.seed + asked.schedules):
            tell(f"{seed} {run(seed).digest}")
        return 0
    figures = soak(asked.seed, asked.schedules, asked.workers)
    tell(str(figures))
    bad = bool(figures.violations) or (figures.schedules >= ENOUGH and bool(figures.never))
    bad = bad or not figures.each.keys() <= {*range(FEWEST_FAULTS, MOST_FAULTS + 1)}
    if asked.replays:
        same = replayed(figures, asked.seed, asked.replays)
        tell(f"same seed, same trace: {same} of {asked.replays}")
        bad = bad or same != asked.replays
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
