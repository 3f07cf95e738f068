"""Every suite of this project, with its budget of seconds on two cores: the table that `tests/run_suites.py` runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOTAL_BUDGET_SECONDS = 1200
PROCESSORS = 2
LEFT = 0.15  # of the processors' time, by a suite with engines of its own: measured as 19 to 30 %


@dataclass(frozen=True, slots=True)
class Command:
    """A program of the environment that passes by exiting with 0."""

    label: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pytest:
    """A pytest run over folders of `tests/` that exist, or over everything that no other suite names.

    `marked` takes only tests with that marker, `unmarked` leaves out tests with any of these. `workers` above 1 is for
    tests that share nothing outside their process; `by_file` keeps those of a file in one of them, in their order,
    where what a file shares is dear to make; `first` are the files begun first, since they take longest. Branch
    coverage is measured where it is `traced`, and everywhere with --coverage: it doubles the time of what computes.
    """

    folders: tuple[str, ...] = ()
    marked: str = ""
    unmarked: tuple[str, ...] = ()
    workers: int = 1
    traced: bool = False
    by_file: bool = False
    first: tuple[str, ...] = ()

    @property
    def takes_the_rest(self) -> bool:
        """Tell whether this run is over all folders and files that no suite names."""
        return not self.folders


@dataclass(frozen=True, slots=True)
class Suite:
    """A name, a budget and what is run one after the other.

    One that keeps a single core busy is `narrow`: two of those run at the same time. One that needs nothing but
    processor time is `behind`: it runs behind the others, while they wait for their engines, and its budget is of
    processor seconds.
    """

    name: str
    budget_seconds: int
    what: str
    steps: tuple[Command | Pytest, ...]
    narrow: bool = False
    behind: bool = False


ENGINE_MARKERS = ("lab", "scheduler")
EXHAUSTIVE = "exhaustive"


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """The command line of a module of this environment."""
    return (sys.executable, "-m", module, *arguments)


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    """The command line of a program of this environment."""
    return (str(Path(sys.executable).parent / name), *arguments)


SUITES = (
    Suite(
        "lint",
        4,
        "ruff: faults, what Airflow 3 removed, format",
        (
            Command("ruff check", python("ruff", "check", ".")),
            Command("ruff format", python("ruff", "format", "--check", ".")),
        ),
        narrow=True,
    ),
    Suite("types", 70, "mypy, strict", (Command("mypy", python("mypy")),), narrow=True, behind=True),
    Suite(
        "architecture",
        16,
        "layers, purity of the domain, docstrings, sizes, what is committed",
        (
            Command("lint-imports", tool("lint-imports", "--no-logo", "--cache-dir", ".cache/importlinter")),
            Command("docstrings", python("interrogate", "dpone_provider")),
            Command("sizes", python("tests.architecture.sizes")),
            Pytest(folders=("architecture",)),
        ),
        narrow=True,
    ),
    Suite(
        "domain",
        25,
        "the rules, pure; every branch of them",
        (
            Pytest(folders=("domain",), workers=2, traced=True),
            Command(
                "branches of domain",
                python("coverage", "report", "--include=dpone_provider/domain/*", "--fail-under=100"),
            ),
        ),
        behind=True,
    ),
    Suite(
        "unit", 120, "what needs no engine", (Pytest(unmarked=(*ENGINE_MARKERS, EXHAUSTIVE), workers=2, by_file=True),)
    ),
    Suite(
        "exhaustive",
        65,
        "thousands of cases each",
        (Pytest(marked=EXHAUSTIVE, workers=2),),
        behind=True,
    ),
    Suite(
        "simulation",
        110,
        "thousands of seeded schedules of the application's own code, under faults",
        (
            Command(
                "5,000 schedules, 100 of them twice",
                python("tests.simulation.soak", "--schedules", "5000", "--workers", "2", "--replays", "100"),
            ),
        ),
        behind=True,
    ),
    Suite(
        "crash",
        100,
        "every named crash point, on the simulator and on real engines",
        (
            Pytest(folders=("crash",), unmarked=ENGINE_MARKERS, workers=2),
            Pytest(folders=("crash",), marked="lab", workers=3),
        ),
    ),
    Suite(
        "model",
        130,
        "every state of small casts, each guard dropped in turn",
        (Pytest(folders=("model",)),),
        narrow=True,
        behind=True,
    ),
    Suite(
        "sqltext",
        20,
        "every T-SQL statement parsed by Microsoft's parser, its names bound",
        (Pytest(folders=("sqltext",)),),
        narrow=True,
        behind=True,
    ),
    Suite(
        "conformance",
        1,
        "one suite per port, for each that implements it",
        (Pytest(folders=("conformance",)),),
        narrow=True,
    ),
    Suite(
        "interleaving",
        95,
        "every pair of ledger transactions, in every order",
        (Pytest(folders=("interleaving",), workers=3),),
    ),
    Suite(
        "races",
        140,
        "deliveries, gates and ends raced on a real PostgreSQL",
        (Pytest(folders=("races",)),),
        narrow=True,
    ),
    Suite(
        "lab",
        260,
        "adapters and use cases on real engines",
        (Pytest(folders=("lab",), workers=3), Pytest(marked="lab", workers=3, by_file=True)),
    ),
    Suite(
        "airflow",
        130,
        "operators, loader and bundle inside Airflow",
        (Pytest(folders=("airflow",)), Pytest(marked="scheduler")),
        narrow=True,
    ),
    Suite(
        "docs",
        25,
        "examples that run, reference pages that match the code",
        (Pytest(folders=("docs",), workers=2),),
        narrow=True,
    ),
    Suite(
        "acceptance",
        380,
        "the paths of demo and tutorial; an authority that goes back",
        (
            Pytest(
                folders=("acceptance", "wentback"),
                workers=3,
                by_file=True,
                first=("acceptance/test_tutorial.py", "acceptance/test_demo.py", "acceptance/test_dbt.py"),
            ),
        ),
    ),
)


def planned_seconds(suites: Sequence[Suite]) -> float:
    """How long these suites may take by their budgets, two narrow ones at a time.

    What runs behind takes the processor time that the others leave, and shares out both processors for the rest.
    """
    front = [suite for suite in suites if not suite.behind]
    narrow = [suite.budget_seconds for suite in front if suite.narrow]
    wide = sum(suite.budget_seconds for suite in front if not suite.narrow)
    behind = sum(suite.budget_seconds for suite in suites if suite.behind)
    rest = max(0.0, behind - PROCESSORS * LEFT * wide)
    return wide + max(sum(narrow) / PROCESSORS, max(narrow, default=0)) + rest / PROCESSORS
