"""`.ci/env`: what it says when something is missing, and that it does nothing when nothing has changed."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ORDINARY_TOOLS = ("cat", "cksum", "dirname", "grep", "mkdir", "rm", "sh", "tr", "uname")
INPUTS = (".ci/env", "pyproject.toml", "constraints.txt", "constraints-dbt.txt")
CHDB_VERSION = "26.7.3-stable.1"


@dataclass(frozen=True, slots=True)
class Machine:
    """A checkout in a directory whose name has a space, and a PATH that holds the ordinary tools and what is added."""

    checkout: Path
    path: Path

    def program(self, name: str, script: str) -> None:
        """Put a shell script on PATH."""
        program = self.path / name
        program.unlink(missing_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)

    def made(self, environment: str, *inputs: str) -> None:
        """Make an environment look like one that was made from these inputs, here."""
        text = b"".join((self.checkout / name).read_bytes() for name in inputs)
        printed = subprocess.run(["cksum"], input=text, capture_output=True, check=True).stdout.decode()
        folder = self.checkout / environment
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").symlink_to(shutil.which("true") or "")
        (folder / ".stamp").write_text(f"{self.checkout} {printed.strip().replace(' ', '-')}", encoding="utf-8")

    def both_pythons_made(self) -> None:
        """Make both Python environments look current."""
        self.made(".venv", ".ci/env", "pyproject.toml", "constraints.txt")
        self.made(".venv-dbt", ".ci/env", "constraints-dbt.txt")

    def env(self) -> subprocess.CompletedProcess[str]:
        """Run the script."""
        return subprocess.run(
            ["sh", ".ci/env"],
            cwd=self.checkout,
            env={"PATH": str(self.path), "HOME": str(self.path)},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    checkout = tmp_path / "a checkout"
    for name in INPUTS:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, checkout / name)
    path = tmp_path / "bin"
    path.mkdir()
    for tool in ORDINARY_TOOLS:
        (path / tool).symlink_to(shutil.which(tool) or "")
    made = Machine(checkout, path)
    made.program("uname", '[ "$1" = -s ] && echo Linux || echo x86_64')
    return made


def test_nothing_is_done_when_nothing_has_changed(machine: Machine) -> None:
    machine.both_pythons_made()
    (machine.checkout / "node_modules").mkdir()
    (machine.checkout / "node_modules" / ".stamp").write_text(CHDB_VERSION, encoding="utf-8")
    run = machine.env()
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("changed", INPUTS)
def test_a_changed_input_is_noticed(changed: str, machine: Machine) -> None:
    machine.both_pythons_made()
    with (machine.checkout / changed).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert machine.env().returncode != 0


def test_an_old_python_is_named_with_the_way_out(machine: Machine) -> None:
    machine.program("python3", 'case "$2" in *exit*) exit 1;; *print*) echo 3.9.18;; esac')
    run = machine.env()
    assert run.returncode == 1
    assert "no suitable Python: 3.11 or newer" in run.stderr
    assert f"found {machine.path}/python3: 3.9.18\n" in run.stderr
    assert "make env PYTHON=/path/to/python3.11" in run.stderr


def test_a_python_without_its_venv_module_is_named(machine: Machine) -> None:
    machine.program("python3.11", 'case "$2" in *print*) echo 3.11.2;; *) exit 1;; esac')
    run = machine.env()
    assert run.returncode == 1
    assert "python3.11: 3.11.2, without venv or ensurepip" in run.stderr


def test_without_npm_the_way_out_is_told(machine: Machine) -> None:
    machine.both_pythons_made()
    run = machine.env()
    assert run.returncode == 1
    assert "npm is not on PATH; install Node.js with npm, or put a clickhouse binary" in run.stderr


def test_another_platform_is_told(machine: Machine) -> None:
    machine.both_pythons_made()
    machine.program("npm", "exit 1")
    machine.program("uname", '[ "$1" = -s ] && echo Linux || echo aarch64')
    run = machine.env()
    assert run.returncode == 1
    assert "this is Linux-aarch64; put a clickhouse binary (24.8 or newer) on PATH" in run.stderr


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_a_clickhouse_binary_is_taken_instead(architecture: str, machine: Machine) -> None:
    machine.both_pythons_made()
    machine.program("clickhouse", "exit 1")
    machine.program("uname", f'[ "$1" = -s ] && echo Linux || echo {architecture}')
    run = machine.env()
    assert (run.returncode, run.stderr) == (0, "")
