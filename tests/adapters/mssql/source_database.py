"""A source behind the tests' TDS server: tables in SQL Server's types, read through the real drivers.

It answers the reader's own statements, by their text, and computes what they select as `evaluated` says. It is no SQL
Server: what it shows is that what is selected arrives, through Microsoft's driver, exactly, and what becomes of a
source that breaks at any row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, islice

from dpone_provider.adapters.mssql import definitions, enrolment, reader
from dpone_provider.domain.identity import Relation
from tests.adapters.mssql import typed_rows
from tests.adapters.mssql.evaluated import kept, select
from tests.adapters.mssql.fake_instance import COLLATION, GUIDS
from tests.adapters.mssql.tds_server import Answer, Cell, Rows, TdsServer, Tokens, serving
from tests.adapters.mssql.typed_rows import Typed

_SELECTED = re.compile(r"SELECT (.+) FROM \[(.+?)\]\.\[(.+?)\];", re.DOTALL)
_COUNTED = re.compile(r"SELECT (COUNT_BIG\(\*\).*) FROM \[(.+?)\]\.\[(.+?)\];", re.DOTALL)
_OFFENDER = re.compile(r"SELECT TOP \(1\) (.+) FROM \[(.+?)\]\.\[(.+?)\] WHERE (.+);", re.DOTALL)
_HAS_ROWS = re.compile(r"CONVERT\(int, (\d+)\) AS object_id, .+? FROM \[(.+?)\]\.\[(.+?)\]\)")
_GUARD = re.compile(r"\((.+) < '(.+?)' OR (.+) >= '(.+?)'\)")
_AS = re.compile(r" AS \[((?:[^\]]|\]\])+)\](?:, |$)")
_DECLARED = re.compile(r"DECLARE @\w+ [^=]+? = @P\d+;")


@dataclass
class SourceTable:
    """A table: the types of its columns by name, those that may be NULL, its key, and its rows."""

    columns: Mapping[str, str]
    rows: list[tuple[object, ...]] = field(default_factory=list)
    key: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    object_id: int = 0

    def named(self) -> Iterator[dict[str, object]]:
        """Yield each row by its columns' names, as the server keeps it."""
        for row in self.rows:
            yield {
                name: kept(engine_type, value)
                for (name, engine_type), value in zip(self.columns.items(), row, strict=True)
            }


@dataclass
class Fault:
    """What comes in the place of the rest of a table's rows, after so many of them."""

    after: int
    answers: tuple[Answer, ...]
    only: str = ""
    """What is in the query that it comes to."""


@dataclass
class SourceDatabase:
    """One database of one instance, in which every login reads every table."""

    server: TdsServer = field(init=False)
    tables: dict[Relation, SourceTable] = field(default_factory=dict)
    fault: Fault | None = None
    snapshots: tuple[int, str] = (1, "ON")
    fork: str = GUIDS["fork"]
    _numbers: Iterator[int] = field(default_factory=lambda: count(1000))

    @contextmanager
    def serving(self) -> Iterator[SourceDatabase]:
        """Listen until the block ends."""
        with serving(self.answer) as self.server:
            yield self

    def make(self, relation: Relation, table: SourceTable) -> None:
        """Make a table stand, anew if one did."""
        table.object_id = next(self._numbers)
        self.tables[relation] = table

    def answer(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        """Answer one batch of the product's."""
        body = _DECLARED.sub("", text.removeprefix("SET NOCOUNT, XACT_ABORT ON;")).strip()
        handlers: dict[str, Callable[[Sequence[Cell]], Sequence[Answer]]] = {
            enrolment.STATEMENTS["identity"]: self._identity,
            reader.STATEMENTS["snapshot_allowed"]: lambda given: [Rows(("s", "w"), [self.snapshots])],
            reader.STATEMENTS["memory_optimised"]: lambda given: [Rows(("m",), [(0,)])],
            definitions.STATEMENTS["definitions"]: self._definitions,
        }
        if body in handlers:
            return handlers[body](values)
        for pattern, handler in (
            (_COUNTED, self._counted),
            (_OFFENDER, self._offender),
            (_SELECTED, self._selected),
        ):
            found = pattern.fullmatch(body)
            if found is not None and Relation(found[2], found[3]) in self.tables:
                return handler(self.tables[Relation(found[2], found[3])], found)
        return self._has_rows(body) if body.endswith("AS has_rows") else []

    def _identity(self, given: Sequence[Cell]) -> Sequence[Answer]:
        row = (GUIDS["instance"], "sales", "7", GUIDS["database"], self.fork, COLLATION, 3, 16, 0)
        return [Rows([f"c{place}" for place in range(len(row))], [row])]

    def _definitions(self, given: Sequence[Cell]) -> Sequence[Answer]:
        rows = [self._definition(place, Relation(one["s"], one["n"])) for place, one in enumerate(_asked(given))]
        kinds = (int, int, int, int, str, int, str, int, int, str, str, str, str, str, int)
        return [Rows([f"c{place}" for place in range(15)], rows, kinds)]

    def _definition(self, place: int, relation: Relation) -> tuple[Cell, ...]:
        table = self.tables.get(relation)
        if table is None:
            return (place, 1, 1, *(None,) * 11, 0)
        columns = [
            {
                "name": name,
                "type": engine_type,
                "builtin": 1,
                "nullable": int(name not in (*table.key, *table.required)),
                "computed": 0,
            }
            for name, engine_type in table.columns.items()
        ]
        key = json.dumps([{"name": "k", "column": name} for name in table.key]) if table.key else None
        standing = (table.object_id, "U", 1, "dbo", 1, 0, None)
        return (place, 1, 1, *standing, json.dumps(columns), key, None, None, 0)

    def _has_rows(self, body: str) -> Sequence[Answer]:
        found = [
            (int(number), int(bool(self.tables[Relation(schema, name)].rows)))
            for number, schema, name in _HAS_ROWS.findall(body)
        ]
        return [Rows(("n", "rows"), found, (int, int))]

    def _counted(self, table: SourceTable, found: re.Match[str]) -> Sequence[Answer]:
        guards = _GUARD.findall(found[1])
        met = [sum(1 for row in table.named() if _beyond(table, guard, row)) for guard in guards]
        counts = [len(table.rows), *met]
        return [Rows([f"c{place}" for place in range(len(counts))], [counts], (int,) * len(counts))]

    def _offender(self, table: SourceTable, found: re.Match[str]) -> Sequence[Answer]:
        (guard,) = _GUARD.findall(found[4])
        row = next(row for row in table.named() if _beyond(table, guard, row))
        shown = [select(one, table.columns)[0](row) for one in re.split(r", (?=CONVERT\()", found[1])]
        return [Rows([f"c{place}" for place in range(len(shown))], [[str(one) for one in shown]], (str,) * len(shown))]

    def _selected(self, table: SourceTable, found: re.Match[str]) -> Sequence[Answer]:
        parts = _AS.split(found[1])
        read = [
            (select(expression, table.columns), name) for expression, name in zip(parts[::2], parts[1::2], strict=False)
        ]
        columns = [Typed(name, kind) for (_, kind), name in read]
        fault = self.fault if self.fault and self.fault.only in found[1] else None
        standing = islice(table.named(), fault.after if fault else None)
        values = [[compute(row) for (compute, _), _ in read] for row in standing]
        rows = Tokens(typed_rows.metadata(columns) + typed_rows.rows(columns, values))
        return [rows, *fault.answers] if fault else [rows, Tokens(typed_rows.done(len(values)))]


def _beyond(table: SourceTable, guard: Sequence[str], row: Mapping[str, object]) -> bool:
    expression, first, _, last = guard
    compute, kind = select(expression.rpartition("WHEN (")[2], table.columns)
    value = compute(row)
    if value is None:
        return False
    least, most = kept(kind, first), kept(kind, last)
    assert isinstance(value, int)
    assert isinstance(least, int)
    assert isinstance(most, int)
    return value < least or value >= most


def _asked(given: Sequence[Cell]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(str(given[0]))
    return found
