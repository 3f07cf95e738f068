"""What a shell may give instead of what was meant: each is told by exit code and message, never by a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dpone_provider.cli.root import dpone

ID = "sha256:" + "0" * 64


def told(tmp_path: Path, *arguments: str) -> Result:
    """Run a command whose authority cannot be reached, so that nothing but its input can be refused."""
    variables = {
        "DPONE_CACHE_ROOT": str(tmp_path / "cache"),
        "DPONE_ENVIRONMENT": "here",
        "DPONE_AUTHORITY_CONNECTION_REF": "env:AUTHORITY",
        "AUTHORITY": "postgresql://u:p@127.0.0.1:1/d",
    }
    return CliRunner().invoke(dpone, arguments, env=variables, catch_exceptions=False)


def refused(done: Result) -> str:
    """Return the reason of a refusal that changed nothing."""
    said = json.loads(done.stdout)
    assert (done.exit_code, said["class"], said["state_change"]) == (10, "refused", "nothing changed"), said
    return str(said["reason"])


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


def sync(tmp_path: Path, deployment: str, *more: str) -> Result:
    order = ("--deployment", deployment, "--format", "json")
    return told(tmp_path, "airflow", "cache-sync", *order, *(more or ("--deployment-id", ID)))


def test_a_pipe_in_place_of_a_deployment_is_not_waited_for(tmp_path: Path, pipe: str) -> None:
    assert refused(sync(tmp_path, pipe)) == "not_a_regular_file"


def test_a_device_in_place_of_a_deployment_is_not_read(tmp_path: Path) -> None:
    assert refused(sync(tmp_path, "/dev/zero")) == "not_a_regular_file"


@pytest.mark.parametrize("what", ["a pipe", "a device", "huge", "no text"])
def test_something_in_place_of_a_desired_state(tmp_path: Path, pipe: str, what: str) -> None:
    file = tmp_path / "desired"
    file.write_bytes(b"a" * 1_000_000 if what == "huge" else b"\xff\xfe")
    desired = {"a pipe": pipe, "a device": "/dev/zero"}.get(what, str(file))
    reasons = {"huge": "document_too_large", "no text": "not_utf8"}
    assert refused(sync(tmp_path, str(tmp_path), "--desired", desired)) == reasons.get(what, "not_a_regular_file")


def test_a_pipe_in_place_of_a_workspace_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "workspace.yaml")
    out = str(tmp_path / "out")
    done = told(tmp_path, "compile", str(tmp_path), "--environment", "here", "--out", out, "--format", "json")
    assert refused(done) == "not_a_regular_file"


@pytest.mark.parametrize("name", ["../../x", "\udcff", "a\x00b", "x" * 5000, "*"])
@pytest.mark.parametrize("command", [("status",), ("occurrence", "list"), ("recover",)])
def test_a_name_that_no_environment_can_have(tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    assert refused(told(tmp_path, *command, "--environment", name, "--format", "json")) == "setting_invalid"


@pytest.mark.parametrize("occurrence", ["not-a-uuid", "\udcff", "a\x00b", ""])
@pytest.mark.parametrize("command", ["withdraw", "abandon", "retire"])
def test_an_occurrence_that_is_no_uuid_is_wrong_usage(tmp_path: Path, command: str, occurrence: str) -> None:
    done = told(tmp_path, "occurrence", command, occurrence)
    assert done.exit_code == 2
    assert "not a valid UUID" in done.stderr


@pytest.mark.parametrize("seconds", ["nan", "-1", "soon", "-inf"])
def test_a_time_out_that_is_no_time(tmp_path: Path, seconds: str) -> None:
    some = "00000000-0000-0000-0000-000000000000"
    for command in (("occurrence", "retire", some), ("airflow", "cache-sync", "--deployment", str(tmp_path))):
        done = told(tmp_path, *command, "--drain-timeout", seconds)
        assert done.exit_code == 2
        assert "--drain-timeout" in done.stderr


@pytest.mark.parametrize("earlier", ["-1", "1001", "some", "nan", ""])
def test_a_number_of_deployments_that_is_none(tmp_path: Path, earlier: str) -> None:
    done = told(tmp_path, "airflow", "cache-collect", "--earlier", earlier)
    assert done.exit_code == 2
    assert "--earlier" in done.stderr


@pytest.mark.parametrize("name", ["../../x", "\udcff", "a\x00b", "x" * 5000, "*"])
def test_no_cache_is_collected_for_a_name_that_no_environment_can_have(tmp_path: Path, name: str) -> None:
    done = told(tmp_path, "airflow", "cache-collect", "--environment", name, "--format", "json")
    assert refused(done) == "setting_invalid"


@pytest.mark.parametrize("more", [(), ("--plan",)])
def test_nothing_is_collected_while_the_authority_does_not_answer(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Nor is a cache made that was not there."""
    done = told(tmp_path, "airflow", "cache-collect", "--format", "json", *more)
    said = json.loads(done.stdout)
    assert (done.exit_code, said["reason"], said["state_change"]) == (12, "authority_unreachable", "nothing changed")
    assert not (tmp_path / "cache").exists()


def program(*arguments: str, cwd: Path, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """Run the program itself."""
    command = [sys.executable, "-m", "dpone_provider.cli", *arguments]
    settings = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=cwd, env=settings, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.parametrize("arguments", [("--help",), ("lab", "status")])
def test_a_full_disk_behind_the_output(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = program(*arguments, cwd=tmp_path, stdout=full.fileno())
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("dpone: what it came to could not be written (No space left")
    assert "Traceback" not in done.stderr


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    code = "import os; os.rmdir(os.getcwd()); from dpone_provider.cli import main; main()"
    settings = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here, env=settings, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dpone: the working directory is gone; change into another one and run the command again\n"


def test_a_demo_where_nothing_can_be_written() -> None:
    """/proc is such a place for root, too."""
    done = CliRunner().invoke(dpone, ["demo", "--root", "/proc/nowhere"], catch_exceptions=False)
    assert done.exit_code == 1
    assert "lab_directory_unusable" in done.output
