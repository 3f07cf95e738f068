"""One writer at a time: an exclusive flock that dies with its process, waited for within bounds."""

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
def writer_lock(file: Path, seconds: float) -> Iterator[None]:
    """Hold the lock within the block. Readers never take it.

    The file's content is the holder's process id, for a message only; the kernel's lock is what counts.

    Raises:
        DponeError: Busy ``cache_locked``, naming the holder, after ``seconds``.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _wait(descriptor, file, seconds)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, file: Path, seconds: float) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise _busy(descriptor, file, seconds) from None
            time.sleep(_POLL_SECONDS)
        else:
            return


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
