"""What stands at some names, read with one statement, in PostgreSQL's own terms and as logical tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpone_provider.adapters.postgres import types
from dpone_provider.adapters.postgres.names import too_long
from dpone_provider.adapters.postgres.session import Session
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
TABLE: Final = "r"
KINDS: Final = {
    "v": RelationKind.VIEW,
    "m": RelationKind.MATERIALIZED_VIEW,
    "f": RelationKind.FOREIGN_TABLE,
    "p": RelationKind.PARTITIONED_TABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineColumn:
    """A column in PostgreSQL's terms. ``computed``: the server makes its values (generated, identity)."""

    name: str
    engine_type: str
    logical: LogicalType | None
    nullable: bool
    comment: str
    computed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A relation that stands at a name. ``oid`` is its identity, ``persistence`` ``p`` if its rows survive a crash,
    ``writable`` whether this login may change them."""

    relation: Relation
    oid: str
    relkind: str
    persistence: str
    is_partition: bool
    row_security: bool
    owner: str
    readable: bool
    writable: bool
    comment: str
    columns: tuple[EngineColumn, ...]
    primary_key: tuple[str, ...]
    primary_key_name: str | None
    indexes: tuple[Index, ...]
    foreign_keys: tuple[ForeignKey, ...]

    @property
    def is_plain_table(self) -> bool:
        """Whether it is an ordinary table of its own."""
        return self.relkind == TABLE and not self.is_partition

    def observed(self, *, has_rows: bool = True) -> Present | Occupied | Unreadable:
        """Return it as the schema core knows tables."""
        if not self.is_plain_table:
            partition = self.relkind == TABLE
            kind = RelationKind.PARTITIONED_TABLE if partition else KINDS.get(self.relkind, RelationKind.OTHER)
            return Occupied(self.relation, kind)
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
    parameters = {"schemas": [one.schema for one in asked], "names": [one.name for one in asked]}
    rows = iter(session.rows(STATEMENTS["definitions"], parameters) if asked else ())
    found: list[Found] = []
    for relation in relations:
        cut = too_long(relation)
        found.append(Unreadable(relation, cut) if cut is not None else _found(relation, next(rows)))
    return tuple(found)


def _found(relation: Relation, row: Sequence[Any]) -> Found:
    _, _, schema_exists, may_look, oid, relkind, persistence, is_partition, row_security, owner, *rest = row
    readable, writable, comment, columns, key, indexes, foreign_keys = rest
    if not schema_exists:
        return Unreadable(relation, _unusable(relation, "no such schema", "an existing schema"))
    if not may_look:
        return Unreadable(relation, _unusable(relation, "a schema that this login may not use", "USAGE on the schema"))
    if oid is None:
        return Absent(relation)
    return Standing(
        relation=relation,
        oid=oid,
        relkind=relkind,
        persistence=persistence,
        is_partition=is_partition,
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


def _column(said: Mapping[str, Any]) -> EngineColumn:
    return EngineColumn(
        name=said["name"],
        engine_type=said["type"],
        logical=types.logical_type(said["type"]) if said["builtin"] else None,
        nullable=said["nullable"],
        comment=said["comment"],
        computed=said["generated"],
    )


def _foreign_key(said: Mapping[str, Any]) -> ForeignKey:
    return ForeignKey(
        name=said["name"],
        columns=tuple(said["columns"]),
        references=Relation(said["schema"], said["table"]),
        referenced_columns=tuple(said["referenced"]),
    )


def _unsupported(relation: Relation, column: EngineColumn) -> Failure:
    allowed = "numeric(p,s) with p up to 38" if column.engine_type == types.UNBOUNDED_NUMERIC else "a supported type"
    return refuse(
        "unsupported_type",
        f"column {column.name!r} of table {relation}",
        found=column.engine_type,
        allowed=f"{allowed}; docs/reference-types lists them",
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
