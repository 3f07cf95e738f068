"""One writer at a time, and no promotion during a collection: flocks that die with their process."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dpone_provider.domain.outcomes import DponeError, busy

_POLL_SECONDS: Final = 0.02
_MAX_HOLDER: Final = 100


@contextmanager
def promoting_lock(file: Path, seconds: float, *, alone: bool) -> Iterator[None]:
    """Hold the lock within the block: with any number of others, or ``alone``.

    Raises:
        DponeError: Busy ``cache_in_use`` after ``seconds``.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _locked_within(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, seconds):
            raise DponeError(
                busy(
                    "cache_in_use",
                    str(file.parent),
                    holder="a promotion" if alone else "a collection",
                    allowed=f"no promotion while old deployments are removed; waited {seconds:g} s",
                    next_command="wait for it to end, then run the same command again",
                )
            )
        yield
    finally:
        os.close(descriptor)


@contextmanager
def writer_lock(file: Path, seconds: float) -> Iterator[None]:
    """Hold the lock within the block. Readers never take it.

    The file's content is the holder's process id, for a message only; the kernel's lock is what counts.

    Raises:
        DponeError: Busy ``cache_locked``, naming the holder, after ``seconds``.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _locked_within(descriptor, fcntl.LOCK_EX, seconds):
            raise _busy(descriptor, file, seconds)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _locked_within(descriptor: int, kind: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True


def _busy(descriptor: int, file: Path, seconds: float) -> DponeError:
    holder = os.pread(descriptor, _MAX_HOLDER, 0).decode(errors="replace") or "a process that has just begun"
    return DponeError(
        busy(
            "cache_locked",
            str(file),
            holder=holder,
            allowed=f"one writer at a time; waited {seconds:g} s",
            next_command="wait for that process to end, then run the same command again",
        )
    )
