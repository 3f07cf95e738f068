"""What each guard is for: dropped alone, or with one named fault, it lets an invariant be broken, and this is how.

    python -m tests.model.mutants            say which transcripts are not as they would be found now
    python -m tests.model.mutants --write    find them anew and write them

Each guard has either a transcript in ``expected/`` or a reason in ``redundant.toml`` why no search can break anything
without it; or it is one that this world does not hold (``ELSEWHERE``).
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from dpone_provider.domain.guards import GUARDS, without
from tests.model.laws import Kind
from tests.model.scenarios import FAULTY, SMALL, NamedFault, Scenario
from tests.model.search import Counterexample, Searched, hunt

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
REDUNDANT = HERE / "redundant.toml"
ELSEWHERE: Mapping[str, str] = {
    "attempt_is_not_spent": "tests/domain/test_attempt.py",
    "doubted_by_judgement": "tests/domain/test_readmission.py",
    "readmission_is_open": "tests/domain/test_readmission.py",
    "service_is_buried": "tests/domain/test_readmission.py",
    "service_is_not_buried": "tests/domain/test_readmission.py",
}
"""Guards of an operator's recorded judgement, and where they are shown: this world holds neither readmissions nor
burials, which run beside no other transaction of the ledger (``tests/interleaving/test_authority.py``)."""
WHAT_IS_SEEN = frozenset({Kind.STATE, Kind.POWER, Kind.TRUTH})
HEADER = "searched:"


def hunts() -> tuple[Scenario, ...]:
    """Return the searches in which a counterexample is looked for, best first.

    First those that look at what stands in the ledger, what logins can do and what is told; then those that look at
    each step, too; then those with a fault.
    """
    seen = (replace(one, name=f"{one.name}, by what is seen", kinds=WHAT_IS_SEEN) for one in SMALL)
    faulty = (one for one in FAULTY if one.fault is not NamedFault.LIE)
    return (*seen, *SMALL, *faulty)


BY_NAME: Mapping[str, Scenario] = {one.name: one for one in hunts()}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard that was dropped, the search, and what it came to."""

    guard: str
    scenario: str
    found: Counterexample | Searched

    def transcript(self) -> str:
        """Return the counterexample as text that an operator can read.

        Raises:
            ValueError: there is none.
        """
        if isinstance(self.found, Searched):
            raise ValueError(f"{self.guard}: {self.scenario} has no counterexample")
        one, rule = BY_NAME[self.scenario], GUARDS[self.guard]
        lines = [
            f"dropped:  {self.guard} ({rule.says})",
            f"{HEADER} {one.name}",
            f"          {one.what}",
            f"fault:    {one.fault}",
            "",
        ]
        if one.fault is NamedFault.RESTORED:
            lines.append(f"     (A is ACTIVE, and a1 is admitted: {_workload(one)} of A, try 1)")
        lines += [f"{number:>3}  {step}" for number, step in enumerate(self.found.steps, 1)]
        lines += ["", f"broken:   {self.found.invariant}: {self.found.found}"]
        return "\n".join(lines) + "\n"


def drop(guard: str, scenario: str) -> Mutant:
    """Search without a guard, to the first counterexample or to the end."""
    world = BY_NAME[scenario].world()
    with without(guard):
        return Mutant(guard, scenario, hunt(world, world.start()))


def find(guard: str) -> Mutant | None:
    """Search everywhere without a guard, first where its transcript is from; None when nothing is broken anywhere."""
    transcript = expected().get(guard)
    first = [searched_in(transcript)] if transcript else []
    found = (drop(guard, name) for name in (*first, *BY_NAME) if name in BY_NAME)
    return next((one for one in found if isinstance(one.found, Counterexample)), None)


def broken_anywhere(guard: str) -> Mutant | None:
    """Search everything, once, without a guard that has no transcript."""
    found = (drop(guard, one.name) for one in (*SMALL, *FAULTY) if one.fault is not NamedFault.LIE)
    return next((one for one in found if isinstance(one.found, Counterexample)), None)


def expected() -> dict[str, str]:
    """Return the committed transcripts by guard."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(EXPECTED.glob("*.txt"))}


def searched_in(transcript: str) -> str:
    """Return the name of the search that a transcript came from."""
    return next(line for line in transcript.splitlines() if line.startswith(HEADER)).removeprefix(HEADER).strip()


def broken_in(transcript: str) -> str:
    """Return the invariant that a transcript breaks."""
    return transcript.rpartition("broken:")[2].partition(":")[0].strip()


def fault_of(transcript: str) -> NamedFault:
    """Return the fault of a transcript."""
    return BY_NAME[searched_in(transcript)].fault


def redundant() -> dict[str, str]:
    """Return the reasons by guard."""
    return {name: str(each["reason"]) for name, each in tomllib.loads(REDUNDANT.read_text(encoding="utf-8")).items()}


def _workload(one: Scenario) -> str:
    return one.cast.tries[0].workload.name


def _found_now() -> Iterator[tuple[str, str | None]]:
    with ProcessPoolExecutor(max_workers=2) as pool:
        for guard, mutant in zip(sorted(GUARDS), pool.map(find, sorted(GUARDS)), strict=True):
            yield guard, None if mutant is None else mutant.transcript()


def main() -> int:
    """Compare, or write with ``--write``; return the exit code."""
    committed, write, stale = expected(), sys.argv[1:] == ["--write"], 0
    for guard, text in _found_now():
        path = EXPECTED / f"{guard}.txt"
        if text == committed.get(guard):
            continue
        stale += 1
        sys.stdout.write(f"{'written' if write else 'not current'}: {path.name}\n")
        if write:
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_text(text, encoding="utf-8")
    return 0 if write else min(stale, 1)


if __name__ == "__main__":
    sys.exit(main())
