"""The targets of the Makefile: each is listed, and runs what its line says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {"help", "env", "demo", "docs", "test", "soak", "bench"}


def make(*arguments: str) -> str:
    """Return what make says; the caller's own make, if there is one, tells it nothing."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def commands(*arguments: str) -> list[list[str]]:
    """Return the commands that a target would run here, without those that make its environment."""
    lines = make("--dry-run", *arguments).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if ".ci/env" not in line]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of the Makefile's with this interpreter."""
    assert command[0] == ".venv/bin/python"
    return subprocess.run([sys.executable, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_target_is_listed_with_what_it_does() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == TARGETS
    listed = {line.split()[0]: line.split(maxsplit=1)[1] for line in make("help").splitlines()}
    assert set(listed) == TARGETS


def test_soak_plays_the_schedules_that_it_is_told() -> None:
    schedules, *others = commands("soak", "N=2", "SEED=11")
    done = run(schedules)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seeds 11 to 12" in done.stdout
    assert "schedules: 2," in done.stdout
    assert len(others) == 4
    for more in others:
        assert more[:4] == ["test", "0", "=", "0"], "nothing else unless it is asked for"


def test_soak_kills_what_it_is_told() -> None:
    _, kills, *_ = commands("soak", "N=2", "SEED=11", "KILLS=3")
    told = {"DPONE_TEST_KILL_CYCLES": "3", "DPONE_TEST_KILL_SEED": "11"}
    assert set(kills) >= {f"{name}={value}" for name, value in told.items()}
    collect = [sys.executable, "-m", "pytest", "tests/acceptance/test_kills.py", "--collect-only", "-q"]
    found = subprocess.run(collect, cwd=ROOT, env=os.environ | told, capture_output=True, text=True, check=True)
    assert "6 tests collected" in found.stdout


def test_soak_races_what_it_is_told() -> None:
    _, _, races, *_ = commands("soak", "N=2", "RACES=50")
    assert {"DPONE_TEST_RACED_GATES=50", "DPONE_TEST_DELIVERIES=$((2 * 50))"} <= {races[5], " ".join(races[6:9])}
    assert "tests/races" in races


def test_soak_crashes_everywhere_on_the_lab_when_it_is_told() -> None:
    *_, crashes, _ = commands("soak", "N=2", "CRASHES=all")
    assert "DPONE_TEST_CRASHES=all" in crashes
    assert "tests/crash" in crashes


def test_soak_makes_as_many_malformed_documents_as_it_is_told() -> None:
    *_, malformed = commands("soak", "N=2", "MALFORMED=10000")
    assert "DPONE_TEST_MALFORMED=10000" in malformed


def test_soak_plays_half_a_million_schedules_by_itself() -> None:
    schedules, *_ = commands("soak")
    assert schedules[schedules.index("--schedules") + 1] == "500000"


def test_bench_lists_the_benchmarks_and_refuses_others() -> None:
    (listing,) = commands("bench", "ONLY=--list")
    names = [line.split()[0] for line in run(listing).stdout.splitlines()]
    assert "attempt_overhead" in names
    for name in names:
        assert (ROOT / "benchmarks" / f"{name}.py").is_file()
    (wrong,) = commands("bench", "ONLY=nothing_of_the_kind")
    done = run(wrong)
    assert done.returncode == 2
    assert "attempt_overhead" in done.stderr


@pytest.mark.parametrize("target", sorted(TARGETS - {"help", "env"}))
def test_every_target_makes_its_environment_first(target: str) -> None:
    assert "sh .ci/env" in make("--dry-run", target)
