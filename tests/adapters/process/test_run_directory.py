"""Directories of attempts: gone at the end, whoever ended it."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpone_provider.adapters.process.run_directory import collect_abandoned, run_directory

HOLD = """
import sys
from dpone_provider.adapters.process.run_directory import run_directory
with run_directory() as directory:
    (directory / "profiles").mkdir()
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@contextmanager
def elsewhere() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Have another process hold a directory."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        yield holder, Path(holder.stdout.readline().strip())
    finally:
        holder.kill()
        holder.communicate()


def test_it_is_private_and_goes_with_the_block(temporary: Path) -> None:
    with run_directory() as directory:
        (directory / "target").mkdir()
        assert directory.parent == temporary
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert list(temporary.iterdir()) == []


def test_it_goes_when_the_block_fails(temporary: Path) -> None:
    with pytest.raises(ZeroDivisionError), run_directory():
        1 / 0  # noqa: B018
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_attempt(temporary: Path) -> None:
    with elsewhere() as (holder, left):
        holder.kill()
        holder.wait()
        assert (left / "profiles").is_dir()
        with run_directory() as directory:
            assert list(temporary.iterdir()) == [directory]


def test_what_a_living_process_uses_is_left_alone() -> None:
    with elsewhere() as (_, used), run_directory() as directory:
        assert collect_abandoned() == 0
        assert (used / "profiles").is_dir()
        assert directory.is_dir()


def test_only_directories_of_that_name_are_looked_at(temporary: Path) -> None:
    (temporary / "dpone-other").mkdir()
    (temporary / "elsewhere").mkdir()
    (temporary / "dpone-attempt-link").symlink_to(temporary / "elsewhere")
    (temporary / "dpone-attempt-file").touch()
    assert collect_abandoned() == 0
    assert len(list(temporary.iterdir())) == 4
