"""Sizes of modules and functions, and broad excepts: measured, reported, and held to limits.

    python -m tests.architecture.sizes

prints the figures and exits with 1 if a limit is broken. A module's size is its lines; a function's is the lines of its
body without its docstring, so that a docstring costs nothing. The targets are what the project wants to stay near, the
limits what it never exceeds.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).resolve().parents[2] / "dpone_provider"

MODULE_LIMIT = 400
MODULE_TARGET_MEDIAN = 85
FUNCTION_LIMIT = 60
FUNCTION_TARGET_MEDIAN = 6
BROAD_EXCEPT_LIMIT = 3

BROAD = ("Exception", "BaseException")


@dataclass(frozen=True, slots=True)
class Measured:
    """Something with a place (`path:line name`) and a size in lines."""

    place: str
    lines: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The measures of one package."""

    modules: tuple[Measured, ...]
    functions: tuple[Measured, ...]
    broad_excepts: tuple[str, ...]

    def broken(self) -> list[str]:
        """Every limit that does not hold, one sentence each."""
        found = [
            f"{m.place} has {m.lines} lines; allowed: {MODULE_LIMIT}" for m in self.modules if m.lines > MODULE_LIMIT
        ]
        found += [
            f"{f.place} has {f.lines} lines; allowed: {FUNCTION_LIMIT}"
            for f in self.functions
            if f.lines > FUNCTION_LIMIT
        ]
        if len(self.broad_excepts) > BROAD_EXCEPT_LIMIT:
            found.append(
                f"{len(self.broad_excepts)} broad excepts ({', '.join(self.broad_excepts)}); "
                f"allowed: {BROAD_EXCEPT_LIMIT} in the whole package"
            )
        return found

    def report(self) -> str:
        """The figures beside their targets, in one line per kind, and the largest of each."""
        return "\n".join(
            (
                _line("modules", self.modules, MODULE_TARGET_MEDIAN, MODULE_LIMIT),
                _line("functions", self.functions, FUNCTION_TARGET_MEDIAN, FUNCTION_LIMIT),
                f"broad excepts: {len(self.broad_excepts)} (limit {BROAD_EXCEPT_LIMIT})",
            )
        )


def measure(package: Path) -> Sizes:
    """Measure every module under `package`; paths are told relative to its parent."""
    modules: list[Measured] = []
    functions: list[Measured] = []
    broad: list[str] = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        place = str(path.relative_to(package.parent))
        modules.append(Measured(place, len(text.splitlines())))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(Measured(f"{place}:{node.lineno} {node.name}", body_lines(node)))
            elif isinstance(node, ast.ExceptHandler) and is_broad(node):
                broad.append(f"{place}:{node.lineno}")
    return Sizes(tuple(modules), tuple(functions), tuple(broad))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement that is no docstring to the end; 0 when there is none."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1 if body else 0


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler catches everything: bare, or `Exception` or above, alone or in a tuple."""
    match handler.type:
        case None:
            return True
        case ast.Tuple(elts=caught):
            return any(isinstance(one, ast.Name) and one.id in BROAD for one in caught)
        case ast.Name(id=name):
            return name in BROAD
        case _:
            return False


def _line(what: str, measured: Sequence[Measured], target: int, limit: int) -> str:
    lines = [one.lines for one in measured] or [0]
    largest = "; ".join(f"{one.lines} {one.place}" for one in _largest(measured))
    return (
        f"{what}: {len(measured)}, median {median(lines):g} lines (target {target}), "
        f"largest {max(lines)} (limit {limit}): {largest}"
    )


def _largest(measured: Sequence[Measured]) -> Iterator[Measured]:
    yield from sorted(measured, key=lambda one: -one.lines)[:3]


def main() -> int:
    """Print the report and what is broken; 1 if anything is."""
    sizes = measure(PACKAGE)
    print(sizes.report())
    for sentence in (broken := sizes.broken()):
        print(sentence)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
