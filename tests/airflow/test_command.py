"""``airflow dpone …``: once as a shell meets it, the real program of this environment; and what it becomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("airflow_home")
CONFIGURED = {"CACHE_ROOT": "/nonexistent/cache", "ENVIRONMENT": "here", "AUTHORITY_CONNECTION_REF": "env:NOBODY"}
"""Options of section ``[dpone]``."""


def test_it_is_the_product_with_airflows_settings() -> None:
    """Exit code and JSON are the product's; the reference is Airflow's option, the environment's name its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DPONE_")}
    options = {f"AIRFLOW__DPONE__{name}": value for name, value in CONFIGURED.items()}
    program = [sys.executable, "-c", "from airflow.__main__ import main; main()"]
    done = subprocess.run(
        [*program, "dpone", "status", "--format", "json"],
        env=inherited | options,
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(done.stdout)
    assert (done.returncode, said["outcome"], said["reason"]) == (10, "failure", "credential_missing")
    assert said["subject"] == "credential reference env:NOBODY"


@pytest.fixture
def becomes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give what ``airflow …`` becomes: arguments and environment of the program that takes its place."""
    for name, value in CONFIGURED.items():
        monkeypatch.setenv(f"AIRFLOW__DPONE__{name}", value)
        monkeypatch.delenv(f"DPONE_{name}", raising=False)
    became: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda path, arguments, environment: became.append((arguments, environment)))

    def typed(*arguments: str) -> tuple[list[str], dict[str, str]]:
        from airflow.cli.cli_parser import get_parser

        parsed = get_parser().parse_args(arguments)
        parsed.func(parsed)
        return became[-1]

    return typed


@pytest.mark.parametrize(
    ("typed", "passed_on"),
    [
        (["status", "--format", "json"], ["status", "--format", "json"]),
        (["status", "--help"], ["status", "--help"]),
        (["cache-sync", "--plan"], ["airflow", "cache-sync", "--plan"]),
        (["attempt", "reconcile", "0a", "--as", "failed"], ["attempt", "reconcile", "0a", "--as", "failed"]),
        ([], ["--help"]),
    ],
)
def test_arguments_are_passed_on_as_they_are(becomes: Any, typed: list[str], passed_on: list[str]) -> None:
    arguments, environment = becomes("dpone", *typed)
    assert arguments == [sys.executable, "-P", "-m", "dpone_provider.cli", *passed_on]
    assert {name: environment[f"DPONE_{name}"] for name in CONFIGURED} == CONFIGURED


def test_what_the_environment_says_goes_before(becomes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPONE_ENVIRONMENT", "there")
    _, environment = becomes("dpone", "status")
    assert environment["DPONE_ENVIRONMENT"] == "there"


def test_airflow_starts_no_slower_for_it() -> None:
    """Airflow imports the module at every start, whatever was typed: it brings nothing with it."""
    program = """
import argparse, os, sys
before = set(sys.modules)
import dpone_provider.airflow.command
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    brought = {one for one in done.stdout.split() if one.partition(".")[0] not in sys.stdlib_module_names}
    assert brought == {"dpone_provider", "dpone_provider.airflow", "dpone_provider.airflow.command"}
