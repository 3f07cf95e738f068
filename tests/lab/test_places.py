"""Where the lab keeps its files, and what it leaves alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dpone_provider.domain.outcomes import DponeError
from dpone_provider.lab import places as places_module
from dpone_provider.lab.account import EngineAccount
from dpone_provider.lab.places import Places, discard, discard_logs, places_for, prepare

OURSELVES = EngineAccount(name="ourselves", uid=os.geteuid() or 65534, gid=os.getegid() or 65534, switched=False)
UNREACHING = EngineAccount(name="nobody", uid=65534, gid=65534, switched=True)


def test_what_the_account_reaches_lies_under_the_root(tmp_path: Path) -> None:
    places = places_for(tmp_path / "a" / ".." / "lab", OURSELVES)
    assert places == Places(tmp_path / "lab", tmp_path / "lab" / "engines")


def test_relative_places_cannot_be_built(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not absolute"):
        Places(Path("lab"), tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
def test_a_closed_root_has_its_engines_outside_always_at_the_same_place(tmp_path: Path) -> None:
    first, second = places_for(tmp_path / "lab", UNREACHING), places_for(tmp_path / "lab", UNREACHING)
    other = places_for(tmp_path / "other", UNREACHING)
    assert first == second
    assert first.engines.parent == Path("/var/tmp")
    assert other.engines != first.engines


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
def test_no_place_for_the_engines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places_module, "OUTSIDE", (tmp_path,))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(DponeError, match="no_place_for_engines"):
        places_for(tmp_path / "lab", UNREACHING)


def test_a_place_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / "engines").symlink_to(tmp_path / "precious")
    with pytest.raises(DponeError, match="foreign_directory"):
        prepare(Places(tmp_path, tmp_path / "engines"), OURSELVES)
    assert (tmp_path / "precious" / "file").exists()


def test_discarding_keeps_logs_and_what_somebody_else_put_there(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path / "engines")
    prepare(places, OURSELVES)
    (tmp_path / "notes.txt").touch()
    (places.logs / "postgres.log").touch()
    places.state.touch()
    places.environment.touch()
    discard(places, OURSELVES)
    assert sorted(os.listdir(tmp_path)) == ["logs", "notes.txt"]
    discard_logs(places)
    assert os.listdir(tmp_path) == ["notes.txt"]
