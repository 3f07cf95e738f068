"""Tables as values: what is declared, and what was observed at a name.

The same ``Table`` serves both sides. On a *declared* table an optional aspect of ``None`` means "not managed: leave it
as it is"; an empty value means "there must be none". An *observed* table has every aspect filled in, save those that
its engine does not have. What an engine cannot give back as it was declared is not modelled (defaults, checks).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Failure
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.types import LogicalType


def require_name(name: str, subject: str) -> None:
    """Check a name of a schema, table, column, index or key.

    Raises:
        InvalidSchemaValue: if it is empty, holds a NUL, or is not in Unicode normal form C. Two spellings of one name
            must not exist: NFC is how every document is written.
    """
    if not name:
        raise InvalidSchemaValue(subject=subject, found="an empty name", allowed="at least one character")
    if "\x00" in name:
        raise InvalidSchemaValue(subject=subject, found=repr(name), allowed="a name without NUL")
    if not unicodedata.is_normalized("NFC", name):
        raise InvalidSchemaValue(
            subject=subject, found=ascii(name), allowed=f"its NFC form {unicodedata.normalize('NFC', name)!a}"
        )


def _require_distinct(names: Iterable[str], subject: str, what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidSchemaValue(subject=subject, found=f"{what} {name!r} twice", allowed=f"each {what} once")
        seen.add(name)


def _require_known(names: Iterable[str], known: Iterable[str], subject: str) -> None:
    columns = list(known)
    for name in names:
        if name not in columns:
            raise InvalidSchemaValue(subject=subject, found=f"column {name!r}", allowed=f"one of {columns}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        comment: the comment; ``""`` is none at all, ``None`` is not managed.
        renamed_from: on a declared column, the name that an existing column may still have.

    Raises:
        InvalidSchemaValue: for an invalid name, or a rename from itself.
    """

    name: str
    type: LogicalType
    nullable: bool
    comment: str | None = None
    renamed_from: str | None = None

    def __post_init__(self) -> None:
        """Check the names."""
        require_name(self.name, "column")
        if self.renamed_from is not None:
            require_name(self.renamed_from, f'"renamed_from" of column {self.name!r}')
            if self.renamed_from == self.name:
                raise InvalidSchemaValue(
                    subject=f'"renamed_from" of column {self.name!r}', found=repr(self.name), allowed="another name"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A declared secondary index of an SQL engine: its name and its key columns in order.

    Raises:
        InvalidSchemaValue: for an invalid name, no column, or a column named twice.
    """

    name: str
    columns: tuple[str, ...]
    unique: bool = False

    def __post_init__(self) -> None:
        """Check the names."""
        require_name(self.name, "index")
        if not self.columns:
            raise InvalidSchemaValue(subject=f"index {self.name!r}", found="no column", allowed="at least one column")
        _require_distinct(self.columns, f"index {self.name!r}", "column")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A declared reference: ``columns`` of this table to ``referenced_columns`` of ``references``, in the same order.

    Raises:
        InvalidSchemaValue: for an invalid name, no column, a column named twice, or sides of different length.
    """

    name: str
    columns: tuple[str, ...]
    references: Relation
    referenced_columns: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check names and lengths."""
        require_name(self.name, "foreign key")
        subject = f"foreign key {self.name!r}"
        if not self.columns or len(self.columns) != len(self.referenced_columns):
            raise InvalidSchemaValue(
                subject=subject,
                found=f"{len(self.columns)} columns against {len(self.referenced_columns)}",
                allowed="the same number of columns on both sides, at least one",
            )
        _require_distinct(self.columns, subject, "column")
        _require_distinct(self.referenced_columns, subject, "referenced column")


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """ClickHouse's ENGINE, ORDER BY and PARTITION BY: fixed when a table is created.

    The texts are in ClickHouse's own normal form, as ``system.tables`` gives it back; the adapter normalises declared
    ones.

    Raises:
        InvalidSchemaValue: for an empty engine or an empty expression.
    """

    engine: str
    order_by: tuple[str, ...] = ()
    partition_by: str | None = None

    def __post_init__(self) -> None:
        """Check that no text is empty."""
        if not self.engine or "" in self.order_by or self.partition_by == "":
            raise InvalidSchemaValue(subject="storage", found=repr(self), allowed="an engine, and no empty expression")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: columns in order, and the aspects that are managed.

    Attributes:
        primary_key: its columns in order; ``()`` is no key, ``None`` is not managed.
        primary_key_name: the constraint's name as observed, for dropping it. Engines make names up, so it is not part
            of the table's equality.
        comment: ``""`` is none at all, ``None`` is not managed.
        indexes: declared ones are managed by name; others are reported and left alone.
        foreign_keys: as indexes.
        storage: ClickHouse only; ``None`` is not managed, or not that engine.

    Raises:
        InvalidSchemaValue: for an invalid or doubled name, no column at all, a key or index over a column that is not
            there, or renames that collide.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] | None = None
    primary_key_name: str | None = field(default=None, compare=False)
    comment: str | None = None
    indexes: tuple[Index, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    storage: Storage | None = None

    def __post_init__(self) -> None:
        """Check names, and that everything refers to columns that are there."""
        require_name(self.schema, "schema of a table")
        require_name(self.name, f"table in schema {self.schema!r}")
        subject = f"table {self.schema}.{self.name}"
        if not (self.schema.isprintable() and self.name.isprintable()):
            raise InvalidSchemaValue(subject=ascii(subject), found="control characters", allowed="printable names")
        if not self.columns:
            raise InvalidSchemaValue(subject=subject, found="no column", allowed="at least one column")
        _require_distinct(self.column_names, subject, "column")
        self._check_keys(subject)
        self._check_renames(subject)

    def _check_keys(self, subject: str) -> None:
        _require_distinct(self.primary_key or (), f"primary key of {subject}", "column")
        _require_known(self.primary_key or (), self.column_names, f"primary key of {subject}")
        _require_distinct([each.name for each in self.indexes], subject, "index")
        _require_distinct([each.name for each in self.foreign_keys], subject, "foreign key")
        for index in self.indexes:
            _require_known(index.columns, self.column_names, f"index {index.name!r} of {subject}")
        for key in self.foreign_keys:
            _require_known(key.columns, self.column_names, f"foreign key {key.name!r} of {subject}")

    def _check_renames(self, subject: str) -> None:
        old_names = [each.renamed_from for each in self.columns if each.renamed_from is not None]
        _require_distinct(old_names, subject, '"renamed_from"')
        for old_name in old_names:
            if old_name in self.column_names:
                raise InvalidSchemaValue(
                    subject=subject,
                    found=f'"renamed_from" {old_name!r}, which is also declared as a column',
                    allowed="a name that no declared column has",
                )

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns' names in order."""
        return tuple(each.name for each in self.columns)

    @property
    def relation(self) -> Relation:
        """Schema and name."""
        return Relation(self.schema, self.name)

    def column(self, name: str) -> Column | None:
        """The column of exactly that name, or None."""
        return next((each for each in self.columns if each.name == name), None)


class RelationKind(StrEnum):
    """What can stand at a name instead of an ordinary table."""

    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    FOREIGN_TABLE = "foreign table"
    PARTITIONED_TABLE = "partitioned table"
    SYNONYM = "synonym"
    DICTIONARY = "dictionary"
    OTHER_ENGINE = "table of another engine family"
    OTHER = "another kind of object"


@dataclass(frozen=True, slots=True)
class Present:
    """An ordinary table stands at the name.

    ``has_rows`` is False only if the reader saw, in the same snapshot, that the table is empty; some changes are
    allowed only then.
    """

    table: Table
    has_rows: bool = True


@dataclass(frozen=True, slots=True)
class Occupied:
    """Something else than an ordinary table stands at the name."""

    relation: Relation
    kind: RelationKind


@dataclass(frozen=True, slots=True)
class Absent:
    """Schema and database are there and were readable, and nothing stands at the name."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class Unreadable:
    """It could not be told what stands at the name.

    A missing schema or database, a missing right, a column type outside the closed set: never taken for absence.
    """

    relation: Relation
    failure: Failure


Observed: TypeAlias = Present | Occupied | Absent | Unreadable
"""What reading one name came to; a ``match`` over it ends in ``assert_never``."""
