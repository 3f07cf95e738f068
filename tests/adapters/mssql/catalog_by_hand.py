"""The server's catalog views as tables that a test fills, and the product's own statements asked of them, in SQLite.

Where no server is given, this shows whom and what a statement finds: its joins, conditions and branches, as they stand
in the file. It shows nothing of types, collations, permissions or plans. The views have the columns that Microsoft's
documentation gives them (`tests/sqltext/binding/server_views.toml`).
"""

from __future__ import annotations

import re
import sqlite3
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from dpone_provider.application.installation.tsql import Kind, Token, tokens

VIEWS: Final = Path(__file__).parents[2] / "sqltext" / "binding" / "server_views.toml"
DATABASE, CONTROL = (7, "sales"), (5, "dpone")
TAG: Final = bytes.fromhex("64706F6E6501")
_COLUMN: Final = re.compile(r"(\w+)\s+(\w+)")
_COUNTED: Final = ("bit", "tinyint")
"""Types of flags and codes: zero where a test says nothing."""
_TYPED: Final = ("CONVERT", "CAST")


@cache
def views() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Return the columns of each view, with their types."""
    said = tomllib.loads(VIEWS.read_text(encoding="utf-8"))
    return {
        name.removeprefix("sys."): tuple(_COLUMN.findall(view["columns"]))
        for name, view in said.items()
        if name.startswith("sys.")
    }


def translated(statement: str) -> str:
    """Return a query of T-SQL as SQLite understands it."""
    return "".join(_said(_lateral(list(tokens(statement)))))


def _said(found: Sequence[Token]) -> Iterator[str]:
    at = 0
    while at < len(found):
        token = found[at]
        if token.word == "COLLATE":
            at += 2
            continue
        yield " " + _one(token)
        at += 1
        if token.word in _TYPED and at < len(found):
            end = next(
                here for here in range(at, len(found)) if found[here].text == "," and _depth(found[at:here]) == 1
            )
            yield "('" + " ".join(one.text for one in found[at + 1 : end]) + "'"
            at = end


def _depth(found: Sequence[Token]) -> int:
    return sum({"(": 1, ")": -1}.get(one.text, 0) for one in found)


def _one(token: Token) -> str:
    match token.kind:
        case Kind.STRING:
            return "'" + token.value.replace("'", "''") + "'"
        case Kind.NUMBER if token.text.lower().startswith("0x"):
            return f"X'{token.text[2:]}'"
        case Kind.VARIABLE:
            return ":" + token.text[1:]
        case _:
            return {"+": "||", "OPENJSON": "json_each"}.get(token.text, token.text)


def _lateral(found: list[Token]) -> list[Token]:
    """Rewrite ``FROM x AS d CROSS APPLY (…) AS said CROSS APPLY (a UNION ALL b) AS found`` as what it says."""
    words = [one.word for one in found]
    applied = [at for at in range(len(words) - 1) if words[at : at + 2] == ["CROSS", "APPLY"]]
    if len(applied) != 2:
        return found
    opened = applied[1] + 2
    closed = next(at for at in range(opened, len(found)) if _depth(found[opened : at + 1]) == 0)
    where = words.index("WHERE", closed)
    rest = words.index("UNION", where)
    ranged = [*tokens("FROM sys.databases AS d, sys.databases AS said WHERE said.database_id = d.database_id AND")]
    ranged += [*found[where + 1 : rest], *tokens("AND (")]
    branches: list[Token] = []
    depth = 0
    for one in found[opened + 1 : closed]:
        depth += {"(": 1, ")": -1}.get(one.text, 0)
        if depth == 0 and one.word == "UNION":
            branches += tokens(")")
        branches += ranged if depth == 0 and one.word == "WHERE" else [one]
    return [*branches, *tokens(")"), *found[rest:]]


def _like(pattern: str, text: str | None) -> bool | None:
    if text is None:
        return None
    escaped = re.sub(
        r"\[(.)\]|(%)|(_)|(.)",
        lambda one: re.escape(one[1]) if one[1] else ".*" if one[2] else "." if one[3] else re.escape(one[4]),
        pattern,
    )
    return re.fullmatch(escaped, text, re.IGNORECASE | re.DOTALL) is not None


@dataclass
class Catalog:
    """Views by hand. Functions of the server answer from what stands in them."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    login: str = "controller"
    properties: dict[tuple[object, str], object] = field(default_factory=dict)
    """What OBJECTPROPERTY and DATABASEPROPERTYEX answer, by object id or name and the property."""

    def add(self, view: str, **row: Any) -> None:
        """Put a row into a view, or into a table of ``dpone_receipt``."""
        self.rows.setdefault(view, []).append(row)

    def found(self, view: str, **given: Any) -> dict[str, Any] | None:
        """Return the first row that is so."""
        return next(
            (row for row in self.rows.get(view, []) if all(row.get(name) == value for name, value in given.items())),
            None,
        )

    def ask(self, statement: str, **given: object) -> list[tuple[Any, ...]]:
        """Run a statement; what it declares first is a value of the rest."""
        with self._open(statement) as own:
            values: dict[str, object] = dict(given)
            while (declared := re.match(r"\s*DECLARE @(\w+) \w+ = (.*?);\s", statement, re.DOTALL)) is not None:
                (values[declared[1]],) = own.execute("SELECT " + translated(declared[2]), values).fetchone()
                statement = statement[declared.end() :]
            return own.execute(translated(statement.strip().removesuffix(";")), values).fetchall()

    def _open(self, statement: str) -> sqlite3.Connection:
        own = sqlite3.connect(":memory:")
        for schema in ("sys", "dpone_receipt"):
            own.execute(f"ATTACH ':memory:' AS {schema}")
        for name, columns in views().items():
            if f"sys.{name}" not in statement:
                continue
            own.execute(f"CREATE TABLE sys.{name} ({', '.join(column for column, _ in columns)})")
            for row in self.rows.get(name, []):
                whole = {column: 0 if kind in _COUNTED else None for column, kind in columns} | row
                assert len(whole) == len(columns), set(row) - {column for column, _ in columns}
                own.execute(f"INSERT INTO sys.{name} VALUES ({', '.join('?' * len(whole))})", tuple(whole.values()))
        own.execute(
            "CREATE TABLE dpone_receipt.managed_schema (schema_name, schema_id, writer_role, writer_id, owner_id)"
        )
        for row in self.rows.get("managed_schema", []):
            own.execute("INSERT INTO dpone_receipt.managed_schema VALUES (?, ?, ?, ?, ?)", tuple(row.values()))
        own.execute("CREATE TABLE dpone_receipt.writers (principal, kind, why, counts)")
        for row in self.rows.get("writers", []):
            own.execute("INSERT INTO dpone_receipt.writers VALUES (?, ?, ?, ?)", tuple(row.values()))
        for called, function in self._functions().items():
            own.create_function(called, -1, function)
        return own

    def _functions(self) -> Mapping[str, Callable[..., Any]]:
        return {
            "like": _like,
            "CONVERT": lambda kind, value, style=0: value,
            "DB_ID": lambda name=DATABASE[1]: {name: number for number, name in (DATABASE, CONTROL)}.get(name),
            "DB_NAME": lambda number=DATABASE[0]: dict((DATABASE, CONTROL)).get(number),
            "SCHEMA_ID": lambda name: self._get("schemas", "schema_id", name=name),
            "SCHEMA_NAME": lambda number: self._get("schemas", "name", schema_id=number),
            "OBJECT_NAME": lambda number: self._get("objects", "name", object_id=number),
            "OBJECT_SCHEMA_NAME": lambda number: self._get(
                "schemas", "name", schema_id=self._get("objects", "schema_id", object_id=number)
            ),
            "USER_NAME": lambda number: self._get("database_principals", "name", principal_id=number),
            "SUSER_SNAME": lambda sid: self._get("server_principals", "name", sid=sid),
            "SUSER_SID": lambda name=self.login: self._sid(name),
            "ORIGINAL_LOGIN": lambda: self.login,
            "IS_SRVROLEMEMBER": self._in_role,
            "OBJECTPROPERTY": lambda number, asked: self.properties.get((number, asked), 0),
            "DATABASEPROPERTYEX": lambda name, asked: self.properties.get((name, asked)),
        }

    def _get(self, view: str, column: str, **given: Any) -> Any:
        row = self.found(view, **given)
        return None if row is None else row[column]

    def _sid(self, name: str | None) -> bytes | None:
        """An instance that ignores case."""
        for row in self.rows.get("server_principals", []):
            if name is not None and row["name"].lower() == name.lower():
                found: bytes = row["sid"]
                return found
        return None

    def _in_role(self, role: str, login: str | None) -> int | None:
        wanted, member = (self.found("server_principals", name=name) for name in (role, login))
        if wanted is None or member is None:
            return None
        held, before = {member["principal_id"]}, -1
        while len(held) > before:
            before = len(held)
            memberships = self.rows.get("server_role_members", [])
            held |= {row["role_principal_id"] for row in memberships if row["member_principal_id"] in held}
        return int(wanted["principal_id"] in held)
