"""What ``dpone lab up`` says to do next can be pasted into a shell, wherever the lab is."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from dpone_provider.cli import lab


def test_the_next_command_is_one_word_wherever_the_lab_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Found: under a directory with a space in its name the line exported half a path."""
    reference = f"file:{tmp_path}/a place/authority"
    monkeypatch.setattr("dpone_provider.lab.up", lambda root, **given: None)
    monkeypatch.setattr(lab, "_text", lambda state: "")
    monkeypatch.setattr(lab, "_json", lambda state: {})
    enrolled = SimpleNamespace(environment_file=tmp_path / "environment.yaml", authority_ref=reference)
    monkeypatch.setattr("dpone_provider.lab.enrolment.enrol_once", lambda state, progress: enrolled)
    done = CliRunner().invoke(lab.lab, ["up", "--root", str(tmp_path)], env={"DPONE_TEST_MSSQL_URL": ""})
    assert done.exit_code == 0, done.output
    (line,) = [each for each in done.output.splitlines() if each.startswith("next: ")]
    assert shlex.split(line) == ["next:", "export", f"DPONE_AUTHORITY_CONNECTION_REF={reference}"]
