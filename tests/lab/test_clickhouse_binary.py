"""A `clickhouse` binary on PATH is preferred, and gets its users by SQL. Seen with a stand-in, never a real one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dpone_provider import lab
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.account import engine_account
from dpone_provider.lab.clickhouse_program import find_binary
from dpone_provider.lab.clickhouse_session import ClickhouseSession
from dpone_provider.lab.clickhouse_users import (
    PROVISIONER,
    PROVISIONER_GRANTS,
)

STAND_IN = Path(__file__).parent / "stand_in" / "clickhouse.py"
INTERPRETER = Path("/usr/bin/python3")

pytestmark = pytest.mark.skipif(
    not INTERPRETER.exists(), reason=f"the stand-in runs as the engine account and needs {INTERPRETER}"
)


@pytest.fixture
def on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The stand-in as `clickhouse`, first on PATH, in a directory that the engine account reaches."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)
        program = Path(directory) / "clickhouse"
        shutil.copy(STAND_IN, program)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", os.pathsep.join((directory, os.environ["PATH"])))
        yield program


def replace_version(program: Path, version: str) -> None:
    program.write_text(program.read_text().replace("25.8.1.1", version))


@pytest.mark.lab
def test_users_are_made_by_sql_and_their_maker_is_taken_away(on_path: Path, tmp_path: Path) -> None:
    with lab.clickhouse_only(tmp_path) as state:
        assert state.clickhouse is not None
        assert (state.clickhouse.kind, state.clickhouse.version) == ("server", "25.8.1.1")
        assert state.pool() == []
        parts = urlsplit(state.url("analytics_controller").reveal())
        controller = ClickhouseSession(
            port=state.clickhouse.port, user="dpone_controller", password=Secret(parts.password or "")
        )
        assert controller.ask("SHOW USERS") == "analytics_reader\ndpone_controller"
        granted = controller.ask("SHOW GRANTS").splitlines()
        assert "GRANT CREATE USER, ALTER USER, DROP USER ON *.* TO `dpone_controller`" in granted
        assert "GRANT SELECT, INSERT ON dpone_stage.* TO `dpone_controller` WITH GRANT OPTION" in granted


def test_a_supported_binary_is_found(on_path: Path) -> None:
    found = find_binary(engine_account(), os.environ)
    assert found is not None
    assert found.path == on_path


@pytest.mark.parametrize("version", ["24.7.9.9", "23.12.1", "nonsense"])
def test_an_older_or_unknown_binary_is_passed_over(on_path: Path, version: str) -> None:
    replace_version(on_path, version)
    assert find_binary(engine_account(), os.environ) is None


def test_the_oldest_supported_binary_is_found(on_path: Path) -> None:
    replace_version(on_path, "24.8.1.1")
    assert find_binary(engine_account(), os.environ) is not None


@pytest.mark.lab
def test_a_binary_that_serves_nothing_is_told_with_its_log(on_path: Path, tmp_path: Path) -> None:
    on_path.write_text("#!/bin/sh\nif [ $1 = --version ]; then echo ClickHouse version 25.8; else echo broken; fi\n")
    with pytest.raises(DponeError, match=r"engine_did_not_start.*broken"), lab.clickhouse_only(tmp_path):
        pass
    assert (tmp_path / "logs" / "clickhouse.log").exists()


@pytest.mark.lab
def test_whoever_makes_the_users_may_do_everything(tmp_path: Path) -> None:
    """Grants are enforced by libchdb too; what it cannot show is users made by SQL."""
    secret = Secret("x")
    everything = lab.ClickhouseUser(name=PROVISIONER, password=secret, grants=PROVISIONER_GRANTS)
    with lab.clickhouse_only(tmp_path, extra=[everything]) as state:
        assert state.clickhouse is not None
        provisioner = ClickhouseSession(port=state.clickhouse.port, user=PROVISIONER, password=secret)
        assert provisioner.ask("SHOW GRANTS").startswith("GRANT ALL ON *.* TO dpone_lab_provisioner WITH GRANT OPTION")
