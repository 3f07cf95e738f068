"""Every installation script that a page prints is there, and takes exactly the variables that the page gives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from dpone_provider.cli.root import dpone
from tests.docs.pages import ROOT, pages
from tests.docs.shell_blocks import simple_commands, typed_lines

RENDER = ["dpone", "control", "render"]


def rendering() -> Iterator[tuple[str, list[str]]]:
    """Yield the page and the arguments of each command that prints a script."""
    for page in pages():
        for block in page.blocks:
            if block.language in ("sh", "console"):
                for typed in typed_lines(block):
                    for words in simple_commands(typed.line):
                        if words[:3] == RENDER:
                            yield page.path.name, words[1:]


COMMANDS = list(rendering())


@pytest.mark.parametrize(("page", "arguments"), COMMANDS, ids=[f"{page}:{' '.join(words)}" for page, words in COMMANDS])
def test_a_command_that_prints_a_script_prints_it(page: str, arguments: list[str]) -> None:
    done = CliRunner().invoke(dpone, arguments)
    assert done.exit_code == 0, done.output
    assert "${" not in done.output


def test_every_script_of_sql_server_is_printed_by_some_page() -> None:
    """What a platform engineer installs, upgrades, adopts, switches off and removes."""
    printed = {word for _, words in COMMANDS if "mssql" in words for word in words if word.endswith(".sql")}
    assert printed == {path.name for path in (ROOT / "sql" / "mssql").glob("*.sql")}
