"""What stands at a name in an SQL database: in the engine's own terms, and as the schema core knows tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused, refuse
from dpone_provider.domain.schema.tables import (
    Absent,
    Column,
    ForeignKey,
    Index,
    Observed,
    Occupied,
    Present,
    RelationKind,
    Table,
    Unreadable,
)
from dpone_provider.domain.schema.types import LogicalType

SUPPORTED = "a supported type"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineColumn:
    """A column in an engine's terms.

    Attributes:
        engine_type: as people write it on that engine.
        logical: the logical type, None outside of the closed set; ``instead`` then says what would be in it.
        alters: in words, what the column does to values that are sent; empty if it stores them as they are.
        computed: the server makes its values.
        collation: the collation that says which characters it holds; None for no text, and where the engine needs none.
    """

    name: str
    engine_type: str
    logical: LogicalType | None
    nullable: bool
    comment: str
    computed: bool
    alters: str = ""
    instead: str = SUPPORTED
    collation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An object that stands at a name.

    Attributes:
        identity: the engine's own number of the object, as text.
        kind: what else than an ordinary table it is; None for an ordinary table.
        owner: who owns it; empty for whoever owns its schema, where an engine has that.
        readable: this login may SELECT from it.
        writable: this login may change its rows or definition.
        row_security: rows of it may be hidden from this login.
    """

    relation: Relation
    identity: str
    kind: RelationKind | None
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
        if self.kind is not None:
            return Occupied(self.relation, self.kind)
        columns = []
        for column in self.columns:
            if column.logical is None:
                return Unreadable(self.relation, _unsupported(self.relation, column))
            columns.append(
                Column(name=column.name, type=column.logical, nullable=column.nullable, comment=column.comment)
            )
        if not columns:
            return Unreadable(self.relation, unusable(self.relation, "a table without columns", "at least one column"))
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


def countable(found: Iterable[Found]) -> list[Standing]:
    """Return the ordinary tables of which this login may tell whether they hold rows, without a filter of rows."""
    return [
        one for one in found if isinstance(one, Standing) and one.kind is None and one.readable and not one.row_security
    ]


def as_observed(found: Sequence[Found], holding_rows: Mapping[str, bool]) -> tuple[Observed, ...]:
    """Return what was found as the schema core knows it; a table whose rows may not be looked at may hold some."""
    return tuple(
        one.observed(has_rows=holding_rows.get(one.identity, True)) if isinstance(one, Standing) else one
        for one in found
    )


def unusable(relation: Relation, found: str, allowed: str) -> Refused:
    """Return why nothing can be told of a name."""
    return refuse(
        "relation_unreadable",
        f"relation {relation}",
        found=found,
        allowed=allowed,
        next_command="correct the name, or have an administrator grant the right",
    )


def not_given_back(relation: Relation, column: str, logical: LogicalType, engine: str) -> Refused:
    """Return why no column of a type is made: the engine would not give it back. The rules refuse it before."""
    return refuse(
        "lossy_type",
        f"column {column!r} of table {relation}",
        found=logical,
        allowed=f"a type that {engine} gives back as it was declared",
        next_command="declare another type, then dpone compile",
    )


def _unsupported(relation: Relation, column: EngineColumn) -> Refused:
    return refuse(
        "unsupported_type",
        f"column {column.name!r} of table {relation}",
        found=column.engine_type,
        allowed=f"{column.instead}; docs/reference-types lists them",
        next_command="give the column a supported type, or read it through a view that casts it",
    )
