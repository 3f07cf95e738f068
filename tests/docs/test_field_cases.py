"""Every field case that was taken up has a named test, and every test that the page names is there."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.pages import page
from tests.run_suites import ROOT

CASES = ("F1", "F2", "F3", "F4", "F5", "F6", "F8", "F10", "F11", "F12", "F13", "F14", "F15", "F19", "F20", "F22")
ROW = re.compile(r"^\| (F\d+) \|[^|]*\|([^|]*)\|([^|]*)\|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> dict[str, tuple[str, str]]:
    """Return the table: by case the simulator's tests and the lab's."""
    found = ROW.findall(page("reference-verification.md").text)
    return {case: (simulated, lab) for case, simulated, lab in found}


@cache
def functions(path: str) -> frozenset[str]:
    """Return the names of every function of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_the_table_has_every_case() -> None:
    assert tuple(rows()) == CASES


@pytest.mark.parametrize("case", CASES)
def test_a_case_has_tests_that_are_there(case: str) -> None:
    simulated, lab = rows()[case]
    for cell in (simulated, lab):
        named = NAMED.findall(cell)
        assert named, cell
        assert [(path, name) for path, name in named if name not in functions(path)] == []
    assert all(name.startswith(f"test_f{int(case[1:]):02}_") for _, name in NAMED.findall(simulated))
