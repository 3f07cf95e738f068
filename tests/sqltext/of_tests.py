"""The T-SQL that tests send to a given server: where none is given nobody runs it, so Microsoft's parser reads it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dpone_provider.sql_files import load
from tests.sqltext.texts import HOLES, Text

TESTS: Final = Path(__file__).resolve().parents[1]
_BEGINS: Final = re.compile(
    r"\s*(?:ALTER|BEGIN TRANSACTION|COMMIT|CREATE|DECLARE|DELETE|DISABLE|DROP|ENABLE|EXEC|EXECUTE|GRANT|IF|INSERT|KILL"
    r"|REVERT|REVOKE|ROLLBACK|SELECT|SET|TRUNCATE|UPDATE|USE|WITH)\b[^a-z]"
)
_MODULE: Final = re.compile(r"\s*(?:CREATE(?: OR ALTER)?|ALTER)\s+(?:FUNCTION|PROC|PROCEDURE|SCHEMA|TRIGGER|VIEW)\b")
_WITH_SETTINGS: Final = frozenset({"results", "row", "rows", "run"})
_HOLE: Final = re.compile(r"\{[a-z_0-9]*\}")
_AFTER: Final = {
    "(x ": "int",
    "< ": "1",
    "<= ": "1",
    "KILL ": "53",
    "LEVEL ": "SNAPSHOT",
    "PASSWORD = ": "0x0200",
    "SET ": "READ_ONLY",
    "SID = ": "0x64",
}
"""What stands for a value that a test puts there, by what is before it; for any other, a name."""


def files() -> list[Path]:
    """Return every file of tests that speaks to a given server."""
    return sorted(
        {
            *TESTS.glob("adapters/mssql/test_given_*.py"),
            *TESTS.glob("adapters/mssql/given_*.py"),
            *TESTS.glob("adapters/ledger/given_*.py"),
            *TESTS.glob("acceptance/mssql_*.py"),
            *TESTS.glob("acceptance/test_given_*.py"),
            TESTS / "adapters/mssql/installed.py",
        }
    )


def statements_of_tests() -> Iterator[Text]:
    """Yield each statement in them, with something fitting in each gap."""
    for path in sorted({*TESTS.glob("adapters/mssql/*.sql"), *TESTS.glob("interleaving/mssql*.sql")}):
        for name, sql in load(path).items():
            text = _HOLE.sub(lambda hole: HOLES.get(hole[0][1:-1], f"[{hole[0][1:-1]}]"), sql)
            yield Text(f"{path.relative_to(TESTS)}: {name}", text, script=False)
    for path in files():
        for line, sql in in_source(path.read_text(encoding="utf-8")):
            yield Text(f"{path.relative_to(TESTS)}:{line}", sql, script=False)


def modules_behind_settings(source: str) -> Iterator[int]:
    """Yield the line of each module that is made by ``run`` and its like, which say settings first.

    It must be the first statement of its batch (111), so it is sent as it is written.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WITH_SETTINGS:
            first = node.args[0] if node.args else None
            text = _text(first) if isinstance(first, ast.JoinedStr | ast.Constant) else None
            if text is not None and _MODULE.match(text):
                yield node.lineno


def in_source(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string of a module that is a statement: it begins with a verb and ends with ``;``."""
    parts: set[ast.expr] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts |= set(node.values)
        if isinstance(node, ast.JoinedStr | ast.Constant) and node not in parts:
            text = _text(node)
            if text is not None and _BEGINS.match(text) and text.rstrip().endswith(";"):
                yield node.lineno, text


def _text(node: ast.JoinedStr | ast.Constant) -> str | None:
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str):
            return None
        text = ""
        at = 0
        for hole in _HOLE.finditer(node.value):
            text += node.value[at : hole.start()]
            text, at = text + _stand_in(text), hole.end()
        return text + node.value[at:]
    text = ""
    for part in node.values:
        text += str(part.value) if isinstance(part, ast.Constant) else _stand_in(text)
    return text


def _stand_in(before: str) -> str:
    """Return what stands in a gap: nothing behind a text that has ended, a value, or a name."""
    if before.count("'") % 2 == 0:
        if before.endswith("'"):
            return ""
        for ending, value in _AFTER.items():
            if before.endswith(ending):
                return value
    return "x"
