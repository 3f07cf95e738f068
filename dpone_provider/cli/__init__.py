"""The command line: parse, call one use case, render as text or JSON.

Commands are imported when they are called: ``dpone --help`` imports click and nothing heavier.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

NOT_WRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What writing to standard output comes to on a full disk, or a broken one."""


def main() -> None:
    """Run ``dpone``; the console script's entry."""
    from dpone_provider.cli.root import dpone

    try:
        os.getcwd()
    except FileNotFoundError:
        _end("the working directory is gone; change into another one and run the command again", 2)
    try:
        dpone(prog_name="dpone")
    except OSError as error:
        if error.filename is not None or error.errno not in NOT_WRITABLE:
            raise
        # Nothing is left to be flushed at the end of the process, where the same error would come again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _end(f"what it came to could not be written ({error.strerror}); look with dpone status", 1)


def _end(message: str, code: int) -> None:
    sys.stderr.write(f"dpone: {message}\n")
    raise SystemExit(code)
