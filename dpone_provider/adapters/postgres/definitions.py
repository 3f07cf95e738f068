"""What stands at some names, read with one statement, in PostgreSQL's own terms and as logical tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpone_provider.adapters.postgres import types
from dpone_provider.adapters.postgres.names import too_long
from dpone_provider.adapters.postgres.session import Session
from dpone_provider.application.relational.definitions import SUPPORTED, EngineColumn, Found, Standing, unusable
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Absent, ForeignKey, Index, RelationKind, Unreadable
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("schema.sql"))
TABLE: Final = "r"
KINDS: Final = {
    "v": RelationKind.VIEW,
    "m": RelationKind.MATERIALIZED_VIEW,
    "f": RelationKind.FOREIGN_TABLE,
    "p": RelationKind.PARTITIONED_TABLE,
}


def read(session: Session, relations: Sequence[Relation]) -> tuple[Found, ...]:
    """Read what stands at each name, in order, with one statement."""
    asked = [relation for relation in relations if too_long(relation) is None]
    parameters = {"schemas": [one.schema for one in asked], "names": [one.name for one in asked]}
    rows = iter(session.rows(STATEMENTS["definitions"], parameters) if asked else ())
    found: list[Found] = []
    for relation in relations:
        cut = too_long(relation)
        found.append(Unreadable(relation, cut) if cut is not None else _found(relation, next(rows)))
    return tuple(found)


def _found(relation: Relation, row: Sequence[Any]) -> Found:
    _, _, schema_exists, may_look, oid, relkind, is_partition, row_security, owner, *rest = row
    readable, writable, comment, columns, key, indexes, foreign_keys = rest
    if not schema_exists:
        return Unreadable(relation, unusable(relation, "no such schema", "an existing schema"))
    if not may_look:
        return Unreadable(relation, unusable(relation, "a schema that this login may not use", "USAGE on the schema"))
    if oid is None:
        return Absent(relation)
    return Standing(
        relation=relation,
        identity=oid,
        kind=_kind(relkind, is_partition),
        row_security=row_security,
        owner=owner,
        readable=readable,
        writable=writable,
        comment=comment,
        columns=tuple(_column(one) for one in columns),
        primary_key=tuple(key["columns"]) if key else (),
        primary_key_name=key["name"] if key else None,
        indexes=tuple(Index(name=one["name"], columns=tuple(one["columns"]), unique=one["unique"]) for one in indexes),
        foreign_keys=tuple(_foreign_key(one) for one in foreign_keys),
    )


def _kind(relkind: str, is_partition: bool) -> RelationKind | None:
    if relkind != TABLE:
        return KINDS.get(relkind, RelationKind.OTHER)
    return RelationKind.PARTITIONED_TABLE if is_partition else None


def _column(said: Mapping[str, Any]) -> EngineColumn:
    return EngineColumn(
        name=said["name"],
        engine_type=said["type"],
        logical=types.logical_type(said["type"]) if said["builtin"] else None,
        nullable=said["nullable"],
        comment=said["comment"],
        computed=said["generated"],
        alters="" if types.keeps_values(said["type"]) else "pads its values",
        instead="numeric(p,s) with p up to 38" if said["type"] == types.UNBOUNDED_NUMERIC else SUPPORTED,
    )


def _foreign_key(said: Mapping[str, Any]) -> ForeignKey:
    return ForeignKey(
        name=said["name"],
        columns=tuple(said["columns"]),
        references=Relation(said["schema"], said["table"]),
        referenced_columns=tuple(said["referenced"]),
    )
