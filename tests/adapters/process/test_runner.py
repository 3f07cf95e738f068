from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from dpone_provider.adapters.process import runner
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.application.ports.process import ChildProcess, ChildRunner
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.domain.secret import Secret
from tests.adapters.process.children import Lines, alive, eventually, first, running

IGNORES_SIGTERM = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
tell(pid=os.getpid())
while True: time.sleep(60)
"""
# One grandchild stays in the group, one leaves it for a session of its own, one of those starts a daemon.
FAMILY = """
sleep = "import time; time.sleep(600)"
deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + sleep
quiet = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True"
fork = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-ISc', %r], %s).pid)" % (deaf, quiet)
near = subprocess.Popen([sys.executable, "-ISc", sleep])
far = subprocess.Popen([sys.executable, "-ISc", deaf], start_new_session=True)
daemon = int(subprocess.run([sys.executable, "-ISc", fork], capture_output=True, check=True).stdout)
tell(pids=[near.pid, far.pid, daemon], own=os.getpid())
"""


def test_the_classes_are_what_the_port_asks_for(tmp_path: Path) -> None:
    children: ChildRunner = GuardedChildren()
    assert children
    with running("", tmp_path) as started:
        child: ChildProcess = started
        assert list(child.events()) == []


def test_events_come_in_order_and_after_them_the_exit_code_is_known(tmp_path: Path) -> None:
    with running("tell(n=1); tell(n=2); sys.exit(7)", tmp_path) as child:
        assert list(child.events()) == [{"n": 1}, {"n": 2}]
        assert child.exit_code() == 7


def test_a_running_child_has_no_exit_code(tmp_path: Path) -> None:
    with running("tell(n=1); time.sleep(600)", tmp_path) as child:
        first(child)
        assert child.exit_code() is None


def test_a_child_killed_by_a_signal_tells_the_signal_and_loses_nothing_that_was_written(tmp_path: Path) -> None:
    with running("tell(n=1); events.write('{\"half'); events.flush(); os.kill(os.getpid(), 9)", tmp_path) as child:
        assert list(child.events()) == [{"n": 1}]
        assert child.exit_code() == -signal.SIGKILL


def test_nothing_is_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "inherited")
    leak = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(leak, True)
    program = """
names = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]
tell(environment=dict(os.environ), directory=os.getcwd(), kinds=sorted(name.split(":")[0] for name in names),
     session=os.getsid(0) == os.getpid(), group=os.getpgid(0) == os.getpid(), umask=os.umask(0),
     core=__import__("resource").getrlimit(__import__("resource").RLIMIT_CORE)[0])
"""
    with running(program, tmp_path, environment={"A": "1"}, secret_environment={"S": Secret("hush")}) as child:
        told = dict(first(child))
    os.close(leak)
    environment = told.pop("environment")
    assert isinstance(environment, dict)
    environment.pop("DPONE_EVENTS_FD")
    environment.pop("LC_CTYPE", None)  # set by the interpreter itself
    assert environment == {"A": "1", "S": "hush"}
    assert told == {
        "directory": str(tmp_path),
        "kinds": ["pipe", "pipe", "pipe", "pipe"],
        "session": True,
        "group": True,
        "umask": 0o077,
        "core": 0,
    }


def test_standard_input_gives_the_first_line_and_later_answers(tmp_path: Path) -> None:
    program = "tell(job=json.loads(sys.stdin.readline())); tell(answer=json.loads(sys.stdin.readline()))"
    with running(program, tmp_path, standard_input=Secret('{"password": "hush"}')) as child:
        events = child.events()
        assert next(events) == {"job": {"password": "hush"}}
        child.answer({"go": True})
        assert next(events) == {"answer": {"go": True}}


def test_a_first_line_larger_than_a_pipe_is_given_whole(tmp_path: Path) -> None:
    with running("tell(n=len(sys.stdin.readline()))", tmp_path, standard_input=Secret("x" * 300_000)) as child:
        assert first(child) == {"n": 300_001}


def test_a_child_that_does_not_read_a_large_first_line_is_stopped_at_its_deadline(tmp_path: Path) -> None:
    with running("time.sleep(600)", tmp_path, standard_input=Secret("x" * 300_000), seconds=0.3) as child:
        assert list(child.events()) == []
        assert child.exit_code() == -signal.SIGTERM


def test_answering_a_child_that_is_gone_or_closed_its_input_is_no_error(tmp_path: Path) -> None:
    with running("os.close(0); tell(n=1); time.sleep(600)", tmp_path, standard_input=Secret("{}")) as child:
        first(child)
        child.answer({})
        child.stop(0.0)
        child.answer({})


def test_a_child_that_ends_on_sigterm_is_not_killed(tmp_path: Path) -> None:
    program = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); tell(n=1)\nwhile True: time.sleep(60)"
    with running(program, tmp_path) as child:
        first(child)
        child.stop(10.0)
        assert child.exit_code() == 3


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    with running(IGNORES_SIGTERM, tmp_path) as child:
        pid = first(child)["pid"]
        before = time.monotonic()
        child.stop(0.2)
        assert 0.2 <= time.monotonic() - before < 3.0
        assert child.exit_code() == -signal.SIGKILL
        assert not alive(pid)
        child.stop(0.2)


def test_leaving_the_block_stops_the_child_whatever_happened(tmp_path: Path) -> None:
    pids = []

    def interrupted() -> None:
        with running("tell(pid=os.getpid()); time.sleep(600)", tmp_path) as child:
            pids.append(first(child)["pid"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not alive(pids[0])


@pytest.mark.parametrize("ending", ["", "time.sleep(600)", "os.kill(os.getpid(), 9)"])
def test_nothing_that_the_child_started_survives_it_not_even_in_another_session(tmp_path: Path, ending: str) -> None:
    with running(FAMILY + ending, tmp_path) as child:
        pids = first(child)["pids"]
        assert isinstance(pids, list)
        if ending.startswith("time"):
            assert all(alive(pid) for pid in pids)
        child.stop(0.1)
        assert not [pid for pid in pids if alive(pid)]


def test_a_grandchild_that_holds_the_pipes_does_not_hold_the_events(tmp_path: Path) -> None:
    program = """
sleep = [sys.executable, "-ISc", "import time; time.sleep(600)"]
subprocess.Popen(sleep, pass_fds=[events.fileno()], start_new_session=True)
tell(n=1)
"""
    with running(program, tmp_path) as child:
        assert list(child.events()) == [{"n": 1}]
        assert child.exit_code() == 0


def test_a_child_that_closes_its_pipes_runs_on_until_it_ends(tmp_path: Path) -> None:
    program = "tell(n=1); events.close(); os.close(1); os.close(2); time.sleep(0.2); open('end', 'w'); os._exit(4)"
    with running(program, tmp_path) as child:
        assert list(child.events()) == [{"n": 1}]
        assert child.exit_code() == 4
    assert (tmp_path / "end").exists()


def test_past_the_deadline_the_child_is_stopped_even_if_nobody_listens(tmp_path: Path) -> None:
    with running("time.sleep(600)", tmp_path, seconds=0.2) as child:
        assert eventually(lambda: child.exit_code() is not None)
        assert child.exit_code() == -signal.SIGTERM


def test_a_child_without_time_left_is_stopped_at_once(tmp_path: Path) -> None:
    with running("time.sleep(600)", tmp_path, seconds=0.0) as child:
        assert list(child.events()) == []
        assert child.exit_code() == -signal.SIGTERM


def test_a_flood_of_output_blocks_nobody_and_is_bounded(tmp_path: Path) -> None:
    log = Lines()
    program = """
line = b"x" * 100_000 + b"\\n"
for _ in range(700): os.write(1, line); os.write(2, b"y\\n")
tell(done=True)
"""
    with running(program, tmp_path, log=log, seconds=100) as child:
        assert list(child.events()) == [{"done": True}]
    assert log.count("y") == 700
    shown = [line for line in log if line.startswith("x")]
    assert all(len(line) < 8300 and line.endswith("bytes more]") for line in shown)
    # 700 cut lines of 8 KiB stay below the limit of one stream.
    assert len(shown) == 700


def test_secrets_are_masked_in_both_streams_in_every_spelling(tmp_path: Path) -> None:
    log = Lines()
    secret = 'p/w "ü"'
    program = """
s = os.environ["S"]
import urllib.parse
for out in (sys.stdout, sys.stderr):
    print("plain", s, "quoted", urllib.parse.quote(s, safe=""), "json", json.dumps({"p": s}), "repr", repr(s), file=out)
print("other", "hush-hush")
"""
    with running(
        program, tmp_path, log=log, secret_environment={"S": Secret(secret)}, masked=[Secret("hush-hush")]
    ) as child:
        list(child.events())
        assert child.exit_code() == 0
    assert len(log) == 3
    for spelling in (secret, "p%2Fw", '\\"ü', "\\u00fc", "hush"):
        assert spelling not in log.text
    assert "plain ***" in log.text


def test_no_secret_is_in_any_argument_or_in_the_guards_environment(tmp_path: Path) -> None:
    with running(
        "tell(pid=os.getppid()); time.sleep(600)", tmp_path, secret_environment={"S": Secret("hush-hush")}
    ) as child:
        guard = first(child)["pid"]
        for name in ("cmdline", "environ"):
            assert b"hush" not in Path(f"/proc/{guard}/{name}").read_bytes()


@pytest.mark.parametrize("line", ["nonsense", "[1]", '"text"', "x" * 1_100_000])
def test_after_a_malformed_event_nothing_more_is_read(tmp_path: Path, line: str) -> None:
    program = "tell(n=1)\ntry: events.write(sys.stdin.readline()); tell(n=2)\nexcept OSError: pass"
    with running(program, tmp_path, standard_input=Secret(line), seconds=5.0) as child:
        assert [event for event in child.events() if "n" in event] == [{"n": 1}]


def test_a_program_that_cannot_be_started_is_a_failure_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DponeError) as caught, running("", tmp_path, argv=["/nonexistent/python", "-c", ""]):
        pass
    assert isinstance(caught.value.failure, Failed)
    assert "/nonexistent/python" in str(caught.value)


def test_a_missing_directory_is_a_failure_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(DponeError, match="absent"), running("", tmp_path / "absent"):
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
def test_a_guard_that_is_ended_or_stopped_takes_the_child_with_it(
    tmp_path: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "PATIENCE_SECONDS", 0.5)
    with running("tell(pid=os.getpid(), guard=os.getppid()); time.sleep(600)", tmp_path) as child:
        told = first(child)
        assert isinstance(told["guard"], int)
        os.kill(told["guard"], number)
        if number is signal.SIGSTOP:
            child.stop(0.0)
        assert eventually(lambda: child.exit_code() is not None)
        assert not alive(told["pid"])


CONTROLLER = """
import json, os, sys, threading
from pathlib import Path
from tests.adapters.process.children import running
from tests.adapters.process.test_runner import FAMILY
def work():
    with running(FAMILY + "time.sleep(600)", Path(sys.argv[1])) as child:
        print(json.dumps(next(iter(child.events()))), flush=True)
        sys.stdin.read()
# Not in the main thread: a parent-death signal would come when the thread ends, and not when another one does.
threading.Thread(target=work).start()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_controller_that_dies_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    )
    assert controller.stdout is not None
    with controller:
        told = json.loads(controller.stdout.readline())
        controller.send_signal(number)
        controller.wait()
    assert eventually(lambda: not any(alive(pid) for pid in [told["own"], *told["pids"]]))


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the user needs root")
def test_another_user_gets_its_directory_and_nothing_else() -> None:
    nobody = pwd.getpwnam("nobody")
    log = Lines()
    directory = Path(tempfile.mkdtemp(dir="/tmp"))
    (directory / "inside").mkdir()
    try:
        # A shell, because the tests' interpreter may stand where only root may look.
        argv = ["/bin/sh", "-c", "touch inside/f && id -u && id -g && id -G"]
        with running("", directory, log=log, user=nobody.pw_uid, argv=argv) as child:
            list(child.events())
            assert child.exit_code() == 0
        assert log == [str(nobody.pw_uid), str(nobody.pw_gid), str(nobody.pw_gid)]
        assert (directory / "inside" / "f").stat().st_uid == nobody.pw_uid
    finally:
        shutil.rmtree(directory)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may change the user")
def test_another_user_without_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DponeError) as caught, running("", tmp_path, user=1):
        pass
    assert isinstance(caught.value.failure, Refused)


def test_no_descriptor_and_no_thread_is_left(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors(), threading.active_count()
    with running("tell(n=1)", tmp_path) as child:
        list(child.events())
    with pytest.raises(DponeError), running("", tmp_path, argv=["/nonexistent"]):
        pass
    assert (descriptors(), threading.active_count()) == before
