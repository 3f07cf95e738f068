"""What a directory tells about the lab in it, and the ways out of every state."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dpone_provider import lab
from dpone_provider.domain.outcomes import DponeError, Refused
from dpone_provider.lab.processes import take_lock
from tests.lab.watching import ends


def test_no_directory_is_a_lab_that_is_down_and_stays_unmade(tmp_path: Path) -> None:
    root = tmp_path / "none"
    assert lab.status(root).condition is lab.LabCondition.DOWN
    assert not lab.down(root)
    assert not root.exists()


def test_reading_the_state_of_no_lab_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DponeError, match="dpone lab up") as raised:
        lab.read_state(tmp_path)
    assert isinstance(raised.value.failure, Refused)


def test_a_held_lock_without_a_state_is_a_lab_that_starts_or_ends(tmp_path: Path) -> None:
    lock = take_lock(tmp_path / "lab.lock", seconds=0)
    assert lock is not None
    try:
        assert lab.status(tmp_path).condition is lab.LabCondition.STARTING
    finally:
        lock.release()
    assert lab.status(tmp_path).condition is lab.LabCondition.DOWN


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DponeError, match="lab_directory_unusable"), lab.postgres_only(tmp_path / "file"):
        pass


@pytest.mark.lab
def test_a_dead_lab_is_told_and_cleaned_up(tmp_path: Path) -> None:
    with lab.postgres_only(tmp_path) as state:
        os.kill(state.supervisor_pid, signal.SIGKILL)
        ends(tmp_path)
        assert lab.status(tmp_path).condition is lab.LabCondition.DEAD
        assert lab.down(tmp_path)
        assert os.listdir(tmp_path) == []


@pytest.mark.lab
def test_down_ends_a_lab_whose_state_is_unreadable_and_whose_supervisor_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpone_provider.lab.condition.END_SECONDS", 0.2)
    with lab.postgres_only(tmp_path) as state:
        (tmp_path / "state.json").write_text('{"schema": "another"}')
        with pytest.raises(DponeError, match="lab_state_unreadable"):
            lab.status(tmp_path)
        os.kill(state.supervisor_pid, signal.SIGSTOP)
        assert lab.down(tmp_path)
        assert os.listdir(tmp_path) == []
