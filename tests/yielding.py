"""Run a program behind all others: it gets what they leave of the processors, and what it took is kept in a file.

    python -m tests.yielding FIGURE PROGRAM [ARGUMENT …]

FIGURE is written once the program has ended: its processor seconds, those of all its descendants included. The exit
code is the program's, 128 and the number of the signal if one ended it.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.suites import python

LEAST = 19
"""The nice value that asks for least."""


def argv(figure: Path, program: Sequence[str]) -> tuple[str, ...]:
    """The command line that runs `program` behind all others."""
    return (*python("tests.yielding", str(figure)), *program)


def processor_seconds(figure: Path) -> float:
    """What the program took; 0 if it was ended before it could be told."""
    return float(figure.read_text(encoding="utf-8")) if figure.exists() else 0.0


def yield_to_all() -> None:
    """Ask for least, among the processes of this session and, where the kernel shares out by session, among those."""
    os.nice(LEAST)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(LEAST), encoding="ascii")


def main(figure: str, *program: str) -> int:
    """Run the program to its end and return its exit code."""
    yield_to_all()
    # An interrupt is meant for the program, which gets it as well, and has engines to take down.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    code = subprocess.run(program, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(figure).write_text(f"{used.ru_utime + used.ru_stime:.2f}", encoding="utf-8")
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
