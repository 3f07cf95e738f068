"""What the lab's tests look at from outside: conditions with a deadline, processes, a lab in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dpone_provider.lab.processes import package_path, take_lock

POLL_SECONDS = 0.02


def until(condition: Callable[[], bool], what: str, *, seconds: float = 20.0) -> None:
    """Return once `condition()` holds; fail the test when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(POLL_SECONDS)


def ends(root: Path) -> None:
    """Wait until no process of the lab at `root` lives."""
    until(lambda: is_free(root / "lab.lock"), f"every process of the lab at {root} has ended")


def is_free(lock_file: Path) -> bool:
    """Return whether nobody holds the lock."""
    lock = take_lock(lock_file, seconds=0)
    if lock is None:
        return False
    lock.release()
    return True


@contextmanager
def script(code: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run Python code in a process of its own, with pipes; kill it at the end if it still lives."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ) | package_path() | dict(environment or {}),
    )
    try:
        with process:
            yield process
            process.kill()
    finally:
        process.kill()


def read_line(process: subprocess.Popen[str]) -> str:
    """Return the next line that the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()
