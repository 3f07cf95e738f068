"""Whether the commands that the pages show are ones that the project, or Airflow, takes."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.docs.dpone_lines import wrong_command
from tests.docs.pages import ROOT, Page
from tests.docs.shell_blocks import simple_commands, typed_lines
from tests.suites import SUITES

LANGUAGES = ("console", "sh")
SYSTEM = frozenset(
    """. cat cd chmod chown clickhouse-client cp curl echo envsubst export git grep install ls mkdir pip psql python3
    sed set source sqlcmd sudo systemctl tar""".split()  # noqa: SIM905 - one a line would be longer than everything else
)
"""Programs of the system: nothing of the project to compare them with."""
_TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)


def wrong_commands(page: Page) -> Iterator[str]:
    """Say which commands of a page are wrong: in blocks as they stand, within the text as far as they go."""
    for block in page.blocks:
        if block.language not in LANGUAGES:
            continue
        for typed in typed_lines(block):
            for words in simple_commands(typed.line):
                if wrong := _wrong(words):
                    yield f"{page.name}:{typed.number}: {wrong}"
    for piece in page.code:
        name, _, rest = piece.text.partition(" ")
        wrong = None
        if name == "dpone" and rest:
            wrong = wrong_command(shlex.split(rest), complete=False)
        elif name == "make" and rest:
            wrong = _wrong(shlex.split(piece.text))
        if wrong:
            yield f"{page.name}:{piece.line}: {wrong}"


def _wrong(words: list[str]) -> str | None:
    program, *arguments = words
    match program.rpartition("/")[2]:
        case "dpone":
            return wrong_command(arguments, complete=True)
        case "make":
            return _wrong_make(arguments)
        case "airflow":
            return _wrong_airflow(arguments)
        case "python" | "python3.11" if arguments[:1] == ["-m"]:
            return None if importlib.util.find_spec(arguments[1]) else f"no module {arguments[1]}"
        case "pytest" | "python":
            paths = [each for each in arguments if "/" in each and not each.startswith("-")]
            return next((f"no {each}" for each in paths if not (ROOT / each).exists()), None)
        case name if name in SYSTEM:
            return None
        case name:
            return f"{name} is no program that a page may name (tests/docs/commands.py)"


def _wrong_make(arguments: list[str]) -> str | None:
    targets = set(_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    suites = {suite.name for suite in SUITES} | {"--list"}
    for each in arguments:
        name, _, value = each.partition("=")
        if name == "SUITES" and not set(value.split()) <= suites:
            return f"make {each}: no such suite"
        if not value and each not in targets:
            return f"make {each}: no such target"
    return None


def _wrong_airflow(arguments: list[str]) -> str | None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            _airflow().parse_args(arguments)
    except SystemExit:
        return f"airflow {' '.join(arguments)}: {said.getvalue().strip().splitlines()[-1]}"
    return None


@cache
def _airflow() -> Any:
    from airflow.cli import cli_parser

    return cli_parser.get_parser()
