"""Tests that use real engines say so, or the suite that runs without engines would start them."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.imports import trees
from tests.suites import SUITES, Pytest

TESTS = Path(__file__).resolve().parents[1]

FOLDERS_WITH_A_SUITE = {
    folder for suite in SUITES for step in suite.steps if isinstance(step, Pytest) for folder in step.folders
}


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def engine_fixtures() -> set[str]:
    """The fixtures of the root conftest that reach for the lab."""
    tree = ast.parse((TESTS / "conftest.py").read_text(encoding="utf-8"))
    return {
        function.name
        for function in functions(tree)
        if any(isinstance(node, ast.Name) and node.id == "lab" for node in ast.walk(function))
    }


def test_the_fixtures_are_seen() -> None:
    assert {"postgres_lab", "fresh_database"} <= engine_fixtures()


def test_tests_that_use_an_engine_are_marked() -> None:
    engines = engine_fixtures()
    found = [
        f"{path.relative_to(TESTS)} uses {', '.join(sorted(used))}; add pytestmark = pytest.mark.lab"
        for path, tree in trees(TESTS)
        if path.name.startswith("test_") and path.relative_to(TESTS).parts[0] not in FOLDERS_WITH_A_SUITE
        if (used := engines & {argument.arg for function in functions(tree) for argument in function.args.args})
        and "mark.lab" not in path.read_text(encoding="utf-8")
    ]
    assert not found, "\n".join(found)
