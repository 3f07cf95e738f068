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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Never

import dpone_provider
from dpone_provider.domain.outcomes import fail, unwind
from dpone_provider.lab.account import EngineAccount

LAUNCHER = Path(__file__).with_name("launch.py")
POLL_SECONDS = 0.01
PLAIN_ENVIRONMENT: dict[str, str] = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def package_path() -> dict[str, str]:
    """Return the environment in which a child imports this very package, wherever we imported it from."""
    where = str(Path(dpone_provider.__file__).resolve().parents[1])
    return {"PYTHONPATH": os.pathsep.join(filter(None, (where, os.environ.get("PYTHONPATH"))))}


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


class LabLock:
    """The exclusive lock of a lab, as an open file. Whoever inherits the file keeps the lock when we release ours."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        """Own an open and locked ``descriptor``."""
        self._descriptor: int | None = descriptor

    def fileno(self) -> int:
        """Return the descriptor.

        Raises:
            ValueError: it was released.
        """
        if self._descriptor is None:
            raise ValueError("the lock was released")
        return self._descriptor

    def release(self) -> None:
        """Close our file; nothing to do the second time."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def take_lock(path: Path, *, seconds: float) -> LabLock | None:
    """Take the lock of a lock file (made with mode 0600) within ``seconds``; None when others keep it.

    A lock file that its last owner removed meanwhile is made anew.
    """
    deadline = time.monotonic() + seconds
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _locked(descriptor) and _still_at(path, descriptor):
            return LabLock(descriptor)
        os.close(descriptor)
        if time.monotonic() >= deadline:
            return None
        time.sleep(POLL_SECONDS)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _still_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def holders(lock: Path) -> list[int]:
    """Return the ids of the other processes that have ``lock`` open, as far as we may look (Linux, /proc)."""
    try:
        wanted = lock.stat()
    except FileNotFoundError:
        return []
    return [pid for pid in _processes() if pid != os.getpid() and _has_open(pid, wanted)]


def runs_module(pid: int, module: str) -> bool:
    """Return whether the process ``pid`` was started as ``python -m module``."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return module.encode() in words


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
