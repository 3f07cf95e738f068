"""Habits of the code that no linter holds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.imports import calls, imports, trees
from tests.architecture.sizes import body_lines, is_broad, measure

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "dpone_provider"
TESTS = ROOT / "tests"

NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc"}


def test_sizes_are_within_limits() -> None:
    broken = measure(PACKAGE).broken()
    assert not broken, "\n".join(broken)


def test_module_names_say_something() -> None:
    found = [
        str(path.relative_to(ROOT))
        for folder in (PACKAGE, TESTS)
        for path in folder.rglob("*")
        if path.stem in NAMES_THAT_SAY_NOTHING
    ]
    assert not found


def test_ports_name_arrow_for_the_type_checker_only() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{one.line} imports {one.module} at run time; allowed: under `if TYPE_CHECKING:`"
        for path, tree in trees(PACKAGE / "application")
        for one in imports(tree)
        if one.module.split(".")[0] == "pyarrow" and not one.for_types_only
    ]
    assert not found, "\n".join(found)


def test_tests_use_fakes_with_behaviour_and_no_mocks() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{one.line} imports {one.module}"
        for path, tree in trees(TESTS)
        for one in imports(tree)
        if one.module.split(".")[0] == "mock" or one.module.startswith("unittest.mock")
    ]
    assert not found, "\n".join(found)


def test_tests_wait_on_conditions_and_do_not_sleep() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} calls {name}; wait on a condition with a deadline instead (tests/waiting.py)"
        for path, tree in trees(TESTS)
        if path != TESTS / "waiting.py"
        for name, line in calls(tree)
        if name in ("time.sleep", "sleep", "asyncio.sleep")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "broad"),
    [
        ("try: f()\nexcept: pass", True),
        ("try: f()\nexcept Exception: pass", True),
        ("try: f()\nexcept (OSError, BaseException): pass", True),
        ("try: f()\nexcept OSError: pass", False),
        ("try: f()\nexcept errors.Exception: pass", False),
    ],
)
def test_a_broad_except_is_seen(source: str, broad: bool) -> None:
    (handler,) = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler))
    assert is_broad(handler) is broad


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('def f():\n    """Docstring\n    of two lines."""', 0),
        ('def f():\n    """Docstring."""\n    a = 1\n\n    return a', 3),
        ("def f(): return 1", 1),
    ],
)
def test_a_docstring_costs_nothing(source: str, lines: int) -> None:
    (function,) = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    assert body_lines(function) == lines


def test_a_large_module_and_a_long_function_are_found(tmp_path: Path) -> None:
    body = "\n".join(f"    a{n} = {n}" for n in range(61))
    (tmp_path / "large.py").write_text(f"def long():\n{body}\n" + "x = 1\n" * 400, encoding="utf-8")
    broken = measure(tmp_path).broken()
    assert len(broken) == 2
    assert "large.py has 462 lines; allowed: 400" in broken[0]
    assert "large.py:1 long has 61 lines; allowed: 60" in broken[1]
