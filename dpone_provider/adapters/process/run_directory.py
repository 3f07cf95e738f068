"""The directory of one attempt. It goes with the attempt; what a killed process left behind goes with the next one.

Who uses a directory holds a lock (flock(2)) on it, which ends with its process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "dpone-attempt-"


@contextmanager
def run_directory() -> Iterator[Path]:
    """Give an empty directory that nobody else can read, below TMPDIR; remove it at the end, with all that is in it."""
    collect_abandoned()
    directory, lock = _locked_directory()
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(lock)


def collect_abandoned() -> int:
    """Remove the directories whose processes are gone; return how many. What cannot be removed is left alone."""
    removed = 0
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = _lock(directory)
        if lock is not None:
            shutil.rmtree(directory, ignore_errors=True)
            os.close(lock)
            removed += not directory.exists()
    return removed


def _locked_directory() -> tuple[Path, int]:
    while True:
        directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = _lock(directory)
        # Before it was locked it may have been taken for abandoned.
        if lock is not None and directory.is_dir():
            return directory, lock
        if lock is not None:
            os.close(lock)


def _lock(directory: Path) -> int | None:
    """Return the descriptor that holds a directory's lock; None where somebody else does, or where it is not ours."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor
    return None
