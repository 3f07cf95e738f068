"""Children for the tests: small programs that misbehave in one way each, and a way to run them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dpone_provider.adapters.process.runner import GuardedChild, GuardedChildren, lives
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.application.ports.time import Deadline
from tests.waiting import wait_until

PRELUDE = """
import json, os, signal, subprocess, sys, time
events = os.fdopen(int(os.environ["DPONE_EVENTS_FD"]), "w", buffering=1)
def tell(**event): events.write(json.dumps(event) + "\\n")
"""
SECONDS = 30.0


def command(program: str, directory: Path) -> ChildCommand:
    """Return the command that runs a Python program with ``tell`` defined."""
    return ChildCommand(
        argv=[sys.executable, "-I", "-S", "-c", PRELUDE + program],
        environment={},
        secret_environment={},
        standard_input=None,
        directory=directory,
    )


class Lines(list[str]):
    """A log that keeps what it is given."""

    @property
    def text(self) -> str:
        """Everything as one text."""
        return "\n".join(self)


@contextmanager
def running(
    program: str, directory: Path, *, log: Lines | None = None, seconds: float = SECONDS, **fields: object
) -> Iterator[GuardedChild]:
    """Run a program; ``fields`` replace those of its command."""
    lines = Lines() if log is None else log
    runner = GuardedChildren(lines.append)
    with runner.start(
        replace(command(program, directory), **fields),  # type: ignore[arg-type]
        Deadline.after(SystemClock(), seconds),
    ) as child:
        yield child


def eventually(holds: Callable[[], bool], seconds: float = SECONDS) -> bool:
    """Wait until ``holds()``; tell whether it came to hold within ``seconds``."""
    try:
        return wait_until(holds, what="what the test waits for", seconds=seconds, every=0.005)
    except AssertionError:
        return holds()


def alive(pid: object) -> bool:
    """Tell whether the process runs (a zombie does not)."""
    assert isinstance(pid, int)
    return lives(pid)


def first(child: GuardedChild) -> Mapping[str, object]:
    """Return the child's first event."""
    return next(iter(child.events()))
