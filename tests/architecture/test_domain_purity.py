"""The domain is pure: the standard library only, and of it nothing that reaches outside the process."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.architecture.imports import calls, imports, trees

DOMAIN = Path(__file__).resolve().parents[2] / "dpone_provider" / "domain"

# Clock, randomness, files, processes, network, threads, logging: inputs of the domain, never its doing.
IMPURE_MODULES = {
    *("asyncio", "concurrent", "multiprocessing", "subprocess", "threading"),
    *("io", "os", "pathlib", "shutil", "sqlite3", "sys", "tempfile"),
    *("http", "select", "socket", "ssl", "urllib"),
    *("random", "secrets", "signal", "time"),
    "logging",
}
IMPURE_CALLS = {
    *("eval", "exec", "input", "open", "print"),
    *("date.today", "datetime.now", "datetime.today", "datetime.utcnow"),
    *("uuid1", "uuid4", "uuid.uuid1", "uuid.uuid4"),
}


def impurities(tree: ast.Module) -> list[str]:
    """What a module of the domain must not do, one sentence each."""
    found: list[str] = []
    for one in imports(tree):
        top = one.module.split(".")[0]
        if one.module == "dpone_provider.domain" or one.module.startswith("dpone_provider.domain."):
            continue
        if top not in sys.stdlib_module_names:
            found.append(f"line {one.line} imports {one.module}; allowed: the standard library and the domain")
        elif top in IMPURE_MODULES:
            found.append(
                f"line {one.line} imports {one.module}, which reaches outside; allowed: take it as an argument"
            )
    found += [
        f"line {line} calls {name}; allowed: take it as an argument"
        for name, line in calls(tree)
        if name in IMPURE_CALLS
    ]
    return found


def test_the_domain_is_pure() -> None:
    found = [f"{path.name}: {sentence}" for path, tree in trees(DOMAIN) for sentence in impurities(tree)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "import pydantic",
        "from dpone_provider.documents import json",
        "from dpone_provider import domain",
        "from . import slot",
        "import os.path",
        "def f():\n    from time import sleep",
        "if TYPE_CHECKING:\n    import pyarrow",
        "at = datetime.now(tz=UTC)",
        "key = uuid.uuid4()",
        "text = open('x').read()",
    ],
)
def test_an_impure_module_is_found(source: str) -> None:
    assert impurities(ast.parse(source))


@pytest.mark.parametrize(
    "source",
    ["from uuid import UUID", "from dpone_provider.domain.slot import Slot", "import hashlib", "x = clock.now()"],
)
def test_a_pure_module_is_not(source: str) -> None:
    assert not impurities(ast.parse(source))
