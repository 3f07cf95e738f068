"""The type of an expression by those of its parts, and where parts do not belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from tests.sqltext.binding import types
from tests.sqltext.binding.world import server_functions

COMPARISON = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
CHARACTERS = (exp.Concat, exp.GroupConcat, exp.Chr)
NUMBERS = (exp.Count, exp.Length, exp.DateDiff, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg)
LIKE_ARGUMENT = (exp.Max, exp.Min, exp.Coalesce, exp.Nullif, exp.FirstValue, exp.Substring, exp.Paren, exp.Window)
LIKE_TEXT = (exp.Lower, exp.Upper, exp.Trim, exp.Repeat)
COLLATIONS = frozenset({"DATABASE_DEFAULT", "CATALOG_DEFAULT", "Latin1_General_100_BIN2", "Latin1_General_BIN2"})
"""Those that are named."""
Found = list[tuple[str, str]]


def type_of(node: Any, kinds: Mapping[int, str]) -> tuple[str, Found]:
    """Return a node's type, and its faults as number and words; ``kinds`` are the types of what is right below it."""
    parts = [kinds.get(id(one), types.UNKNOWN) for one in node.iter_expressions()]
    match node:
        case exp.Collate() if node.expression.name not in COLLATIONS:
            return types.UNKNOWN, [("448", f"COLLATE {node.expression.name}")]
        case exp.Alias() | exp.Ordered() | exp.Collate():
            return kinds.get(id(node.this), types.UNKNOWN), []
        case exp.National():
            return f"{types.TEXT}({len(node.name)})", []
        case exp.Literal():
            return (f"{types.TEXT}({len(node.name)})" if node.is_string else "int"), []
        case exp.HexString():
            return "varbinary", []
        case exp.Null():
            return types.NULL, []
        case exp.Convert():
            return _converted(node.this, kinds.get(id(node.expression), types.UNKNOWN))
        case exp.Cast() | exp.TryCast():
            return _converted(node.args["to"], kinds.get(id(node.this), types.UNKNOWN))
        case exp.Add():
            return _added(node, parts)
        case exp.Case():
            return _case(node, kinds)
        case exp.In() | exp.Between():
            return types.UNKNOWN, _together(node, parts)
        case exp.Like():
            wrong = [kind for kind in parts if types.family(kind) in ("binary", "variant", "number")]
            return types.UNKNOWN, [("8116", f"{kind} in {node.sql('tsql')[:80]}") for kind in wrong]
        case exp.Coalesce():
            return types.common(parts), _together(node, parts)
        case exp.Anonymous():
            known = server_functions().get(node.name.upper())
            return (known.returns if known is not None else types.UNKNOWN), []
        case _:
            return _by_class(node, parts)


def _by_class(node: Any, parts: list[str]) -> tuple[str, Found]:
    if isinstance(node, COMPARISON):
        return types.UNKNOWN, _together(node, parts)
    if isinstance(node, CHARACTERS):
        return "nvarchar", []
    if isinstance(node, NUMBERS):
        return types.common(parts) if isinstance(node, exp.Sub) else "int", []
    if isinstance(node, LIKE_TEXT):
        kind = parts[0] if parts else types.UNKNOWN
        return (kind if types.family(kind) == "char" and not kind.startswith(types.TEXT) else "nvarchar"), []
    if isinstance(node, LIKE_ARGUMENT):
        return (parts[0] if parts else types.UNKNOWN), []
    if isinstance(node, exp.Uuid):
        return "uniqueidentifier", []
    if isinstance(node, exp.SHA2 | exp.SHA | exp.MD5):
        return "varbinary", []
    return types.UNKNOWN, []


def _converted(node: Any, source: str) -> tuple[str, Found]:
    written = str(node.sql("tsql")).lower().replace(" ", "")
    if not types.is_known(written):
        return written, [("243", f"CONVERT to {written}")]
    return written, [("8170", f"{source} into {written}")] if types.too_narrow(source, written) else []


def _added(node: Any, parts: list[str]) -> tuple[str, Found]:
    families = {types.family(kind) for kind in parts} - {""}
    if len(families) > 1 and "char" in families:
        said = " + ".join(kind or "?" for kind in parts)
        return "nvarchar", [("245", f"{said} in {node.sql('tsql')[:100]}")]
    return ("nvarchar" if families == {"char"} else types.common(parts)), []


def _case(node: Any, kinds: Mapping[int, str]) -> tuple[str, Found]:
    results = [one.args["true"] for one in node.args.get("ifs") or ()]
    if (default := node.args.get("default")) is not None:
        results.append(default)
    given = [_below(one, kinds) for one in results]
    faults = _together(node, given)
    if given and all(kind == types.NULL for kind in given):
        faults.append(("8133", f"every result of {node.sql('tsql')[:80]} is NULL"))
    return types.common(given), faults


def _below(node: Any, kinds: Mapping[int, str]) -> str:
    return kinds.get(id(node), types.UNKNOWN)


def _together(node: Any, parts: list[str]) -> Found:
    known = [kind for kind in parts if types.family(kind)]
    wrong = {tuple(sorted((known[0], kind))) for kind in known[1:] if types.mixed(known[0], kind)}
    return [("mixed", f"{one} and {other} in {node.sql('tsql')[:100]}") for one, other in sorted(wrong)]
