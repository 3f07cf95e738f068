"""What the README claims, as far as the project can tell."""

from __future__ import annotations

import re
import tomllib

from dpone_provider.assembly import reach
from dpone_provider.assembly.engines import ENGINES
from dpone_provider.domain.identity import EngineKind
from tests.docs.pages import ROOT, Page

README = Page(ROOT / "README.md")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CAPTURED = README.text.partition("<!-- captured: make demo -->")[2].split("```")[1]


def test_it_bears_the_distributions_name() -> None:
    assert README.text.startswith(f"# {PROJECT['name']}\n")


def test_the_two_commands_are_the_first_that_it_shows() -> None:
    first = next(block for block in README.blocks if block.language == "sh")
    assert first.text.split() == ["make", "demo", "make", "test"]


def test_the_python_that_it_asks_for_is_the_one_that_is_required() -> None:
    assert f"Python {PROJECT['requires-python'].removeprefix('>=')} or newer" in README.text


def test_the_licence_is_the_one_declared() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License 2.0" in README.text


def test_what_it_says_of_sql_server_is_what_the_code_does() -> None:
    assert "None of it has run on a SQL Server, the control authority" in README.text
    assert EngineKind.MSSQL in ENGINES
    assert EngineKind.MSSQL in reach.AUTHORITIES


def test_the_capture_is_of_a_whole_run() -> None:
    closing = re.search(r"^(\d+) of (\d+) expected workloads observed$", CAPTURED, re.MULTILINE)
    assert closing is not None
    assert closing[1] == closing[2]
    assert not re.search(r"\b(refused|failed|UNVERIFIED):", CAPTURED)
