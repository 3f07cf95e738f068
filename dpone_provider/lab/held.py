"""A running lab as its starter sees it: the supervisor's process and the pipe that keeps it alive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpone_provider.domain.outcomes import Failed, Problem, fail, unwind
from dpone_provider.lab.interrupts import HeldBack
from dpone_provider.lab.processes import LabLock, package_path, reap, tail
from dpone_provider.lab.supervisor import DETACH, Job

SUPERVISOR = "dpone_provider.lab.supervisor"
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A supervisor that lives as long as we hold its pipe. ``engines`` is what it told of each engine, by name."""

    process: subprocess.Popen[bytes]
    engines: dict[str, dict[str, Any]]

    def detach(self) -> None:
        """Let the supervisor live on without us."""
        assert self.process.stdin is not None
        self.process.stdin.write(DETACH)
        self.process.stdin.close()


@contextmanager
def held(job: Job, lock: LabLock) -> Iterator[Held]:
    """Start a supervisor for ``job`` and end it with its engines when the block ends, unless it was detached.

    ``lock`` is the locked lab lock; it passes on to the supervisor and is released here.

    Raises:
        DponeError: an engine did not start.
    """
    log = job.places.logs / "supervisor.log"
    signals = HeldBack()
    with ExitStack() as unless_started:
        unless_started.callback(signals.release)
        try:
            process = _start(job, lock.fileno(), log)
        finally:
            lock.release()
        unless_started.pop_all()
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        signals.release()
        with process.stdout:
            # A supervisor that is gone already says so by not answering.
            with suppress(BrokenPipeError):
                process.stdin.write(job.to_line().encode())
                process.stdin.flush()
            engines = _answer(process.stdout.readline(), log)
        yield Held(process=process, engines=engines)
    finally:
        if not process.stdin.closed or process.poll() is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()
            reap(process, seconds=STOP_SECONDS)


def _start(job: Job, lock: int, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as sink:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", SUPERVISOR, str(lock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            cwd="/",
            env=dict(os.environ) | package_path(),
            pass_fds=(lock,),
            # Ctrl-C in the terminal is for the command; the engines end with its pipe.
            start_new_session=True,
        )


def _answer(line: bytes, log: Path) -> dict[str, dict[str, Any]]:
    if not line:
        unwind(
            fail(
                "lab_supervisor_ended",
                "the lab's supervisor",
                found=f"it ended before the engines were ready; its log ends: {tail(log)}",
                allowed="a supervisor that holds the engines",
                next_command=f"read {log}",
            )
        )
    answer = json.loads(line)
    if "problem" in answer:
        unwind(Failed(Problem(**answer["problem"])))
    return {engine["name"]: engine for engine in answer["engines"]}
