"""However a lab's processes end, none survives, no port stays open, and the next lab starts there."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dpone_provider import lab
from dpone_provider.lab.ports import is_open
from tests.lab.watching import ends, read_line, script
from tests.waiting import wait_until

pytestmark = pytest.mark.lab

HOLD = """
import sys
from pathlib import Path
from dpone_provider import lab
with lab.running(Path(sys.argv[1])) as state:
    print("up", flush=True)
    sys.stdin.read()
"""
FORK = """
import os, sys
from pathlib import Path
from dpone_provider import lab
with lab.clickhouse_only(Path(sys.argv[1])) as state:
    if os.fork() == 0:
        os.write(1, b"fork\\n")
        sys.stdin.read()
        os._exit(0)
    os.write(1, b"up\\n")
    sys.stdin.read()
"""
UP = """
import sys
from pathlib import Path
from dpone_provider import lab
lab.up(Path(sys.argv[1]), progress=lambda message: print(message, flush=True))
"""


def ports(state: lab.LabState) -> list[int]:
    return [engine.port for engine in (state.postgres, state.clickhouse) if engine is not None]


def assert_gone_and_next_works(state: lab.LabState) -> None:
    ends(state.root)
    assert not any(is_open(port) for port in ports(state))
    with lab.clickhouse_only(state.root):
        pass
    assert os.listdir(state.root) == []


def test_the_supervisor_is_killed(tmp_path: Path) -> None:
    with script(HOLD, str(tmp_path)) as holder:
        assert read_line(holder) == "up"
        state = lab.read_state(tmp_path)
        os.kill(state.supervisor_pid, signal.SIGKILL)
        ends(tmp_path)
    assert_gone_and_next_works(state)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_supervisor_is_asked_to_end(tmp_path: Path, number: signal.Signals) -> None:
    with lab.clickhouse_only(tmp_path) as state:
        os.kill(state.supervisor_pid, number)
        ends(tmp_path)
        assert_gone_and_next_works(state)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_holder_is_signalled(tmp_path: Path, number: signal.Signals) -> None:
    with script(HOLD, str(tmp_path)) as holder:
        assert read_line(holder) == "up"
        state = lab.read_state(tmp_path)
        holder.send_signal(number)
        holder.wait(20)
        assert_gone_and_next_works(state)


def test_a_fork_of_the_holder_does_not_keep_the_lab(tmp_path: Path) -> None:
    with script(FORK, str(tmp_path)) as holder:
        assert {read_line(holder), read_line(holder)} == {"up", "fork"}
        state = lab.read_state(tmp_path)
        holder.kill()
        assert_gone_and_next_works(state)


@pytest.mark.parametrize("engine", ["postgres", "clickhouse"])
def test_an_engine_that_dies_takes_the_lab_with_it(tmp_path: Path, engine: str) -> None:
    with script(HOLD, str(tmp_path)) as holder:
        assert read_line(holder) == "up"
        state = lab.read_state(tmp_path)
        os.kill(getattr(state, engine).pid, signal.SIGKILL)
        ends(tmp_path)
    assert_gone_and_next_works(state)


@pytest.mark.parametrize(
    ("message", "number"),
    [
        ("starting PostgreSQL", signal.SIGINT),
        ("making databases", signal.SIGINT),
        ("loading the flights", signal.SIGINT),
        ("loading the flights", signal.SIGKILL),
    ],
)
def test_up_is_interrupted(tmp_path: Path, message: str, number: signal.Signals) -> None:
    with script(UP, str(tmp_path)) as starter:
        wait_until(lambda: read_line(starter).startswith(message), what=f"the message {message!r}")
        starter.send_signal(number)
        starter.wait(20)
        ends(tmp_path)
    left = lab.status(tmp_path).condition
    assert left is lab.LabCondition.DOWN or (left is lab.LabCondition.DEAD and number is signal.SIGKILL)
    with lab.clickhouse_only(tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_down_stops_postgres_in_order(tmp_path: Path) -> None:
    with lab.postgres_only(tmp_path) as state:
        assert state.postgres is not None
        log = Path(state.postgres.facts["log"])
        os.kill(state.supervisor_pid, signal.SIGTERM)
        ends(tmp_path)
        assert "database system is shut down" in log.read_text()
