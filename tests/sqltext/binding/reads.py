"""What Python asks with the named statements: how it reads the answer, and which values it binds."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import dpone_provider
from tests.sqltext.binding import types

PACKAGE = Path(dpone_provider.__file__).parent
FOLDERS = ("adapters/mssql", "adapters/ledger", "lab/mssql")
OF_BYTES = frozenset({"fromhex", "password_hash", "sid_bytes"})
"""Functions that give bytes."""
BYTES = "varbinary"
VERBS = frozenset({"row", "rows", "run", "results"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One use of a statement: where, by which verb, how many columns are taken, and the values by name, with types.

    A value whose type is not seen is `types.VALUE`: whatever it is, it is not taken for bytes.
    """

    where: str
    verb: str
    columns: int | None
    values: Mapping[str, str] | None


def reads() -> Mapping[str, tuple[Read, ...]]:
    """Return every use that is written out, by the statement's file and name."""
    found: dict[str, list[Read]] = {}
    for folder in FOLDERS:
        for path in sorted((PACKAGE / folder).glob("*.py")):
            for name, read in _in_module(path):
                found.setdefault(name, []).append(read)
    return {name: tuple(uses) for name, uses in found.items()}


def _in_module(path: Path) -> Iterator[tuple[str, Read]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    own = _file(tree)
    folder = path.parent.relative_to(PACKAGE)
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=ast.Name(id="STATEMENTS"), slice=ast.Constant(value=str(name))) if own:
                yield f"{folder}/{own}: {name}", _use(path, node, parents)
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id=module), attr="STATEMENTS"), slice=ast.Constant(value=str(name))
            ):
                yield f"{folder}/{module}.sql: {name}", _use(path, node, parents)
            case ast.Call(func=ast.Attribute(attr="rows"), args=[ast.Constant(value=str(name)), _], keywords=more) if (
                own
            ):
                given = {"sid": BYTES, **{one.arg or "": _kind(one.value) for one in more}}
                where = f"{path.name}:{node.lineno}"
                yield f"{folder}/{own}: {name}", Read(where=where, verb="call", columns=None, values=given)
            case _:
                pass


def _file(tree: ast.Module) -> str:
    """Return the name of the file that a module loads its statements from, by itself or by way of another module."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "STATEMENTS":
            named = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
            return str(named[-1]) if named else ""
        if isinstance(node, ast.ImportFrom) and any(one.name == "STATEMENTS" for one in node.names):
            source = PACKAGE.parent / f"{str(node.module).replace('.', '/')}.py"
            return _file(ast.parse(source.read_text(encoding="utf-8")))
    return ""


def _use(path: Path, node: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> Read:
    at: ast.AST = node
    while at in parents:
        at = parents[at]
        if isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and at.func.attr in VERBS:
            return Read(
                where=f"{path.name}:{node.lineno}",
                verb=at.func.attr,
                columns=_taken(at, parents[at]),
                values=_values(at, parents),
            )
        if isinstance(at, ast.stmt):
            break
    return Read(where=f"{path.name}:{node.lineno}", verb="", columns=None, values=None)


def _taken(call: ast.Call, parent: ast.AST) -> int | None:
    match parent:
        case ast.Assign(targets=[ast.Tuple(elts=names)]) | ast.For(target=ast.Tuple(elts=names)):
            return None if any(isinstance(one, ast.Starred) for one in names) else len(names)
        case ast.comprehension(target=ast.Tuple(elts=names)):
            return len(names)
        case ast.Subscript(slice=ast.Constant(value=int())) if isinstance(call.func, ast.Attribute):
            return 1 if call.func.attr == "row" else None
        case _:
            return None


def _values(call: ast.Call, parents: Mapping[ast.AST, ast.AST]) -> Mapping[str, str] | None:
    if len(call.args) < 2:
        return {}
    given = call.args[1]
    if isinstance(given, ast.Name):
        given = _assigned(given.id, call, parents) or given
    if not isinstance(given, ast.Dict):
        return None
    pairs = zip(given.keys, given.values, strict=True)
    return {str(key.value): _kind(value) for key, value in pairs if isinstance(key, ast.Constant)}


def _kind(value: ast.expr) -> str:
    match value:
        case ast.Call(func=ast.Attribute(attr=name)) if name in OF_BYTES:
            return BYTES
        case _:
            return types.VALUE


def _assigned(name: str, at: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.expr | None:
    """Return what a name is given in the function around, if it is given one thing only."""
    while at in parents and not isinstance(at, ast.FunctionDef):
        at = parents[at]
    given: list[ast.expr] = []
    for node in ast.walk(at):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                given.append(value)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                given.append(value)
            case _:
                pass
    return given[0] if len(given) == 1 else None
