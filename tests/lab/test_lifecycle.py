"""The lab goes up, is looked at, and goes down, leaving nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import psycopg
import pytest

from dpone_provider import lab
from dpone_provider.domain.outcomes import Busy, DponeError, Refused
from dpone_provider.lab.ports import is_open
from tests.lab.watching import ends

pytestmark = pytest.mark.lab


def test_up_status_up_again_down_and_up_once_more(tmp_path: Path) -> None:
    root = tmp_path / "lab"
    told: list[str] = []
    first = lab.up(root, progress=told.append)
    try:
        assert lab.read_state(root) == first == lab.up(root, progress=told.append)
        assert told[-1] == f"the lab at {root} is already up"
        assert lab.status(root).condition is lab.LabCondition.UP
        with psycopg.connect(first.url("shop_reader").reveal()) as connection:
            assert connection.execute("SELECT count(*) FROM flights").fetchone() == (336776,)
    finally:
        assert lab.down(root)
    assert_nothing_left(first)
    assert not lab.down(root)
    second = lab.up(root)
    assert lab.down(root)
    assert_nothing_left(second)


def test_a_held_lab_is_up_while_the_block_runs(tmp_path: Path) -> None:
    with lab.running(tmp_path) as state:
        assert lab.status(tmp_path).condition is lab.LabCondition.UP
        assert state.postgres is not None
        assert state.postgres.version.startswith("18.")
        assert state.clickhouse is not None
        assert state.clickhouse.version == "26.7.2.1"
        with pytest.raises(DponeError) as raised, lab.running(tmp_path):
            pass
        assert isinstance(raised.value.failure, Busy)
        assert str(state.supervisor_pid) in raised.value.failure.holder
    assert_nothing_left(state)


def test_a_failing_block_ends_the_lab_as_well(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), lab.postgres_only(tmp_path) as state:
        raise ZeroDivisionError
    ends(tmp_path)
    assert state.postgres is not None
    assert not is_open(state.postgres.port)


def test_what_lies_in_the_root_is_private_and_in_its_place(whole_lab: lab.LabState) -> None:
    root = whole_lab.root
    for path in (root, root / "credentials", root / "logs"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
    files = [root / "state.json", *(root / "credentials").iterdir()]
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert {path.name for path in files[1:]} == {
        "analytics_controller",
        "analytics_pool.json",
        "analytics_reader",
        "postgres_admin",
        "shop_reader",
        "warehouse_admin",
        "warehouse_controller",
        "warehouse_reader",
    }
    assert len(whole_lab.pool()) == len({name for name, _ in whole_lab.pool()}) == 256


def test_an_unknown_credential_is_refused_with_the_known_ones(postgres_lab: lab.LabState) -> None:
    with pytest.raises(DponeError) as raised:
        postgres_lab.credential("nobody")
    assert isinstance(raised.value.failure, Refused)
    assert "dpone_controller" in raised.value.failure.problem.allowed


def assert_nothing_left(state: lab.LabState) -> None:
    """No process, no port, no file but the root itself."""
    for engine in (state.postgres, state.clickhouse):
        assert engine is not None
        assert not is_open(engine.port)
        assert not Path(f"/proc/{engine.pid}").exists()
        assert not Path(engine.facts["data"]).parent.exists()
    assert not Path(f"/proc/{state.supervisor_pid}").exists() or is_zombie(state.supervisor_pid)
    assert os.listdir(state.root) == []


def is_zombie(pid: int) -> bool:
    """A detached supervisor that this process started is reaped when Python next starts a process."""
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()
