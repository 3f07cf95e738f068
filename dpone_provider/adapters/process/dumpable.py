"""Keeping secrets in this process's memory from other processes of the same user."""

from __future__ import annotations

import ctypes
import resource

PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4


def forbid_inspection() -> None:
    """Make this process not dumpable, and without core files (prctl(2), PR_SET_DUMPABLE).

    Other processes of this user can then neither trace it nor read its memory or environment. The price, for a process
    that is not root: its own ``/proc/self/environ``, ``/proc/self/fd`` and ``/dev/stdout`` can no longer be opened
    through /proc. Children are born the same and get their own state back when they execute a program.

    Raises:
        OSError: the kernel refused.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if _prctl(PR_SET_DUMPABLE, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


def inspection_forbidden() -> bool:
    """Tell whether this process is not dumpable now."""
    return _prctl(PR_GET_DUMPABLE, 0) != 1


def _prctl(option: int, value: int) -> int:
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0))
