"""What the lab's tests look at from outside: conditions with a deadline, processes, a lab in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dpone_provider.lab.processes import package_path, take_lock
from tests.waiting import wait_until


def ends(root: Path) -> None:
    """Wait until no process of the lab at `root` lives."""
    wait_until(lambda: is_free(root / "lab.lock"), what=f"the end of every process of the lab at {root}")


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
