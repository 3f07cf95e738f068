"""The suite runner: what it covers, counts, ends, and keeps apart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests import run_suites, suites, yielding
from tests.run_suites import Interrupted, Programs, Runner, Tally, Workplace
from tests.suites import Command, Pytest, Suite, planned_seconds
from tests.waiting import wait_until

SUITES = (Suite("lab", 10, "", (Pytest(folders=("lab", "later")),)), Suite("unit", 10, "", (Pytest(),)))


def tree(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def test_what_no_suite_names_is_covered_by_the_rest(tmp_path: Path) -> None:
    tests = tree(
        tmp_path / "tests", "lab/test_a.py", "domain/deep/test_b.py", "test_c.py", "fakes/clock.py", "waiting.py"
    )
    assert run_suites.pytest_paths(Pytest(), tests, SUITES) == ["tests/domain", "tests/test_c.py"]


def test_a_named_folder_is_covered_once_it_has_a_test(tmp_path: Path) -> None:
    tests = tree(tmp_path / "tests", "lab/test_a.py", "later/__init__.py")
    assert run_suites.pytest_paths(Pytest(folders=("lab", "later")), tests, SUITES) == ["tests/lab"]
    assert run_suites.pytest_paths(Pytest(folders=("later",)), tests, SUITES) == []


def test_a_marked_run_covers_only_paths_that_use_the_marker(tmp_path: Path) -> None:
    tests = tree(tmp_path / "tests", "domain/test_a.py", "adapters/test_b.py")
    (tests / "adapters" / "test_b.py").write_text("pytestmark = pytest.mark.lab\n", encoding="utf-8")
    assert run_suites.pytest_paths(Pytest(marked="lab"), tests, SUITES) == ["tests/adapters"]


@pytest.mark.parametrize(
    ("step", "expression"),
    [
        (Pytest(), []),
        (Pytest(marked="lab"), ["-m", "lab"]),
        (
            Pytest(unmarked=("lab", "scheduler"), workers=2),
            ["-m", "not lab and not scheduler", "-n", "2", "--dist", "worksteal"],
        ),
        (Pytest(workers=3, by_file=True), ["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"]),
    ],
)
def test_markers_and_workers_are_passed_to_pytest(step: Pytest, expression: list[str]) -> None:
    argv = run_suites.pytest_argv(step, ["tests/domain"], Path("report.xml"), traced=True)
    assert list(argv[argv.index("tests/domain") + 1 : argv.index("--cov")]) == expression


def test_coverage_is_not_measured_where_it_would_only_cost() -> None:
    argv = run_suites.pytest_argv(Pytest(marked="exhaustive"), ["tests/domain"], Path("report.xml"), traced=False)
    assert argv[argv.index("tests/domain") + 1 :] == ("-m", "exhaustive", "--junitxml=report.xml")


def test_suite_names_are_unique_and_fit_the_table() -> None:
    names = [suite.name for suite in suites.SUITES]
    assert len(names) == len(set(names))
    assert all(len(name) < 14 for name in names)


REPORT = (
    '<testsuites><testsuite tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}"/></testsuites>'
)


def report(folder: Path, tests: int, failures: int = 0, errors: int = 0, skipped: int = 0) -> Path:
    path = folder / "report.xml"
    path.write_text(REPORT.format(tests=tests, failures=failures, errors=errors, skipped=skipped), encoding="utf-8")
    return path


def test_results_are_counted_from_the_report(tmp_path: Path) -> None:
    tally = Tally()
    run_suites.count_report(report(tmp_path, 10, failures=2, errors=1, skipped=3), 1, tally)
    assert (tally.passed, tally.failed, tally.skipped) == (4, 3, 3)


@pytest.mark.parametrize(("code", "failed"), [(0, 0), (5, 0), (2, 1), (4, 1), (-11, 1), (None, 1)])
def test_a_run_that_breaks_without_a_report_is_a_failure(code: int | None, failed: int, tmp_path: Path) -> None:
    tally = Tally()
    run_suites.count_report(tmp_path / "missing.xml", code, tally)
    assert tally.failed == failed
    assert bool(tally.notes) == bool(failed)


def test_passed_tests_and_a_broken_end_are_a_failure(tmp_path: Path) -> None:
    tally = Tally()
    run_suites.count_report(report(tmp_path, 10), 1, tally)
    assert (tally.passed, tally.failed, tally.notes) == (10, 1, ["pytest: exit code 1"])


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_the_caller_s_settings_do_not_reach_a_suite(place: Workplace) -> None:
    caller = {
        "HOME": "/home/me",
        "PATH": "/bin",
        "AIRFLOW__CORE__EXECUTOR": "X",
        "PGHOST": "production",
        "DBT_PROFILES_DIR": "/x",
        "PYTHONPATH": "/x",
        "DPONE_CACHE_ROOT": "/x",
        "DPONE_TEST_MSSQL_URL": "mssql://…",
        "SSL_CERT_FILE": "/etc/ca",
    }
    environment = place.environment(caller, "unit")
    assert not {"AIRFLOW__CORE__EXECUTOR", "PGHOST", "DBT_PROFILES_DIR", "PYTHONPATH", "DPONE_CACHE_ROOT"} & set(
        environment
    )
    assert environment["DPONE_TEST_MSSQL_URL"] == "mssql://…"
    assert environment["SSL_CERT_FILE"] == "/etc/ca"
    assert environment["HOME"].startswith(str(place.root))
    assert environment["AIRFLOW_HOME"].startswith(str(place.root))
    assert environment["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/bin"


def test_a_run_has_directories_that_another_account_can_pass() -> None:
    made = Workplace.make()
    try:
        assert made.root.stat().st_mode & 0o777 == 0o755
        assert (made.root / "tmp").stat().st_mode & 0o7777 == 0o1777
    finally:
        subprocess.run(["rm", "-rf", str(made.root)], check=True)


def run(suite: Suite, place: Workplace) -> Tally:
    (place.root / "coverage").mkdir(exist_ok=True)
    return Runner(place=place).run_suite(suite)


def python(source: str) -> tuple[str, ...]:
    return (sys.executable, "-c", source)


def test_steps_after_a_failing_one_run(place: Workplace) -> None:
    suite = Suite("x", 60, "", (Command("one", python("raise SystemExit(3)")), Command("two", python(""))))
    tally = run(suite, place)
    assert (tally.passed, tally.failed, tally.notes) == (1, 1, ["one: exit code 3"])


def test_a_suite_far_over_its_budget_is_ended_with_its_children(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_suites, "GRACE_SECONDS", 0.2)
    pid_file = place.root / "pid"
    source = (
        "import pathlib, signal, subprocess, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))\n"
        "child.wait()\n"
    )
    monkeypatch.setattr(run_suites, "ENDED_AT", 2.0)
    started = time.monotonic()
    tally = run(Suite("x", 1, "", (Command("stuck", python(source)),)), place)
    assert tally.notes[0] == "stuck: ended, out of time"
    assert time.monotonic() - started < 30
    child = int(pid_file.read_text())
    wait_until(lambda: not alive(child), what=f"the end of the child {child}")


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_far_more_than_the_budget_is_a_failure(place: Workplace) -> None:
    tally = run(Suite("x", 0, "", ()), place)
    assert (tally.failed, tally.notes) == (1, ["more than 3 times its budget"])


def test_the_table_tells_seconds_budgets_and_reasons() -> None:
    suites = (Suite("lint", 10, "", ()), Suite("types", 90, "", ()))
    told = run_suites.table(
        [(suites[0], Tally(2, 0, 0, 3.21)), (suites[1], Tally(0, 1, 0, 100.0, ["mypy: exit code 1"]))], 103.2
    )
    assert told.splitlines() == [
        "suite           passed  failed  skipped   seconds  budget",
        "lint                 2       0        0       3.2      10",
        "types                0       1        0     100.0      90  over budget  mypy: exit code 1",
        "in all                                      103.2     100",
    ]


def test_an_unknown_suite_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SystemExit, match="no suite named speed; there are: lint, types"):
        run_suites.main(["speed"])


def named(name: str, seconds: int = 60, *, narrow: bool = False, source: str = "") -> Suite:
    return Suite(name, seconds, "", (Command(name, python(source)),), narrow=narrow)


def test_two_narrow_suites_run_at_the_same_time(place: Workplace, capfd: pytest.CaptureFixture[str]) -> None:
    """Each waits until the other has begun."""
    (place.root / "coverage").mkdir()
    meet = (
        "import pathlib, sys, time\n"
        "mine, other = (pathlib.Path({root!r}) / name for name in ({mine!r}, {other!r}))\n"
        "mine.touch()\n"
        "until = time.monotonic() + 30\n"
        "while not other.exists() and time.monotonic() < until: time.sleep(0.01)\n"
        "print('met' if other.exists() else 'alone', {mine!r})\n"
    )
    suites = [
        named(mine, narrow=True, source=meet.format(root=str(place.root), mine=mine, other=other))
        for mine, other in (("a", "b"), ("b", "a"))
    ]
    results = Runner(place=place).run([*suites, named("wide")])
    assert [(suite.name, tally.passed) for suite, tally in results] == [("a", 1), ("b", 1), ("wide", 1)]
    said = capfd.readouterr().out
    assert {"met a", "met b"} <= set(said.splitlines())
    first = said.index("=== a:") if said.index("met a") < said.index("met b") else said.index("=== b:")
    assert "met" in said[first : said.index("=== ", said.index("met"))]


def test_a_narrow_suite_that_fails_is_counted(place: Workplace) -> None:
    (place.root / "coverage").mkdir()
    bad = named("bad", narrow=True, source="raise SystemExit(3)")
    results = Runner(place=place).run([bad, named("good", narrow=True)])
    assert [(tally.passed, tally.failed) for _, tally in results] == [(0, 1), (1, 0)]


def test_all_programs_can_be_ended_at_once(place: Workplace) -> None:
    programs = Programs()
    began = place.root / "began"
    source = f"import pathlib, signal\npathlib.Path({str(began)!r}).touch()\nsignal.pause()"
    code: list[int | None] = []
    running = threading.Thread(
        target=lambda: code.append(programs.run(python(source), dict(os.environ), time.monotonic() + 60, None))
    )
    running.start()
    wait_until(began.exists, what="a program that has begun")
    programs.end_all()
    running.join(30)
    assert code
    assert code[0] != 0
    with pytest.raises(Interrupted):
        programs.run(python(""), dict(os.environ), time.monotonic() + 60, None)


def test_what_takes_longest_is_begun_first(tmp_path: Path) -> None:
    tests = tree(tmp_path / "tests", "lab/test_a.py", "lab/test_z.py")
    assert run_suites.pytest_paths(Pytest(folders=("lab",), first=("lab/test_z.py",)), tests, SUITES) == [
        "tests/lab/test_z.py",
        "tests/lab",
    ]


def test_every_file_that_is_begun_first_exists() -> None:
    steps = [step for suite in suites.SUITES for step in suite.steps if isinstance(step, Pytest)]
    assert [file for step in steps for file in step.first if not (run_suites.TESTS / file).is_file()] == []


BEHIND = """
import os, pathlib, time
while time.process_time() < 0.2: pass
print("niceness", os.nice(0), pathlib.Path("/proc/self/autogroup").read_text().split()[-1:])
raise SystemExit({code})
"""


def test_what_needs_only_the_processor_runs_behind_the_others(
    place: Workplace, capfd: pytest.CaptureFixture[str]
) -> None:
    """The one in front waits until the one behind has ended, which is counted in processor seconds."""
    for name in ("coverage", "reports"):
        (place.root / name).mkdir()
    ended = f"import pathlib\npathlib.Path({str(place.root / 'ended')!r}).touch()"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(place.root / 'ended')!r}).exists(): time.sleep(0.01)"
    back = Suite("back", 60, "", (Command("busy", python(BEHIND.format(code=3))), Command("ended", python(ended))))
    results = Runner(place=place).run([named("front", source=wait), replace(back, behind=True)])
    tallies = {suite.name: tally for suite, tally in results}
    assert (tallies["front"].passed, tallies["back"].passed) == (1, 1)
    assert tallies["back"].notes == ["busy: exit code 3"]
    assert 0.2 <= tallies["back"].seconds < 20
    assert "niceness 19" in capfd.readouterr().out


def test_a_suite_that_is_alone_runs_in_front(place: Workplace, capfd: pytest.CaptureFixture[str]) -> None:
    (place.root / "coverage").mkdir()
    back = Suite("back", 60, "", (Command("busy", python(BEHIND.format(code=0))),), behind=True)
    ((_, tally),) = Runner(place=place).run([back])
    assert tally.passed == 1
    assert f"niceness {os.nice(0)}" in capfd.readouterr().out


def test_a_program_behind_the_others_that_is_ended_has_taken_nothing(tmp_path: Path) -> None:
    assert yielding.processor_seconds(tmp_path / "missing") == 0


def test_the_signal_that_ends_a_program_behind_the_others_is_told(tmp_path: Path) -> None:
    asked = yielding.argv(tmp_path / "figure", python("import os; os.kill(os.getpid(), 9)"))
    assert subprocess.run(asked, check=False, cwd=run_suites.ROOT).returncode == 137


def test_what_runs_behind_is_planned_into_the_time_that_others_leave() -> None:
    behind = replace(named("b", 50), behind=True)
    assert planned_seconds([named("a", 100), behind]) == 100 + (50 - 30) / 2
    assert planned_seconds([named("a", 400), behind]) == 400


def test_what_is_planned_counts_two_narrow_suites_at_a_time() -> None:
    assert planned_seconds([named("a", 40, narrow=True), named("b", 20, narrow=True), named("c", 100)]) == 140
    assert (
        planned_seconds([named("a", 40, narrow=True), named("b", 60, narrow=True), named("c", 60, narrow=True)]) == 80
    )
    assert planned_seconds([named("c", 100)]) == 100


INTERRUPTED_RUN = """
import signal, sys
from pathlib import Path
from tests.run_suites import Runner, Workplace
from tests.suites import Command, Suite

signal.signal(signal.SIGINT, signal.default_int_handler)
root = Path(sys.argv[1])
for name in ("coverage", "reports"):
    (root / name).mkdir()
source = "import os, pathlib, signal\\nfile = pathlib.Path({!r})\\nfile.write_text(str(os.getpid()))\\nsignal.pause()"
suites = [
    Suite(name, 60, "", (Command(name, (sys.executable, "-c", source.format(str(root / name)))),), narrow, behind)
    for name, narrow, behind in eval(sys.argv[2])
]
Runner(place=Workplace(root)).run(suites)
"""


@pytest.mark.parametrize(
    "suites",
    [[("wide", False, False)], [("a", True, False), ("b", True, False)], [("front", False, False), ("b", False, True)]],
    ids=["wide", "narrow", "behind"],
)
def test_an_interrupt_ends_what_runs(place: Workplace, suites: list[tuple[str, bool, bool]]) -> None:
    """Found: what ran in the main thread was forgotten before all were ended, and went on without its workplace."""
    argv = [sys.executable, "-c", INTERRUPTED_RUN, str(place.root), repr(suites)]
    running = subprocess.Popen(argv, cwd=run_suites.ROOT, stderr=subprocess.DEVNULL)
    files = [place.root / name for name, *_ in suites]
    wait_until(lambda: all(file.exists() and file.read_text() for file in files), what="the programs")
    pids = [int(file.read_text()) for file in files]
    running.send_signal(signal.SIGINT)
    assert running.wait(60) != 0
    wait_until(lambda: not any(alive(pid) for pid in pids), what=f"the end of {pids}")
