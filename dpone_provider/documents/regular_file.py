"""Opening a file that somebody named. A pipe in its place would be waited for, a device read, without end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from dpone_provider.domain.outcomes import DponeError, Refused, refuse


def open_regular(file: Path) -> BinaryIO:
    """Return the open file; links are followed.

    Raises:
        DponeError: Refused: it is no regular file.
        OSError: it is not there, or may not be read.
    """
    # Not blocking: opening a pipe that nobody writes to would wait for a writer.
    opened = os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        return opened
    opened.close()
    found, allowed = "a directory, device, pipe or socket", "a regular file"
    refused = refuse("not_a_regular_file", str(file), found=found, allowed=allowed, next_command="name another file")
    raise DponeError(refused)


def read_bounded(file: Path, limit: int, next_command: str) -> bytes | Refused:
    """Return the content of a file of at most ``limit`` bytes. Refused: it cannot be read, or is larger."""
    try:
        with open_regular(file) as opened:
            data = opened.read(limit + 1)
    except DponeError as error:
        if isinstance(error.failure, Refused):
            return error.failure
        raise
    except OSError as error:
        found = error.strerror or type(error).__name__
        return refuse(
            "path_unreadable", str(file), found=found, allowed="a readable file", next_command="check the path"
        )
    if len(data) > limit:
        allowed = f"at most {limit} bytes"
        return refuse("document_too_large", str(file), found="more", allowed=allowed, next_command=next_command)
    return data
