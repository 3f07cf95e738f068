"""FORCESEEK can be obeyed: the first columns that it names are compared, as they are, with something (8622).

A column of varchar that is compared with nvarchar is converted, row by row, and so is no key to seek by. Source: "Table
hints" and "Data type precedence".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from dpone_provider.application.installation.tsql import Token
from tests.sqltext.binding.statements import closed, parts
from tests.sqltext.binding.types import family

_NARROW = ("char", "varchar")
_WIDE = ("nchar", "nvarchar", "sysname")


@dataclass(frozen=True, slots=True)
class Seek:
    """A table, by its alias or name, and the columns of a key that are to be sought by."""

    table: str
    columns: tuple[str, ...]


def seeks(found: Sequence[Token]) -> Iterator[Seek]:
    """Yield what the hints of a statement force; of a hint without an index nothing is known."""
    for at, token in enumerate(found):
        if token.word == "FORCESEEK" and at + 3 < len(found) and found[at + 1].text == "(":
            opened = at + 3
            columns = tuple(part[0].name for part in parts(found[opened + 1 : closed(found, opened)]))
            yield Seek(_hinted(found, at), columns)


def _hinted(found: Sequence[Token], at: int) -> str:
    """Return the alias, or the name, of the table that the hint at ``at`` is for."""
    while found[at].word != "WITH":
        at -= 1
    return found[at - 1].name


def unsought(node: Any, seek: Seek, kinds: Mapping[int, str]) -> str:
    """Return why a query does not seek by a key; empty where it does. ``kinds`` are the types of its parts."""
    for column in seek.columns:
        pairs = [
            pair for one in node.find_all(exp.EQ) for pair in ((one.this, one.expression), (one.expression, one.this))
        ]
        met = [(own, other) for own, other in pairs if _is(own, seek.table, column)]
        met += [(one.this, one) for one in node.find_all(exp.In) if _is(one.this, seek.table, column)]
        if not met:
            return f"{seek.table}.{column} is compared with nothing"
        if not any(_as_it_is(kinds.get(id(own), ""), kinds.get(id(other), "")) for own, other in met):
            return f"{seek.table}.{column} is converted to be compared"
    return ""


def _is(node: Any, table: str, column: str) -> bool:
    return isinstance(node, exp.Column) and node.name == column and node.table == table


def _as_it_is(own: str, other: str) -> bool:
    narrow, wide = own.startswith(_NARROW), other.startswith(_WIDE)
    return not (family(own) == "char" and narrow and wide)
