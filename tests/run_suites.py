"""Run every suite of this project, each against its budget of seconds, and close with one table.

    python -m tests.run_suites                all suites
    python -m tests.run_suites lint unit      these suites
    python -m tests.run_suites --list         what there is
    python -m tests.run_suites --coverage     with branch coverage of the package over all that runs

A suite is a row of `tests/suites.py`. Those that keep one core busy run two at a time, each telling at its end what it
had to say; then the others, one by one. Those that need nothing but processor time run behind all that, one after the
other, in the time in which the others wait, and what they took is counted in processor seconds. A failing suite does
not stop the next. The exit code is 0 only if every step passed and no suite took more than three times its budget; at
five times its budget a suite is ended. The last line is `N passed, N failed`: tests of pytest, and one for each other
command.

Each run has a home, an AIRFLOW_HOME and a directory for temporary files of its own, and no setting of the caller's for
Airflow, dbt, PostgreSQL, Python or dpone, except DPONE_TEST_…
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

from tests import yielding
from tests.suites import SUITES, TOTAL_BUDGET_SECONDS, Command, Pytest, Suite, planned_seconds, python

LANES = 2  # how many narrow suites run at the same time
QUICK_SECONDS = 5
Output = IO[bytes] | None  # where a program speaks; None is where we do
ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"

FAILED_AT = 3.0  # times the budget
ENDED_AT = 5.0  # times the budget
GRACE_SECONDS = 20  # between asking a suite to end and killing it

NO_TESTS_COLLECTED = 5  # pytest's exit code
INTERRUPTED = 130


@dataclass(slots=True)
class Tally:
    """Counts and time of one suite. `notes` says why it failed beside its tests."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Workplace:
    """The directories of one run, under `root`."""

    root: Path

    @classmethod
    def make(cls) -> Workplace:
        """Make the directories; other accounts can pass through them, since engines may run as another."""
        root = Path(tempfile.mkdtemp(prefix="dpone-test-"))
        root.chmod(0o755)
        for name in ("home", "airflow", "tmp", "reports", "coverage"):
            (root / name).mkdir()
        (root / "tmp").chmod(0o1777)
        return cls(root)

    def environment(self, caller: Mapping[str, str], coverage_of: str) -> dict[str, str]:
        """The environment of a suite: the caller's without its settings for what is tested here."""
        dropped = ("AIRFLOW", "DBT_", "DPONE_", "PG", "PYTHON", "PYTEST_", "COV", "VIRTUAL_ENV", "XDG_")
        kept = {
            name: value
            for name, value in caller.items()
            if name.startswith("DPONE_TEST_") or not name.startswith(dropped)
        }
        return kept | {
            "AIRFLOW_HOME": str(self.root / "airflow"),
            "COVERAGE_FILE": str(self.coverage(coverage_of)),
            "HOME": str(self.root / "home"),
            "LC_ALL": "C.UTF-8",
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath))),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(self.root / "tmp"),
        }

    def coverage(self, suite: str) -> Path:
        """Where a suite's coverage is collected."""
        return self.root / "coverage" / f".coverage.{suite}"

    def figure(self, suite: str, step: int) -> Path:
        """Where a step that runs behind the others leaves what it took."""
        return self.root / "reports" / f"{suite}-{step}.seconds"

    def report(self, suite: str, step: int) -> Path:
        """Where pytest writes the results of a step."""
        return self.root / "reports" / f"{suite}-{step}.xml"


def unnamed_paths(tests: Path, suites: Sequence[Suite]) -> list[Path]:
    """The folders and test files right under `tests` that no suite names, so that nothing is left out by silence."""
    named = {folder for suite in suites for step in suite.steps if isinstance(step, Pytest) for folder in step.folders}
    return [path for path in sorted(tests.iterdir()) if path.name not in named]


def pytest_paths(step: Pytest, tests: Path, suites: Sequence[Suite]) -> list[str]:
    """The paths that a pytest run covers now, relative to the root; empty when there is nothing yet."""
    paths = unnamed_paths(tests, suites) if step.takes_the_rest else [tests / folder for folder in step.folders]
    covered = [path for path in paths if any(_covers(step, file) for file in _test_files(path))]
    return [f"{tests.name}/{path}" for path in (*step.first, *(path.name for path in covered))]


def _test_files(path: Path) -> list[Path]:
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path] if path.match("test_*.py") else []


def _covers(step: Pytest, file: Path) -> bool:
    return not step.marked or f"mark.{step.marked}" in file.read_text(encoding="utf-8")


def pytest_argv(step: Pytest, paths: Sequence[str], report: Path, *, traced: bool) -> tuple[str, ...]:
    """The command line of a pytest run that leaves its results in `report`, and its coverage if `traced`."""
    terms = [*([step.marked] if step.marked else []), *(f"not {marker}" for marker in step.unmarked)]
    expression = ("-m", " and ".join(terms)) if terms else ()
    shared_out = ("loadfile", "--no-loadscope-reorder") if step.by_file else ("worksteal",)
    workers = ("-n", str(step.workers), "--dist", *shared_out) if step.workers > 1 else ()
    coverage = ("--cov", "--cov-report=") if traced else ()
    return python("pytest", *paths, *expression, *workers, *coverage, f"--junitxml={report}")


class Interrupted(Exception):
    """Everything is to end: no further program is started."""


class Programs:
    """The programs that run now, so that all of them can be ended at once."""

    def __init__(self) -> None:
        """None runs."""
        self._changing = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._over = False

    def run(self, argv: Sequence[str], environment: Mapping[str, str], deadline: float, output: Output) -> int | None:
        """Run a program to its end, or end it with all its children at `deadline` (monotonic): None then.

        Raises:
            Interrupted: all were ended.
        """
        with self._changing:
            if self._over:
                raise Interrupted
            process = subprocess.Popen(
                argv,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=None if output is None else subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            return process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            end_group(process)
            return None
        except BaseException:
            end_group(process)
            raise
        finally:
            with self._changing:
                self._running.discard(process)

    def end_all(self) -> None:
        """End them all, and start none any more."""
        with self._changing:
            self._over = True
            running = list(self._running)
        for process in running:
            end_group(process)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Runs suites in one workplace; with coverage everywhere if `traced`."""

    place: Workplace
    traced: bool = False
    programs: Programs = field(default_factory=Programs)
    speaking: threading.Lock = field(default_factory=threading.Lock)

    def run(self, chosen: Sequence[Suite]) -> list[tuple[Suite, Tally]]:
        """Run these suites, and return what came of each in the order given."""
        front = [suite for suite in chosen if not suite.behind]
        if not front:
            tallies = self._in_front(chosen)
        else:
            tallies = self._beside([suite for suite in chosen if suite.behind], front)
        return [(suite, tallies[suite.name]) for suite in chosen]

    def _beside(self, back: Sequence[Suite], front: Sequence[Suite]) -> dict[str, Tally]:
        with ThreadPoolExecutor(1) as lane, self._ended_at_once():
            # What could use both cores comes last: it may be left over when the others have ended.
            ordered = sorted(back, key=lambda suite: not suite.narrow)
            ran = [(suite.name, lane.submit(self._aside, suite, behind=True)) for suite in ordered]
            tallies = self._in_front(front)
            return tallies | {name: tally.result() for name, tally in ran}

    def _in_front(self, front: Sequence[Suite]) -> dict[str, Tally]:
        narrow = sorted(filter(lambda one: one.narrow, front), key=_when)
        tallies = self._side_by_side(narrow) if len(narrow) > 1 else {}
        for suite in front:
            if suite.name not in tallies:
                self._speak(heading(suite))
                tallies[suite.name] = self.run_suite(suite)
                self._speak(ending(suite, tallies[suite.name]))
        return tallies

    def _side_by_side(self, narrow: Sequence[Suite]) -> dict[str, Tally]:
        with ThreadPoolExecutor(LANES) as lanes, self._ended_at_once():
            return dict(zip([one.name for one in narrow], lanes.map(self._aside, narrow), strict=True))

    @contextmanager
    def _ended_at_once(self) -> Iterator[None]:
        """End all programs when the block is left by an exception: before the lanes of other suites are waited for."""
        try:
            yield
        except BaseException:
            self.programs.end_all()
            raise

    def _aside(self, suite: Suite, *, behind: bool = False) -> Tally:
        """Run a suite beside another one: what it says is kept until its end."""
        with tempfile.TemporaryFile() as said:
            tally = self.run_suite(suite, said, behind=behind)
            said.seek(0)
            self._speak(f"{heading(suite)}\n{said.read().decode(errors='replace')}{ending(suite, tally)}")
        return tally

    def _speak(self, text: str) -> None:
        with self.speaking:
            print(text, flush=True)

    def run_suite(self, suite: Suite, output: Output = None, *, behind: bool = False) -> Tally:
        """Run the steps of a suite, all of them, within its time."""
        tally = Tally()
        environment = self.place.environment(os.environ, suite.name)
        started = time.monotonic()
        deadline = started + (TOTAL_BUDGET_SECONDS if behind else suite.budget_seconds * ENDED_AT)
        figures: list[Path] = []

        def execute(asked: Sequence[str], number: int) -> int | None:
            if not behind:
                return self.programs.run(asked, environment, deadline, output)
            figures.append(self.place.figure(suite.name, number))
            return self.programs.run(yielding.argv(figures[-1], asked), environment, deadline, output)

        for number, step in enumerate(suite.steps):
            match step:
                case Command(label=label, argv=argv):
                    if label.startswith("branches") and not self.place.coverage(suite.name).exists():
                        continue
                    say(f"--- {label}", output)
                    _count_command(label, execute(argv, number), tally)
                case Pytest():
                    if paths := pytest_paths(step, TESTS, SUITES):
                        marked = f", marked {step.marked}" if step.marked else ""
                        say(f"--- pytest {' '.join(paths)}{marked}", output)
                        report = self.place.report(suite.name, number)
                        asked = pytest_argv(step, paths, report, traced=self.traced or step.traced)
                        if behind:
                            asked = (*asked, f"--timeout={TOTAL_BUDGET_SECONDS}")
                        count_report(report, execute(asked, number), tally)
        tally.seconds = sum(map(yielding.processor_seconds, figures)) if behind else time.monotonic() - started
        if tally.seconds > suite.budget_seconds * FAILED_AT:
            tally.failed += 1
            tally.notes.append(f"more than {FAILED_AT:g} times its budget")
        return tally


def _when(narrow: Suite) -> tuple[bool, int]:
    """Say what takes no time first, then begin the longest, so that both lanes end at about the same time."""
    return narrow.budget_seconds > QUICK_SECONDS, -narrow.budget_seconds


def heading(suite: Suite) -> str:
    """What is said before a suite."""
    return f"\n=== {suite.name}: {suite.what} (budget {suite.budget_seconds} s)"


def ending(suite: Suite, tally: Tally) -> str:
    """What is said after it."""
    return f"=== {suite.name}: {tally.seconds:.1f} of {suite.budget_seconds} s"


def say(text: str, output: Output) -> None:
    """Say something where a suite's programs speak."""
    if output is None:
        print(text, flush=True)
    else:
        output.write(f"{text}\n".encode())
        output.flush()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ask the process to end as Ctrl-C does, so that it takes its engines down, and kill its group if it does not."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GRACE_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _count_command(label: str, code: int | None, tally: Tally) -> None:
    if code == 0:
        tally.passed += 1
    else:
        tally.failed += 1
        tally.notes.append(f"{label}: " + ("ended, out of time" if code is None else f"exit code {code}"))


def count_report(report: Path, code: int | None, tally: Tally) -> None:
    """Add pytest's results to `tally`; a run that broke without a failing test counts as one failure."""
    failed = 0
    if report.exists():
        for results in ElementTree.parse(report).getroot().iter("testsuite"):
            total, skipped = int(results.get("tests", 0)), int(results.get("skipped", 0))
            broken = int(results.get("failures", 0)) + int(results.get("errors", 0))
            # A test whose teardown breaks after it passed is counted twice by pytest.
            tally.passed += max(0, total - skipped - broken)
            tally.skipped += skipped
            failed += broken
    if code not in (0, NO_TESTS_COLLECTED) and failed == 0:
        failed = 1
        tally.notes.append("pytest: " + ("ended, out of time" if code is None else f"exit code {code}"))
    tally.failed += failed


def table(results: Sequence[tuple[Suite, Tally]], taken: float) -> str:
    """The closing table, one line per suite; `taken` seconds in all."""
    lines = [f"{'suite':<14}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>10}{'budget':>8}"]
    for suite, tally in results:
        late = "  over budget" if tally.seconds > suite.budget_seconds else ""
        notes = "".join(f"  {note}" for note in tally.notes)
        lines.append(
            f"{suite.name:<14}{tally.passed:>8}{tally.failed:>8}{tally.skipped:>9}"
            f"{tally.seconds:>10.1f}{suite.budget_seconds:>8}{late}{notes}"
        )
    lines.append(f"{'in all':<14}{'':>25}{taken:>10.1f}{planned_seconds([suite for suite, _ in results]):>8.0f}")
    return "\n".join(lines)


def whole_coverage(place: Workplace) -> str:
    """Branch coverage of the whole package over all suites of this run, as text; a figure, not a gate."""
    parts = [str(path) for path in sorted((place.root / "coverage").iterdir())]
    if not parts:
        return "not measured"
    environment = place.environment(os.environ, "all")
    combine = python("coverage", "combine", "--quiet", "--keep", *parts)
    report = python("coverage", "report", "--format=total")
    if subprocess.run(combine, cwd=ROOT, env=environment, capture_output=True, check=False).returncode != 0:
        return "not measured"
    total = subprocess.run(report, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout
    return f"{total.strip()} %"


def _chosen(names: Sequence[str]) -> list[Suite]:
    known = {suite.name: suite for suite in SUITES}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"no suite named {', '.join(unknown)}; there are: {', '.join(known)}")
    return [known[name] for name in names] or list(SUITES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen suites and return the exit code."""
    parser = argparse.ArgumentParser(prog="make test SUITES=…", description="Run the suites against their budgets.")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    parser.add_argument("--list", action="store_true", help="list the suites and their budgets")
    parser.add_argument("--coverage", action="store_true", help="measure branch coverage in every suite")
    options = parser.parse_args(arguments)
    if options.list:
        for suite in SUITES:
            print(f"{suite.name:<14}{suite.budget_seconds:>5} s  {suite.what}")
        return 0
    chosen = _chosen(options.suites)
    # The end of CI's patience is treated as Ctrl-C is: engines are taken down.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Started in the background, a run inherits that Ctrl-C means nothing; the programs that it starts must not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    place = Workplace.make()
    began = time.monotonic()
    try:
        results = Runner(place=place, traced=options.coverage).run(chosen)
        taken = time.monotonic() - began
        coverage = whole_coverage(place) if options.coverage else "not measured; see --coverage"
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        shutil.rmtree(place.root, ignore_errors=True)
    passed, failed = (sum(getattr(tally, name) for _, tally in results) for name in ("passed", "failed"))
    print(f"\n{table(results, taken)}\nbranch coverage of the package: {coverage}\n")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
