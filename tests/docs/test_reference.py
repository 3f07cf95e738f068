"""What the written parts of the reference pages say, where the code can tell."""

from __future__ import annotations

import re

import pytest

from dpone_provider.cli.root import EPILOG
from dpone_provider.domain.cells import Cell
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.exit_codes import ExitCode
from dpone_provider.domain.identity import Family
from tests.docs.pages import Page, page, pages
from tests.run_suites import ROOT


def test_the_help_lists_every_exit_code() -> None:
    assert {int(code) for code in re.findall(r"\b(\d+) [a-z]", EPILOG)} == {int(code) for code in ExitCode}


@pytest.mark.parametrize("cell", Cell)
def test_every_cell_stands_in_the_readme(cell: Cell) -> None:
    assert f"`{cell}`" in Page(ROOT / "README.md").text


def test_every_way_to_connect_is_told() -> None:
    text = page("how-to-write-a-workspace.md").text
    assert [mode for mode in TlsMode if f"`{mode}`" not in text] == []


def test_families_are_named_as_the_code_does() -> None:
    everything = "\n".join(each.text for each in pages())
    assert all(family in everything for family in Family)


def test_what_was_not_seen_is_called_unverified() -> None:
    verification = page("reference-verification.md").text
    for word in ("SQL Server", "SQL users", "Reconnecting after closing"):
        assert re.search(rf"\*\*[^*]*{word}", verification), word
    assert "UNVERIFIED" in Page(ROOT / "README.md").text
