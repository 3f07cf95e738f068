"""The lab's Airflow gets nothing of the caller's, and keeps its password to its owner."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from dpone_provider.lab.airflow_home import USER, AirflowHome


def test_only_the_owner_may_read_the_password(tmp_path: Path) -> None:
    home = AirflowHome(tmp_path / "airflow")
    password = home.make()
    assert json.loads(home.passwords.read_text()) == {USER: password.reveal()}
    assert stat.S_IMODE(home.passwords.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert home.make().reveal() != password.reveal()


def test_the_environment_is_built_from_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "the caller's")
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("SOMETHING", "else")
    home = AirflowHome(tmp_path)
    password = home.make()
    variables = home.variables(8080, {"DPONE_ENVIRONMENT": "synthetic"})
    assert "the caller's" not in variables.values()
    assert "SOMETHING" not in variables
    assert variables["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert variables["DPONE_ENVIRONMENT"] == "synthetic"
    assert variables["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8080/execution/"
    assert not [value for value in variables.values() if password.reveal() in value]


def test_a_database_is_made_once_for_each_airflow(tmp_path: Path) -> None:
    home = AirflowHome(tmp_path)
    assert not home.is_migrated()
    home.set_migrated()
    assert home.is_migrated()
    home.migrated.write_text("3.0.0")
    assert not home.is_migrated()


def test_what_is_preloaded_compiles_and_is_the_schedulers(tmp_path: Path) -> None:
    home = AirflowHome(tmp_path)
    home.make()
    text = (home.root / "config" / "airflow_local_settings.py").read_text()
    compile(text, "airflow_local_settings.py", "exec")
    assert 'if "scheduler" in sys.argv' in text


def test_nothing_is_left_of_a_home_that_is_discarded(tmp_path: Path) -> None:
    home = AirflowHome(tmp_path / "airflow")
    home.make()
    home.discard()
    assert not home.root.exists()
