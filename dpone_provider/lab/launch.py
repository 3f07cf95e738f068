"""Start one engine process so that it cannot outlive its parent, then become it.

Run by path, not as a module: ``python -I launch.py PARENT_PID UID GID SIGNAL -- PROGRAM ARG…``. Standard library only,
because it runs before anything of ours can be imported by the engine's account. The order matters: the kernel clears
the parent-death signal when the user changes, so the signal is asked for after that; and a parent that died before it
was asked for would never send it, so the parent is looked at once more afterwards (prctl(2)).
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def become(uid: int, gid: int) -> None:
    """Drop to ``uid`` and ``gid`` with no supplementary groups; nothing to do when they are ours."""
    if os.geteuid() == uid:
        return
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def die_with(parent: int, signal_number: int) -> None:
    """Have the kernel send ``signal_number`` to this process when ``parent`` dies; exit now if it already has."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        sys.exit(1)


def main(argv: list[str]) -> None:
    """Read the four numbers and the command after ``--``, and become the command."""
    parent, uid, gid, signal_number = (int(word) for word in argv[1:5])
    command = argv[6:]
    become(uid, gid)
    die_with(parent, signal_number)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv)
