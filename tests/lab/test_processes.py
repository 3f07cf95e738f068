"""Locks, waiting and ending, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpone_provider.domain.outcomes import DponeError
from dpone_provider.lab.account import engine_account
from dpone_provider.lab.processes import (
    Launch,
    end,
    engine_failed,
    holders,
    runs_module,
    tail,
    take_lock,
    wait_until,
)
from tests import waiting
from tests.lab.watching import is_free, script

SLEEP = ["/bin/sleep", "60"]


def test_a_lock_is_held_once_and_free_after_release(tmp_path: Path) -> None:
    path = tmp_path / "lab.lock"
    lock = take_lock(path, seconds=0)
    assert lock is not None
    assert take_lock(path, seconds=0.05) is None
    lock.release()
    lock.release()
    with pytest.raises(ValueError, match="released"):
        lock.fileno()
    assert is_free(path)


def test_whoever_inherits_the_lock_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "lab.lock"
    lock = take_lock(path, seconds=0)
    assert lock is not None
    with subprocess.Popen(SLEEP, pass_fds=(lock.fileno(),)) as heir:
        lock.release()
        assert take_lock(path, seconds=0) is None
        assert holders(path) == [heir.pid]
        heir.kill()
    assert is_free(path)
    assert holders(path) == []


def test_a_lock_file_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "lab.lock"
    old = take_lock(path, seconds=0)
    assert old is not None
    path.unlink()
    new = take_lock(path, seconds=0)
    assert new is not None
    for lock in (old, new):
        lock.release()


def test_a_launched_program_runs_as_the_account_and_dies_with_its_parent(tmp_path: Path) -> None:
    parent = """
import signal, sys, time
from pathlib import Path
from dpone_provider.lab.account import engine_account
from dpone_provider.lab.processes import Launch, take_lock
lock = take_lock(Path(sys.argv[1]) / "lab.lock", seconds=0)
launch = Launch(account=engine_account(), lock=lock.fileno(), when_parent_dies=signal.SIGKILL)
print(launch.start(["/bin/sleep", "60"], log=Path(sys.argv[1]) / "log").pid, flush=True)
sys.stdin.read()
"""
    with script(parent, str(tmp_path)) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        command = Path(f"/proc/{child}/cmdline")
        waiting.wait_until(lambda: command.read_bytes().startswith(b"/bin/sleep"), what="the program to run")
        assert Path(f"/proc/{child}").stat().st_uid == engine_account().uid
        process.kill()
        waiting.wait_until(lambda: is_free(tmp_path / "lab.lock"), what="the end of the program")


def test_a_program_whose_parent_is_gone_is_not_started(tmp_path: Path) -> None:
    lock = take_lock(tmp_path / "lab.lock", seconds=0)
    assert lock is not None
    launch = Launch(account=engine_account(), lock=lock.fileno(), when_parent_dies=signal.SIGKILL)
    command = launch.command(["/bin/echo", "started"])
    assert command[4] == str(os.getpid())
    command[4] = "1"
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    lock.release()


def test_waiting_ends_with_the_condition_the_process_or_the_time() -> None:
    with subprocess.Popen(SLEEP) as process:
        assert wait_until(lambda: True, process, seconds=5)
        assert not wait_until(lambda: False, process, seconds=0.05)
        process.kill()
        assert not wait_until(lambda: False, process, seconds=60)


def test_a_process_that_does_not_listen_is_killed() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        end(process, asking=signal.SIGTERM, seconds=0.1)
        assert process.returncode == -signal.SIGKILL


def test_a_module_is_told_by_how_it_was_started() -> None:
    assert not runs_module(os.getpid(), "dpone_provider.lab.supervisor")
    assert not runs_module(2**22 + 1, "dpone_provider.lab.supervisor")


@pytest.mark.parametrize(
    ("content", "told"), [(None, "(no log)"), ("", "(empty log)"), ("1\n2\n3\n4\n5\n6\n", "2 | 3 | 4 | 5 | 6")]
)
def test_a_failure_tells_the_end_of_the_log(tmp_path: Path, content: str | None, told: str) -> None:
    log = tmp_path / "log"
    if content is not None:
        log.write_text(content)
    assert tail(log) == told
    with pytest.raises(DponeError) as raised:
        engine_failed("PostgreSQL", log, "it ended")
    assert told in str(raised.value)
