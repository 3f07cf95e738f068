"""Where the demo works: made anew in each run, whoever runs it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone_provider.lab.demo.path import begin_anew

NOBODY = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """Give a directory of an ordinary user's."""
    directory = Path(tempfile.mkdtemp(prefix="dpone-demo-place-"))
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    yield directory
    for parent, _, _ in os.walk(directory):
        os.chmod(parent, 0o700)
    shutil.rmtree(directory)


def as_ordinary_user(work: Path) -> int:
    """Leave behind what a promotion leaves, and begin anew, twice; return the exit code of the process that did."""
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            for _ in range(2):
                begin_anew(work)
                deployment = work / "cache" / "deployments" / "lab" / "0f4e"
                deployment.mkdir(parents=True)
                (deployment / "release.json").write_text("{}")
                deployment.chmod(0o555)
            begin_anew(work)
            os._exit(0 if not any(work.iterdir()) else 2)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_run_follows_another_also_where_nobody_is_root(place: Path) -> None:
    assert as_ordinary_user(place / "demo") == 0
