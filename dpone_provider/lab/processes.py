"""Engine processes: started so that they cannot outlive us, stopped within a deadline, counted by the kernel.

Whether anything of a lab lives is never read from a process number, which may have been given to somebody else: every
process of a lab holds the lab's lock file open, and the kernel drops that lock with the last of them.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Never

from dpone_provider.domain.outcomes import fail, unwind
from dpone_provider.lab.account import EngineAccount

LAUNCHER = Path(__file__).with_name("launch.py")
POLL_SECONDS = 0.01
PLAIN_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How engine processes are started: by whom, holding which lock (an open file descriptor), with which end."""

    account: EngineAccount
    lock: int
    when_parent_dies: signal.Signals

    def command(self, program: Sequence[str]) -> list[str]:
        """Return the command that becomes ``program``. No part of it may be a secret: others can read it."""
        numbers = (os.getpid(), self.account.uid, self.account.gid, int(self.when_parent_dies))
        return [sys.executable, "-I", "-S", str(LAUNCHER), *map(str, numbers), "--", *program]

    def start(
        self, program: Sequence[str], *, log: Path, environment: Mapping[str, str] = PLAIN_ENVIRONMENT
    ) -> subprocess.Popen[bytes]:
        """Start ``program`` with its output appended to ``log``. Call it from the main thread: the kernel ties the
        child to the calling thread, not to the process (prctl(2))."""
        with log.open("ab") as sink:
            return subprocess.Popen(
                self.command(program),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd="/",
                env=dict(environment),
                pass_fds=(self.lock,),
                start_new_session=True,
            )


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], *, seconds: float) -> bool:
    """Return True once ``ready()`` holds, False if ``process`` ends first or ``seconds`` pass."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if ready():
            return True
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_SECONDS)
            return False
    return False


def end(process: subprocess.Popen[bytes], *, asking: signal.Signals, seconds: float) -> None:
    """Ask ``process`` to end, and kill it when it has not after ``seconds``."""
    if process.poll() is None:
        process.send_signal(asking)
    reap(process, seconds=seconds)


def reap(process: subprocess.Popen[bytes], *, seconds: float) -> None:
    """Wait for a process that was asked to end, and kill it when it has not after ``seconds``."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(log: Path, lines: int = 5) -> str:
    """Return the last lines of a log as one line, for a message."""
    if not log.exists():
        return "(no log)"
    return " | ".join(log.read_text(errors="replace").splitlines()[-lines:]) or "(empty log)"


def engine_failed(engine: str, log: Path, what: str) -> Never:
    """Unwind with the failure of ``engine``, telling the end of its log."""
    unwind(
        fail(
            "engine_did_not_start",
            engine,
            found=f"{what}; its log ends: {tail(log)}",
            allowed="a server that answers",
            next_command=f"read {log}",
        )
    )


def try_lock(descriptor: int) -> bool:
    """Return whether the exclusive lock on an open lock file is ours now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def open_lock(path: Path) -> Iterator[int]:
    """Open (and make, mode 0600) a lock file without locking it; close it at the end."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def holders(lock: Path) -> list[int]:
    """Return the ids of the other processes that have ``lock`` open, as far as we may look (Linux, /proc)."""
    try:
        wanted = lock.stat()
    except FileNotFoundError:
        return []
    return [pid for pid in _processes() if pid != os.getpid() and _has_open(pid, wanted)]


def _processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdecimal():
            yield int(name)


def _has_open(pid: int, wanted: os.stat_result) -> bool:
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.path.samestat(entry.stat(), wanted):
                    return True
    return False
