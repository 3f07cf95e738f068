"""Types of Transact-SQL as far as they decide whether a statement is accepted: families, and what goes into what.

Source: Microsoft's "CAST and CONVERT" (the table of implicit conversions) and "Data type precedence". Stricter than the
server where it would accept and then fail on a value, or compare what was never meant to be equal: text with numbers,
text with bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

UNKNOWN = ""
NULL = "null"
VALUE = "value"
"""Of a value that the program binds: all that is known is that it is not bytes."""
TEXT = "'text'"
"""A constant, with its length behind it: it becomes a GUID or a time where one is wanted."""
_FAMILIES = {
    "char": ("char", "varchar", "nchar", "nvarchar", "sysname", "text", "ntext", "xml", TEXT),
    "number": (
        *("bit", "tinyint", "smallint", "int", "bigint", "decimal", "numeric", "float", "real", "money", "integer"),
    ),
    "binary": ("binary", "varbinary", "image", "rowversion", "timestamp"),
    "guid": ("uniqueidentifier",),
    "time": ("date", "time", "datetime", "datetime2", "datetimeoffset", "smalldatetime"),
    "variant": ("sql_variant",),
    "value": (VALUE,),
}
_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names}
_NOT_INTO = {
    "char": {"binary"},
    "number": {"guid"},
    "binary": {"char", "time"},
    "guid": {"number", "time"},
    "time": {"number", "binary", "guid"},
    "variant": {"char", "number", "binary", "guid", "time"},
    "value": {"binary"},
}
"""What needs CONVERT (257, 206), or is taken as something that nobody meant (bytes as characters)."""
_ROOM = re.compile(r"(?:n?(?:var)?char|(?:var)?binary|'text')\((\d+)\)")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19, "uniqueidentifier": 36}
_PRECEDENCE = ("variant", "time", "number", "guid", "char", "binary", "value")


def family(kind: str) -> str:
    """Return what kind of type it is; empty where it is not known, or NULL."""
    return _FAMILY.get(kind.partition("(")[0], "")


def is_known(kind: str) -> bool:
    """Tell whether a type is one of SQL Server's."""
    return bool(family(kind)) or kind in ("table", "cursor")


def mixed(one: str, other: str) -> bool:
    """Tell whether two types that meet in a comparison, a CASE or a UNION do not belong together."""
    left, right = family(one), family(other)
    if not left or not right or left == right or "variant" in (left, right):
        return False
    if "value" in (left, right):
        return "binary" in (left, right)
    constant = one.startswith(TEXT) or other.startswith(TEXT)
    return not (constant and {left, right} & {"guid", "time"})


def refused(source: str, target: str) -> bool:
    """Tell whether a value of one type is not taken for a variable, column or parameter of another."""
    return family(target) in _NOT_INTO.get(family(source), ())


def common(kinds: Iterable[str]) -> str:
    """Return the type of what may be any of these: by precedence."""
    known = [kind for kind in kinds if family(kind)]
    if not known:
        return UNKNOWN
    best = min(known, key=lambda kind: _PRECEDENCE.index(family(kind)))
    return next((kind for kind in known if family(kind) == family(best) and not kind.startswith(TEXT)), best)


def too_long(source: str, target: str) -> bool:
    """Tell whether a text of this type is cut off, or refused, where a shorter one is wanted."""
    return bool(_room(target)) and _room(source) > _room(target)


def too_narrow(source: str, target: str) -> bool:
    """Tell whether a number or GUID does not find place in a text (8170, 8115)."""
    digits = _DIGITS.get(source, 0)
    return family(target) == "char" and 0 < _room(target) < digits


def _room(kind: str) -> int:
    """Return how many characters or bytes a type holds; none where that is not known."""
    if kind == "sysname":
        return 128
    if kind in ("nvarchar(max)", "varchar(max)", "varbinary(max)"):
        return 2**31
    sized = _ROOM.fullmatch(kind)
    return int(sized[1]) if sized is not None else 0
