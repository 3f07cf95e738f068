"""What stands at some names, read with one statement, in SQL Server's own terms and as logical tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpone_provider.adapters.mssql import types
from dpone_provider.adapters.mssql.names import too_long
from dpone_provider.adapters.mssql.observation import names_of
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.application.relational.definitions import EngineColumn, Found, Standing, unusable
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Absent, ForeignKey, Index, RelationKind, Unreadable
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("schema.sql"))
TABLE: Final = "U"
KINDS: Final = {"V": RelationKind.VIEW}


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
            relation, unusable(relation, "no such schema, or one that may not be seen", "an existing one")
        )
    if object_id is None:
        if not may_look:
            allowed = "SELECT or VIEW DEFINITION on the schema"
            return Unreadable(relation, unusable(relation, "a schema that this login may not look into", allowed))
        return Absent(relation)
    keyed = _list(key)
    return Standing(
        relation=relation,
        identity=str(object_id),
        kind=None if kind == TABLE else KINDS.get(kind, RelationKind.OTHER),
        owner="" if of_the_schema else owner,
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
        alters="" if types.keeps_values(said["type"]) else "pads, rounds or replaces values",
        collation=said.get("collation"),
    )


def _foreign_key(name: str, parts: Sequence[Mapping[str, Any]]) -> ForeignKey:
    return ForeignKey(
        name=name,
        columns=tuple(one["column"] for one in parts),
        references=Relation(parts[0]["schema"], parts[0]["table"]),
        referenced_columns=tuple(one["referenced"] for one in parts),
    )
