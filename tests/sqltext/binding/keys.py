"""Keys and indexes: their columns exist, fit into an index, and are what foreign keys refer to.

Source: "Maximum capacity specifications for SQL Server": 900 bytes of a clustered key, 1,700 of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpone_provider.application.installation.tsql import Token
from tests.sqltext.binding.statements import closed, named, parts

CLUSTERED, OTHER = 900, 1700
_SIZE = {
    **{"bit": 1, "tinyint": 1, "smallint": 2, "int": 4, "bigint": 8, "uniqueidentifier": 16, "sysname": 256},
    **{"date": 3, "datetime": 8, "datetime2": 8, "datetimeoffset": 10, "float": 8},
}
_SIZED = re.compile(r"(n?)(?:var)?(?:char|binary)\((\d+)\)")


@dataclass(frozen=True, slots=True)
class Key:
    """A primary key, a unique constraint or an index: its columns in order."""

    columns: tuple[str, ...]
    unique: bool
    clustered: bool
    line: int

    def faults(self, columns: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield what an index over these columns cannot be, ``columns`` being the table's."""
        sizes = {name: size(columns.get(name, "int")) for name in self.columns}
        for name in (name for name, one in sizes.items() if one is None):
            yield "1919", f"{name} {columns[name]} in a key"
        most = CLUSTERED if self.clustered else OTHER
        total = sum(one or 0 for one in sizes.values())
        if total > most:
            yield "1946", f"{total} bytes in a key of {', '.join(self.columns)}; {most} fit"


def size(kind: str) -> int | None:
    """Return how many bytes a type takes in a key at most, none if it is not known; None where it may not stand."""
    if not kind:
        return 0
    sized = _SIZED.fullmatch(kind)
    if sized is not None:
        return int(sized[2]) * (2 if sized[1] else 1)
    return _SIZE.get(kind)


def of_table(inner: Sequence[Token]) -> tuple[Key, ...]:
    """Return the keys and indexes that a CREATE TABLE defines between its parentheses."""
    found = [key for part in parts(inner) for key in _of_part(part)]
    if sum(key.clustered for key in found) > 1:
        first = next(key for key in found if key.clustered)
        return tuple(Key(key.columns, key.unique, False, key.line) if key is first else key for key in found)
    return tuple(found)


def _of_part(part: Sequence[Token]) -> Iterator[Key]:
    words = [token.word for token in part]
    for at, word in enumerate(words):
        primary = word == "PRIMARY" and words[at + 1 : at + 2] == ["KEY"]
        if not primary and word != "UNIQUE" and not (word == "INDEX" and at == 0):
            continue
        end = at + 2 if primary or word == "INDEX" else at + 1
        told = words[end : end + 1]
        clustered = told == ["CLUSTERED"] or (primary and told != ["NONCLUSTERED"])
        end += told in (["CLUSTERED"], ["NONCLUSTERED"])
        listed = end < len(part) and part[end].text == "("
        columns = _columns(part, end) if listed else (part[0].name,)
        yield Key(columns, word != "INDEX", clustered, part[0].line)


def of_index(found: Sequence[Token]) -> tuple[tuple[str, ...], Key] | None:
    """Return the table's name and the key of a CREATE INDEX; None for any other statement."""
    words = [token.word for token in found]
    if words[0] != "CREATE" or "INDEX" not in words[1:4]:
        return None
    at = words.index("ON")
    name, end = named(found, at + 1)
    whole = "WHERE" not in words
    return name, Key(_columns(found, end), "UNIQUE" in words[:at] and whole, False, found[0].line)


def _columns(found: Sequence[Token], at: int) -> tuple[str, ...]:
    return tuple(part[0].name for part in parts(found[at + 1 : closed(found, at)]))
