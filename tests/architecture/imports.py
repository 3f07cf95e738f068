"""What a module imports and calls, read from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Imported:
    """One imported module by its full name; `for_types_only` when it stands under `if TYPE_CHECKING:`."""

    module: str
    line: int
    for_types_only: bool


def trees(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every module under `folder`, parsed, in the order of paths."""
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> Iterator[Imported]:
    """Every import of a module, also those inside functions."""
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and _is_type_checking(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Imported(alias.name, node.lineno, node in typing_only)
            case ast.ImportFrom(module=module, level=level):
                yield Imported("." * level + (module or ""), node.lineno, node in typing_only)


def calls(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every called name with its line: `open`, `datetime.now`, `self.clock.now`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield ast.unparse(node.func), node.lineno


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
