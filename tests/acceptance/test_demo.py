"""The path of `make demo`, whole: real engines, a real Airflow, both releases, handover and roll back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dpone_provider.documents.reading import read
from dpone_provider.documents.run_report import RunReportV1, Verdict
from dpone_provider.lab.clickhouse import given as clickhouse
from dpone_provider.lab.mssql import given as mssql
from tests.waiting import wait_until

pytestmark = pytest.mark.scheduler

FLIGHTS = 336_776
VARIABLES = (mssql.VARIABLE, clickhouse.VARIABLE)


def start(root: Path, *, given: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start the demo in a session of its own, with Ctrl-C as a terminal gives it; on the lab's own engines, but for the
    servers that the variables ``given`` name."""
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES or name in given}
    return subprocess.Popen(
        [str(Path(sys.executable).parent / "dpone"), "demo", "--root", str(root), "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.timeout(900)
def test_the_whole_path_is_observed(tmp_path: Path) -> None:
    """Every stage observed, every workload of both releases, every table reconciled; exit code 0."""
    demo = start(tmp_path)
    out, err = demo.communicate(timeout=880)
    assert demo.returncode == 0, err.decode()[-4000:]
    report = read(RunReportV1, out, "the report")
    assert isinstance(report, RunReportV1), report
    assert report.complete
    assert {stage.verdict for stage in report.stages} == {Verdict.OBSERVED}
    assert (report.expected_workloads, report.observed_workloads) == (10, 10)
    names = [stage.stage for stage in report.stages]
    assert sum(name.startswith("reconcile ") for name in names) == 8
    assert [stage.rows for stage in report.stages if stage.stage.startswith("reconcile ordinary.flights")] == [
        FLIGHTS
    ] * 2
    assert names[-2:] == ["roll back to flights", "flights-v2 once more"]


@pytest.mark.timeout(120)
def test_an_interrupt_leaves_no_process(tmp_path: Path) -> None:
    """Ctrl-C while the engines start: exit code 130, nothing of it runs any more, and the next run may begin."""
    demo = start(tmp_path)
    assert demo.stderr is not None
    wait_until(lambda: (tmp_path / "lab").is_dir(), what="the lab to begin")
    os.killpg(demo.pid, signal.SIGINT)
    _, err = demo.communicate(timeout=60)
    assert demo.returncode == 130, err.decode()[-2000:]
    assert not [pid for pid in _pids() if str(tmp_path) in _command(pid)]


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
