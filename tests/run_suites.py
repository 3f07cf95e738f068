"""Run every suite of this project, each against its budget of seconds, and close with one table.

    python -m tests.run_suites                all suites
    python -m tests.run_suites lint unit      these suites
    python -m tests.run_suites --list         what there is
    python -m tests.run_suites --coverage     with branch coverage of the package over all that runs

A suite is a row of `SUITES`. A failing suite does not stop the next. The exit code is 0 only if every step passed and
no suite took more than three times its budget; at five times its budget a suite is ended. The last line is
`N passed, N failed`: tests of pytest, and one for each other command.

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
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"

TOTAL_BUDGET_SECONDS = 1200
FAILED_AT = 3.0  # times the budget
ENDED_AT = 5.0  # times the budget
GRACE_SECONDS = 20  # between asking a suite to end and killing it

NO_TESTS_COLLECTED = 5  # pytest's exit code
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Command:
    """A program of the environment that passes by exiting with 0."""

    label: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pytest:
    """A pytest run over folders of `tests/` that exist, or over everything that no other suite names.

    `marked` takes only tests with that marker, `unmarked` leaves out tests with any of these. `workers` above 1 is for
    tests that share nothing outside their process. Branch coverage is measured where it is `traced`, and
    everywhere with --coverage: it doubles the time of what computes.
    """

    folders: tuple[str, ...] = ()
    marked: str = ""
    unmarked: tuple[str, ...] = ()
    workers: int = 1
    traced: bool = False

    @property
    def takes_the_rest(self) -> bool:
        """Tell whether this run is over all folders and files that no suite names."""
        return not self.folders


@dataclass(frozen=True, slots=True)
class Suite:
    """A name, a budget and what is run one after the other."""

    name: str
    budget_seconds: int
    what: str
    steps: tuple[Command | Pytest, ...]


ENGINE_MARKERS = ("lab", "scheduler")
EXHAUSTIVE = "exhaustive"


def _python(module: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", module, *arguments)


def _tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(Path(sys.executable).parent / name), *arguments)


SUITES = (
    Suite(
        "lint",
        4,
        "ruff: faults, what Airflow 3 removed, format",
        (
            Command("ruff check", _python("ruff", "check", ".")),
            Command("ruff format", _python("ruff", "format", "--check", ".")),
        ),
    ),
    Suite("types", 39, "mypy, strict", (Command("mypy", _python("mypy")),)),
    Suite(
        "architecture",
        16,
        "layers, purity of the domain, docstrings, sizes, what is committed",
        (
            Command("lint-imports", _tool("lint-imports", "--no-logo", "--cache-dir", ".cache/importlinter")),
            Command("docstrings", _python("interrogate", "dpone_provider")),
            Command("sizes", _python("tests.architecture.sizes")),
            Pytest(folders=("architecture",)),
        ),
    ),
    Suite(
        "domain",
        25,
        "the rules, pure; every branch of them",
        (
            Pytest(folders=("domain",), workers=2, traced=True),
            Command(
                "branches of domain",
                _python("coverage", "report", "--include=dpone_provider/domain/*", "--fail-under=100"),
            ),
        ),
    ),
    Suite("unit", 130, "what needs no engine", (Pytest(unmarked=(*ENGINE_MARKERS, EXHAUSTIVE), workers=2),)),
    Suite(
        "exhaustive",
        65,
        "thousands of cases each",
        (Pytest(marked=EXHAUSTIVE, workers=2),),
    ),
    Suite(
        "simulation",
        35,
        "thousands of seeded schedules of the application's own code, under faults",
        (
            Command(
                "1,200 schedules, 50 of them twice",
                _python("tests.simulation.soak", "--schedules", "1200", "--workers", "2", "--replays", "50"),
            ),
        ),
    ),
    Suite(
        "crash",
        85,
        "every named crash point, on the simulator and on real engines",
        (
            Pytest(folders=("crash",), unmarked=ENGINE_MARKERS, workers=2),
            Pytest(folders=("crash",), marked="lab", workers=2),
        ),
    ),
    Suite(
        "model",
        60,
        "every state of small casts, each guard dropped in turn",
        (Pytest(folders=("model",)),),
    ),
    Suite("sqltext", 10, "every T-SQL statement parsed by Microsoft's parser", (Pytest(folders=("sqltext",)),)),
    Suite("conformance", 1, "one suite per port, for each that implements it", (Pytest(folders=("conformance",)),)),
    Suite(
        "interleaving",
        110,
        "every pair of ledger transactions, in every order",
        (Pytest(folders=("interleaving",), workers=2),),
    ),
    Suite(
        "races",
        50,
        "deliveries, gates and ends raced on a real PostgreSQL",
        (Pytest(folders=("races",)),),
    ),
    Suite(
        "lab",
        240,
        "adapters and use cases on real engines",
        (Pytest(folders=("lab",), workers=3), Pytest(marked="lab", workers=3)),
    ),
    Suite(
        "airflow",
        80,
        "operators, loader and bundle inside Airflow",
        (Pytest(folders=("airflow",)), Pytest(marked="scheduler")),
    ),
    Suite(
        "docs",
        20,
        "examples that run, reference pages that match the code",
        (Pytest(folders=("docs",), workers=2),),
    ),
    Suite(
        "acceptance",
        230,
        "the paths of demo and tutorial; an authority that goes back",
        (Pytest(folders=("acceptance", "wentback"), workers=3),),
    ),
)


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
    return [f"{tests.name}/{path.name}" for path in paths if any(_covers(step, file) for file in _test_files(path))]


def _test_files(path: Path) -> list[Path]:
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path] if path.match("test_*.py") else []


def _covers(step: Pytest, file: Path) -> bool:
    return not step.marked or f"mark.{step.marked}" in file.read_text(encoding="utf-8")


def pytest_argv(step: Pytest, paths: Sequence[str], report: Path, *, traced: bool) -> tuple[str, ...]:
    """The command line of a pytest run that leaves its results in `report`, and its coverage if `traced`."""
    terms = [*([step.marked] if step.marked else []), *(f"not {marker}" for marker in step.unmarked)]
    expression = ("-m", " and ".join(terms)) if terms else ()
    workers = ("-n", str(step.workers), "--dist", "worksteal") if step.workers > 1 else ()
    coverage = ("--cov", "--cov-report=") if traced else ()
    return _python("pytest", *paths, *expression, *workers, *coverage, f"--junitxml={report}")


def run_suite(suite: Suite, place: Workplace, *, traced: bool = False) -> Tally:
    """Run the steps of a suite, all of them, within its time; with coverage everywhere if `traced`."""
    tally = Tally()
    environment = place.environment(os.environ, suite.name)
    started = time.monotonic()
    deadline = started + suite.budget_seconds * ENDED_AT
    for number, step in enumerate(suite.steps):
        match step:
            case Command(label=label, argv=argv):
                if label.startswith("branches") and not place.coverage(suite.name).exists():
                    continue
                _print_step(label)
                _count_command(label, run_command(argv, environment, deadline), tally)
            case Pytest():
                if paths := pytest_paths(step, TESTS, SUITES):
                    _print_step(f"pytest {' '.join(paths)}" + (f", marked {step.marked}" if step.marked else ""))
                    report = place.report(suite.name, number)
                    code = run_command(
                        pytest_argv(step, paths, report, traced=traced or step.traced), environment, deadline
                    )
                    count_report(report, code, tally)
    tally.seconds = time.monotonic() - started
    if tally.seconds > suite.budget_seconds * FAILED_AT:
        tally.failed += 1
        tally.notes.append(f"more than {FAILED_AT:g} times its budget")
    return tally


def run_command(argv: Sequence[str], environment: Mapping[str, str], deadline: float) -> int | None:
    """Run a program to its end, or end it with all its children at `deadline` (monotonic); None when it was ended."""
    process = subprocess.Popen(argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        end_group(process)
        return None
    except BaseException:
        end_group(process)
        raise


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


def table(results: Sequence[tuple[Suite, Tally]]) -> str:
    """The closing table, one line per suite."""
    lines = [f"{'suite':<14}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>10}{'budget':>8}"]
    for suite, tally in results:
        late = "  over budget" if tally.seconds > suite.budget_seconds else ""
        notes = "".join(f"  {note}" for note in tally.notes)
        lines.append(
            f"{suite.name:<14}{tally.passed:>8}{tally.failed:>8}{tally.skipped:>9}"
            f"{tally.seconds:>10.1f}{suite.budget_seconds:>8}{late}{notes}"
        )
    seconds = sum(tally.seconds for _, tally in results)
    budget = sum(suite.budget_seconds for suite, _ in results)
    lines.append(f"{'in all':<14}{'':>25}{seconds:>10.1f}{budget:>8}")
    return "\n".join(lines)


def whole_coverage(place: Workplace) -> str:
    """Branch coverage of the whole package over all suites of this run, as text; a figure, not a gate."""
    parts = [str(path) for path in sorted((place.root / "coverage").iterdir())]
    if not parts:
        return "not measured"
    environment = place.environment(os.environ, "all")
    combine = _python("coverage", "combine", "--quiet", "--keep", *parts)
    report = _python("coverage", "report", "--format=total")
    if subprocess.run(combine, cwd=ROOT, env=environment, capture_output=True, check=False).returncode != 0:
        return "not measured"
    total = subprocess.run(report, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stdout
    return f"{total.strip()} %"


def _print_step(text: str) -> None:
    print(f"--- {text}", flush=True)


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
    place = Workplace.make()
    results: list[tuple[Suite, Tally]] = []
    try:
        for suite in chosen:
            print(f"\n=== {suite.name}: {suite.what} (budget {suite.budget_seconds} s)", flush=True)
            results.append((suite, run_suite(suite, place, traced=options.coverage)))
            print(f"=== {suite.name}: {results[-1][1].seconds:.1f} of {suite.budget_seconds} s", flush=True)
        coverage = whole_coverage(place) if options.coverage else "not measured; see --coverage"
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        shutil.rmtree(place.root, ignore_errors=True)
    passed, failed = (sum(getattr(tally, name) for _, tally in results) for name in ("passed", "failed"))
    print(f"\n{table(results)}\nbranch coverage of the package: {coverage}\n")
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
