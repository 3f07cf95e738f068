"""A stand-in for pyodbc, in dbt's own interpreter: it writes down what dbt-sqlserver sends, and answers it.

It is no SQL Server: it parses nothing. It keeps a catalog of relations, which it changes by the few definitions that
the adapter is known to send, with the errors that a server gives where a name is taken or missing, in transactions that
are undone by ROLLBACK and by the end of a session. Standard library only; found first on the path of `recording.py`.
"""

from __future__ import annotations

import json
import os
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

PLACE = Path(os.environ["DPONE_TEST_RECORD"])
"""A directory: ``columns.json`` is given, ``statements.jsonl`` and ``catalog.json`` are kept there."""
pooling = True
native_uuid = False


class Error(Exception):
    """The base of the driver's exceptions."""


class DatabaseError(Error):
    """What a server says."""


class InterfaceError(Error):
    """What the driver says."""


class OperationalError(DatabaseError):
    """A link that broke."""


class ProgrammingError(DatabaseError):
    """A statement that is refused."""


class InternalError(DatabaseError):
    """A cursor that is not valid."""


NAME = r"(?:\"\w+\"\.)?[\[\"](?P<schema>\w+)[\]\"]\.[\[\"](?P<name>\w+)[\]\"]"
CHANGES = tuple(
    (kind, re.compile(pattern, re.IGNORECASE | re.DOTALL))
    for kind, pattern in (
        ("make view", rf"create view\s+{NAME}\s+as(?P<body>[^\x00]*)"),
        ("set view", rf"create or alter view\s+{NAME}\s+as(?P<body>[^\x00]*)"),
        ("make table", rf"create table\s+{NAME}"),
        ("make table", rf"select (?:top 0 )?\* into\s+{NAME}"),
        ("drop", rf"drop (?:view|table)(?: if exists)?\s+{NAME}"),
        ("rename", r"exec sp_rename '(?P<schema>\w+)\.(?P<name>\w+)', '(?P<new>\w+)'"),
    )
)
LITERAL = re.compile(r"exec\('((?:[^']|'')*)'\)", re.IGNORECASE)
NODE = re.compile(r'"node_id": "([^"]+)"')
SUFFIX = re.compile(r"(__dbt_tmp|__dbt_temp|__dbt_refresh|__dbt_backup|__dbt_tmp_vw)+$|_snapshot_staging_temp_view$")


def drivers() -> list[str]:
    """Return what is registered."""
    return ["ODBC Driver 18 for SQL Server"]


def written(**line: Any) -> None:
    """Write down one line."""
    with (PLACE / "statements.jsonl").open("a") as record:
        record.write(json.dumps(line) + "\n")


class Catalog:
    """Relations by schema and name: what they are, and a view's definition."""

    def __init__(self) -> None:
        self.path = PLACE / "catalog.json"
        self.here: dict[str, list[str]] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.before: dict[str, list[str]] | None = None
        self.columns: dict[str, list[list[Any]]] = json.loads((PLACE / "columns.json").read_text())

    def begin(self) -> None:
        """Begin a transaction."""
        self.before = dict(self.here)

    def end(self, *, commit: bool) -> None:
        """End it, if there is one."""
        if self.before is not None and not commit:
            self.here = self.before
        self.before = None
        self.path.write_text(json.dumps(self.here))

    def change(self, text: str) -> None:
        """Do what a batch defines, in its order; what stands in ``EXEC('…')`` where it stands."""
        plain = LITERAL.sub(lambda found: "\0" + found[1].replace("''", "'") + "\0", text)
        found = sorted(
            ((match.start(), kind, match) for kind, pattern in CHANGES for match in pattern.finditer(plain)),
            key=lambda one: one[0],
        )
        for _, kind, match in found:
            self._one(kind, match)
        if self.before is None:
            self.path.write_text(json.dumps(self.here))

    def _one(self, kind: str, match: re.Match[str]) -> None:
        named = f"{match['schema']}.{match['name']}"
        if kind == "drop":
            self.here.pop(named, None)
            return
        if kind == "rename":
            new = f"{match['schema']}.{match['new']}"
            if named not in self.here or new in self.here:
                raise ProgrammingError("42000", f"[42000] sp_rename: {named} to {new} (15335)")
            self.here[new] = self.here.pop(named)
            return
        if kind == "set view" and self.here.get(named, ["view"])[0] == "view":
            self.here[named] = ["view", f"CREATE VIEW {named} AS {match['body'].strip()}"]
            return
        if named in self.here:
            raise ProgrammingError("42S01", f"[42S01] There is already an object named '{named}'. (2714)")
        self.here[named] = ["view", match["body"]] if kind == "make view" else ["table", ""]

    def listed(self, schema: str) -> list[tuple[str, str, str, str]]:
        """Return what a schema holds, as dbt lists it."""
        rows = [(one.partition(".")[2], kind) for one, (kind, _) in sorted(self.here.items()) if one.startswith(schema)]
        return [("warehouse", name, schema, kind) for name, kind in rows]

    def columns_of(self, name: str) -> list[list[Any]]:
        """Return name, type, length, precision and scale of the columns of a relation, or of what it is made from."""
        return self.columns.get(name) or self.columns[SUFFIX.sub("", name)]


PYTHON = {"int": int, "bigint": int, "smallint": int, "bit": bool, "decimal": Decimal, "date": date}
CATALOG = Catalog()


class Cursor:
    """One statement at a time; every result is known when it is executed."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: Any = None
        self.rowcount = -1
        self.rows: list[Any] = []

    def execute(self, text: str, values: Any = None) -> Cursor:
        """Write a batch down, do what it defines, and answer it."""
        node = NODE.search(text)
        bare = re.sub(r"^/\*.*?\*/\s*", "", text, flags=re.DOTALL)
        written(session=self.connection.number, node=node[1] if node else "", text=bare, values=len(values or ()))
        if bare.startswith("BEGIN TRANSACTION"):
            CATALOG.begin()
        elif bare.startswith("IF @@TRANCOUNT > 0"):
            CATALOG.end(commit="COMMIT" in bare)
        else:
            CATALOG.change(bare)
        self._answer(bare, node[1].split(".")[2] if node else "")
        return self

    def _answer(self, text: str, node: str) -> None:
        self.description, self.rows = None, []
        if text.startswith("SELECT given.letter"):
            asked = re.findall(r"\(N'(.)'\)", text)
            self._rows(["letter"], [(one,) for one in asked if one.encode("cp1252", "replace") == b"?"])
        elif "as [schema]\n" in text:
            self._rows(["schema"], [("mart",), ("stage",)])
        elif "schema_id = @schema_id" in text:
            schema = re.search(r"schema_id\('(\w+)'\)", text)
            assert schema is not None
            self._rows(["database", "name", "schema", "table_type"], CATALOG.listed(schema[1]))
        elif "sql_expression_dependencies" in text:
            self._rows(["schema_name", "view_name"], self._over(text))
        elif "needs_refresh" in text:
            found = re.search(r"quotename\('(\w+)'\) \+ '\.' \+ quotename\('(\w+)'\)", text)
            assert found is not None
            self._rows(["definition", "needs_refresh"], [(CATALOG.here[f"{found[1]}.{found[2]}"][1], 0)])
        elif "as failures" in text:
            self._rows(["failures", "should_warn", "should_error"], [(0, "false", "false")])
        elif "as marker_count" in text:
            self._rows(["marker_count"], [(0,)])
        elif "as character_maximum_length" in text:
            found = re.search(r"object_id\('\"\w+\"\.\"\w+\"\.\"(\w+)\"'\)", text)
            assert found is not None
            names = ["column_name", "data_type", "character_maximum_length", "numeric_precision", "numeric_scale"]
            self._rows(names, [tuple(one) for one in CATALOG.columns_of(found[1])])
        elif "as is_primary_key" in text:
            names = ["name", "type", "unique", "is_primary_key", "is_unique_constraint", "columns", "included_columns"]
            self._rows([*names, "data_compression", "descending_columns", "where", "fillfactor", "ignore_dup_key"], [])
        elif "INFORMATION_SCHEMA.TABLE_PRIVILEGES" in text:
            self._rows(["grantee", "privilege_type"], [])
        elif text.startswith("select is_hidden, name, system_type_name"):
            names = ["is_hidden", "name", "system_type_name", "error_number", "error_message"]
            staged = CATALOG.columns_of(f"{node}__dbt_tmp")
            self._rows(names, [(0, name, kind, None, None) for name, kind, *_ in staged])
        elif text.lstrip().startswith("with snapshot_query as"):
            self._shape([[one[0], one[1]] for one in CATALOG.columns_of(f"{node}__dbt_tmp")])
        elif "dbt_sbq_tmp" in text or "__dbt_sbq" in text:
            self._shape([[one[0], one[1]] for one in self._columns(text, node)])

    def _columns(self, text: str, node: str) -> list[list[Any]]:
        """Return the columns of a query of no rows: those that it casts, else those of its node."""
        cast = re.findall(r"cast\(null as (\w+)(?:\([^)]*\))?\)\s+as (\w+)", text, re.IGNORECASE)
        return [[name, kind.lower()] for kind, name in cast] if cast else CATALOG.columns_of(node)

    def _over(self, text: str) -> list[tuple[str, str]]:
        """Return the views over a relation, where the text has it by three names."""
        named = dict(re.findall(r"referenced_(\w+)_name = '(\w+)'", text))
        words = ".".join(f'"{named[part]}"' for part in ("database", "schema", "entity"))
        found = [one.partition(".") for one, (kind, body) in CATALOG.here.items() if kind == "view" and words in body]
        return [(schema, name) for schema, _, name in found]

    def _rows(self, names: list[str], rows: list[Any]) -> None:
        self.description = [(name, str, None, None, None, None, True) for name in names]
        self.rows = rows

    def _shape(self, columns: list[list[Any]]) -> None:
        self.description = [(name, PYTHON.get(kind, str), None, None, None, None, True) for name, kind in columns]

    def fetchall(self) -> list[Any]:
        """Return what is left of the result."""
        rows, self.rows = self.rows, []
        return rows

    def fetchmany(self, size: int = 1) -> list[Any]:
        """Return some of it."""
        rows, self.rows = self.rows[:size], self.rows[size:]
        return rows

    def fetchone(self) -> Any:
        """Return its next row."""
        return self.rows.pop(0) if self.rows else None

    def nextset(self) -> bool:
        """There is one result."""
        return False

    def close(self) -> None:
        """Nothing is kept."""

    def cancel(self) -> None:
        """Nothing runs."""


class Connection:
    """One session."""

    made = 0

    def __init__(self, text: str) -> None:
        Connection.made += 1
        self.number = Connection.made
        self.autocommit = True
        self.timeout = 0
        self.text = re.sub(r"(PWD=)\{.*?\}", r"\1{*}", text)
        written(session=self.number, node="", connect=self.text)

    def cursor(self) -> Cursor:
        """Return a cursor."""
        return Cursor(self)

    def add_output_converter(self, *_: object) -> None:
        """Nothing is converted."""

    def rollback(self) -> None:
        """Nothing to do: autocommit."""

    def commit(self) -> None:
        """Nothing to do: autocommit."""

    def close(self) -> None:
        """End the session, and with it a transaction that was left open."""
        CATALOG.end(commit=False)
        written(session=self.number, node="", closed=True)


def connect(text: str, **_: object) -> Connection:
    """Open a session."""
    return Connection(text)
