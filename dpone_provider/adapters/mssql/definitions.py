"""What stands at some names, read with one statement, in SQL Server's own terms and as logical tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpone_provider.adapters.mssql import types
from dpone_provider.adapters.mssql.names import too_long
from dpone_provider.adapters.mssql.observation import names_of
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Failure, refuse
from dpone_provider.domain.schema.tables import (
    Absent,
    Column,
    ForeignKey,
    Index,
    Occupied,
    Present,
    RelationKind,
    Table,
    Unreadable,
)
from dpone_provider.domain.schema.types import LogicalType
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("schema.sql"))
TABLE: Final = "U"
VIEW: Final = "V"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineColumn:
    """A column in SQL Server's terms. ``computed``: the server makes its values; ``collation`` None for no text."""

    name: str
    engine_type: str
    logical: LogicalType | None
    nullable: bool
    comment: str
    computed: bool
    collation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An object that stands at a name. ``object_id`` is its identity, ``of_the_schema`` whether it belongs to whoever
    the schema belongs to, ``writable`` whether this login may change its rows or definition."""

    relation: Relation
    object_id: int
    kind: str
    of_the_schema: bool
    owner: str
    readable: bool
    writable: bool
    row_security: bool
    comment: str
    columns: tuple[EngineColumn, ...]
    primary_key: tuple[str, ...]
    primary_key_name: str | None
    indexes: tuple[Index, ...]
    foreign_keys: tuple[ForeignKey, ...]

    def observed(self, *, has_rows: bool = True) -> Present | Occupied | Unreadable:
        """Return it as the schema core knows tables."""
        if self.kind != TABLE:
            return Occupied(self.relation, RelationKind.VIEW if self.kind == VIEW else RelationKind.OTHER)
        columns = []
        for column in self.columns:
            if column.logical is None:
                return Unreadable(self.relation, _unsupported(self.relation, column))
            columns.append(
                Column(name=column.name, type=column.logical, nullable=column.nullable, comment=column.comment)
            )
        if not columns:
            return Unreadable(self.relation, _unusable(self.relation, "a table without columns", "at least one column"))
        return Present(self._table(tuple(columns)), has_rows)

    def _table(self, columns: tuple[Column, ...]) -> Table:
        return Table(
            schema=self.relation.schema,
            name=self.relation.name,
            columns=columns,
            primary_key=self.primary_key,
            primary_key_name=self.primary_key_name,
            comment=self.comment,
            indexes=self.indexes,
            foreign_keys=self.foreign_keys,
        )


Found = Standing | Absent | Unreadable


def read(session: Session, relations: Sequence[Relation]) -> tuple[Found, ...]:
    """Read what stands at each name, in order, with one statement."""
    asked = [relation for relation in relations if too_long(relation) is None]
    rows = iter(session.rows(STATEMENTS["definitions"], {"names": names_of(asked)}) if asked else ())
    found: list[Found] = []
    for relation in relations:
        cut = too_long(relation)
        found.append(Unreadable(relation, cut) if cut is not None else _found(relation, next(rows)))
    return tuple(found)


def _found(relation: Relation, row: Sequence[Any]) -> Found:
    _, schema_exists, may_look, object_id, kind, of_the_schema, owner, readable, writable, comment, *rest = row
    columns, key, indexes, foreign_keys, row_security = rest
    if not schema_exists:
        return Unreadable(
            relation, _unusable(relation, "no such schema, or one that may not be seen", "an existing one")
        )
    if object_id is None:
        if not may_look:
            allowed = "SELECT or VIEW DEFINITION on the schema"
            return Unreadable(relation, _unusable(relation, "a schema that this login may not look into", allowed))
        return Absent(relation)
    keyed = _list(key)
    return Standing(
        relation=relation,
        object_id=object_id,
        kind=kind,
        of_the_schema=bool(of_the_schema),
        owner=owner,
        readable=bool(readable),
        writable=bool(writable),
        row_security=bool(row_security),
        comment=comment or "",
        columns=tuple(_column(one) for one in _list(columns)),
        primary_key=tuple(one["column"] for one in keyed),
        primary_key_name=keyed[0]["name"] if keyed else None,
        indexes=tuple(
            Index(name=name, columns=tuple(one["column"] for one in parts), unique=bool(parts[0]["unique"]))
            for name, parts in _by_name(_list(indexes))
        ),
        foreign_keys=tuple(_foreign_key(name, parts) for name, parts in _by_name(_list(foreign_keys))),
    )


def _list(text: str | None) -> list[Mapping[str, Any]]:
    """Return what FOR JSON gave; of no rows it gives NULL."""
    found: list[Mapping[str, Any]] = json.loads(text) if text else []
    return found


def _by_name(parts: Iterable[Mapping[str, Any]]) -> Iterable[tuple[str, list[Mapping[str, Any]]]]:
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for one in parts:
        grouped.setdefault(one["name"], []).append(one)
    return grouped.items()


def _column(said: Mapping[str, Any]) -> EngineColumn:
    return EngineColumn(
        name=said["name"],
        engine_type=said["type"],
        logical=types.logical_type(said["type"]) if said["builtin"] else None,
        nullable=bool(said["nullable"]),
        comment=said.get("comment", ""),
        computed=bool(said["computed"]),
        collation=said.get("collation"),
    )


def _foreign_key(name: str, parts: Sequence[Mapping[str, Any]]) -> ForeignKey:
    return ForeignKey(
        name=name,
        columns=tuple(one["column"] for one in parts),
        references=Relation(parts[0]["schema"], parts[0]["table"]),
        referenced_columns=tuple(one["referenced"] for one in parts),
    )


def _unsupported(relation: Relation, column: EngineColumn) -> Failure:
    return refuse(
        "unsupported_type",
        f"column {column.name!r} of table {relation}",
        found=column.engine_type,
        allowed="a supported type; docs/reference-types lists them",
        next_command="give the column a supported type, or read it through a view that casts it",
    )


def _unusable(relation: Relation, found: str, allowed: str) -> Failure:
    return refuse(
        "relation_unreadable",
        f"relation {relation}",
        found=found,
        allowed=allowed,
        next_command="correct the name, or have an administrator grant the right",
    )
