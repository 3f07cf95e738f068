"""Children that another thread stops, all at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.process.stoppable import StoppableChildren
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.process import ChildRunner
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import DponeError, Failed
from tests.adapters.process.children import Lines, alive, command, eventually

DEAF = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
tell(pid=os.getpid())
while True: time.sleep(60)
"""


def started(children: ChildRunner, directory: Path, seen: list[int], ended: list[int | None]) -> None:
    """Run a child that ignores SIGTERM until somebody else stops it."""
    with children.start(command(DEAF, directory), Deadline.after(SystemClock(), 60.0)) as child:
        for event in child.events():
            seen.append(int(str(event["pid"])))
        ended.append(child.exit_code())


def test_every_child_ends_at_once_and_its_own_thread_goes_on(tmp_path: Path) -> None:
    children = StoppableChildren(GuardedChildren(Lines().append))
    seen: list[int] = []
    ended: list[int | None] = []
    threads = [threading.Thread(target=started, args=(children, tmp_path, seen, ended)) for _ in range(2)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(seen) == 2)
    began = time.monotonic()
    children.stop(0.0)
    for thread in threads:
        thread.join(10.0)
    assert time.monotonic() - began < 2.0
    assert ended == [-9, -9]
    assert not any(alive(pid) for pid in seen)


def test_nothing_is_started_any_more(tmp_path: Path) -> None:
    children = StoppableChildren(GuardedChildren(Lines().append))
    children.stop(0.0)
    with (
        pytest.raises(DponeError) as refused,
        children.start(command("tell(n=1)", tmp_path), Deadline.after(SystemClock(), 60.0)),
    ):
        pass
    assert isinstance(refused.value.failure, Failed)
    assert refused.value.failure.problem.reason == "child_not_wanted"


def test_one_that_is_not_stopped_is_as_any_other(tmp_path: Path) -> None:
    children: ChildRunner = StoppableChildren(GuardedChildren(Lines().append))
    with children.start(command("tell(n=1)", tmp_path), Deadline.after(SystemClock(), 60.0)) as child:
        assert list(child.events()) == [{"n": 1}]
        assert child.exit_code() == 0
