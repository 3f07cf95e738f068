"""Reading the server's own tables, each answer with the proof that nothing was hidden from the observer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpone_provider.adapters.clickhouse.definitions import mentions
from dpone_provider.adapters.clickhouse.names import Sql, with_names
from dpone_provider.adapters.clickhouse.privileges import Grant, closure
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.domain.identity import Relation
from dpone_provider.sql_files import load

_MOST_PARAMETER_BYTES: Final = 100 * 1024
STATEMENTS: Final = load(Path(__file__).with_name("catalog.sql"))


class Blind(Exception):
    """The observer may not see everything: what it saw proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseRow:
    """One database: ``uuid`` changes when it is dropped and made again."""

    name: str
    engine: str
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One object of a database, whatever its engine; ``definition`` is the server's CREATE statement."""

    database: str
    name: str
    uuid: str
    engine: str
    definition: str
    sorting_key: str
    partition_key: str
    comment: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An object that may read or write other tables by itself."""

    database: str
    name: str
    engine: str
    definition: str

    def may_use(self, relation: Relation) -> bool:
        """Tell whether the definition names the table, being another object than it."""
        itself = (self.database, self.name) == (relation.schema, relation.name)
        return not itself and mentions(self.definition, relation, own_database=self.database)

    def __str__(self) -> str:
        """Return a name for messages."""
        return f"{self.engine} {self.database}.{self.name}"


class Observer:
    """Asks one server through one session.

    Raises:
        Blind: the user lacks ``SHOW ON *.*``, or something was revoked from it.
        ServerError, AnswerLost: as ``Session``.
    """

    def __init__(self, session: Session) -> None:
        """Observe through ``session``."""
        self._session = session

    def identity(self, databases: Iterable[str]) -> tuple[str, tuple[DatabaseRow, ...]]:
        """Return the server's UUID and what is visible of the databases; what is not visible may yet be there."""
        ((server, rows),) = self._session.rows(STATEMENTS["identity"], {"databases": sorted(databases)})
        return str(server), tuple(_database(row) for row in rows)

    def databases(self, names: Iterable[str]) -> tuple[DatabaseRow, ...]:
        """Return those of the databases that exist."""
        return tuple(_database(row) for row in self._seen(STATEMENTS["databases"], {"databases": sorted(names)}))

    def tables(self, databases: Iterable[str], names: Iterable[str]) -> tuple[TableRow, ...]:
        """Return what stands at the names in the databases; for very many names, everything in the databases."""
        return tuple(_table(row) for row in self._seen(STATEMENTS["tables"], _asked(databases, names)))

    def standing(self, statement: str, target: Relation, staging: str, prefix: str) -> tuple[TableRow, ...]:
        """Return what has the target's name, and what in the staging database has a name that begins so."""
        asked = {
            "target_database": target.schema,
            "target": target.name,
            "staging_database": staging,
            "prefix": prefix,
        }
        return tuple(_table(row) for row in self._seen(statement, asked))

    def columns(self, databases: Iterable[str], tables: Iterable[str]) -> list[tuple[str, str, str, str, str]]:
        """Return (database, table, name, type, comment) of each column, in order; asked as ``tables``."""
        return [_strings(row) for row in self._session.rows(STATEMENTS["columns"], _asked(databases, tables))]

    def references(self) -> tuple[Reference, ...]:
        """Return every view, dictionary and forwarding table of the server."""
        tables = [
            Reference(database=row[0], name=row[1], engine=row[2], definition=row[3])
            for row in self._seen(STATEMENTS["readers_and_writers"], {})
        ]
        dictionaries = [
            Reference(database=row[0], name=row[1], engine="Dictionary", definition=row[2])
            for row in self._seen(STATEMENTS["dictionaries"], {})
        ]
        return (*tables, *dictionaries)

    def acting_on(self, relation: Relation) -> tuple[Reference, ...]:
        """Return what reads or writes a table by itself; plain views do not."""
        return tuple(each for each in self.references() if each.engine != "View" and each.may_use(relation))

    def row_policies(self, databases: Iterable[str]) -> list[tuple[str, str, str]]:
        """Return (database, table or '', name) of each row policy."""
        return [
            (row[0], row[1], row[2]) for row in self._seen(STATEMENTS["row_policies"], {"databases": sorted(databases)})
        ]

    def mutations(self, databases: Iterable[str]) -> list[tuple[str, str, str]]:
        """Return (database, table, id) of each mutation that is not done."""
        return [
            (row[0], row[1], row[2]) for row in self._seen(STATEMENTS["mutations"], {"databases": sorted(databases)})
        ]

    def clusters(self) -> tuple[str, ...]:
        """Return the clusters of several hosts that this server is part of."""
        ((names,),) = self._session.rows(STATEMENTS["clusters"])
        return tuple(sorted(names))

    def grants(self) -> tuple[Grant, ...]:
        """Return every grant and revoke."""
        return tuple(_grant(json.loads(line)) for line in self._seen(STATEMENTS["grants"], {}))

    def role_holders(self) -> dict[str, frozenset[str]]:
        """Return for each role everybody who holds it, directly or through another role."""
        return closure((row[0], row[1] or row[2]) for row in self._seen(STATEMENTS["role_grants"], {}))

    def current_user(self) -> str:
        """Return whom the server takes us for."""
        ((name,),) = self._session.rows(STATEMENTS["current_user"])
        return str(name)

    def _seen(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        sql = with_names(statement, {"sees_everything": Sql(STATEMENTS["sees_everything"])})
        ((sees, rows),) = self._session.rows(sql, parameters)
        if not sees:
            raise Blind(self._session.server.credential.user)
        return list(rows)


def _asked(databases: Iterable[str], names: Iterable[str]) -> dict[str, list[str]]:
    listed = sorted(names)
    # A parameter is a field of the URL; the server allows 128 KiB each (http_max_field_value_size), escapes included.
    size = sum(3 * len(name.encode()) + 9 for name in listed)
    return {"databases": sorted(databases), "tables": listed if size < _MOST_PARAMETER_BYTES else []}


def _database(row: tuple[Any, ...]) -> DatabaseRow:
    return DatabaseRow(name=row[0], engine=row[1], uuid=row[2])


def _table(row: tuple[Any, ...]) -> TableRow:
    return TableRow(
        database=row[0],
        name=row[1],
        uuid=row[2],
        engine=row[3],
        definition=row[4],
        sorting_key=row[5],
        partition_key=row[6],
        comment=row[7],
        rows=int(row[8]),
    )


def _grant(row: Mapping[str, Any]) -> Grant:
    return Grant(
        holder=row["user_name"] or row["role_name"],
        is_role=row["user_name"] is None,
        right=row["access_type"],
        database=row["database"] or "",
        table=row["table"] or "",
        column=row["column"] or "",
        is_revoke=bool(row["is_partial_revoke"]),
        with_option=bool(row["grant_option"]),
        is_wildcard=bool(row.get("is_wildcard", 0)),
    )


def _strings(row: tuple[Any, ...]) -> tuple[str, str, str, str, str]:
    database, table, name, kind, comment = (str(part) for part in row)
    return database, table, name, kind, comment
