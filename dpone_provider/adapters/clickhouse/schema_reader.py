"""The definitions of tables as ClickHouse stores them: three statements for any number of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpone_provider.adapters.clickhouse.asking import ask
from dpone_provider.adapters.clickhouse.definitions import PLAIN_ENGINE
from dpone_provider.adapters.clickhouse.expressions import split_expressions
from dpone_provider.adapters.clickhouse.observation import Observer, TableRow
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.adapters.clickhouse.types import logical_type
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Failure, Unknown, refuse
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.tables import (
    Absent,
    Column,
    Observed,
    Occupied,
    Present,
    RelationKind,
    Storage,
    Table,
    Unreadable,
)

_KINDS: Final = {
    "View": RelationKind.VIEW,
    "MaterializedView": RelationKind.MATERIALIZED_VIEW,
    "Dictionary": RelationKind.DICTIONARY,
}
_ColumnRow = tuple[str, str, str, str, str]


class ClickHouseSchemaReader:
    """``SchemaReader`` through the controller's user. Total."""

    def __init__(self, server: ClickHouseServer) -> None:
        """Hold where the tables are."""
        self._session = Session(server)

    def tables(self, relations: Sequence[Relation]) -> tuple[Observed, ...]:
        """Return present, occupied, absent or unreadable for each relation, in order."""
        seen = ask(self._session, lambda session: observed_tables(session, relations))
        return _all_unreadable(relations, seen) if isinstance(seen, Unknown) else seen


def observed_tables(session: Session, relations: Sequence[Relation]) -> tuple[Observed, ...]:
    """Read the relations through an open session.

    Raises:
        Blind, ServerError, AnswerLost: as ``Observer``.
    """
    observer = Observer(session)
    databases = {relation.schema for relation in relations}
    names = {relation.name for relation in relations}
    known = {row.name for row in observer.databases(databases)}
    rows = {Relation(row.database, row.name): row for row in observer.tables(databases, names)}
    columns: dict[Relation, list[_ColumnRow]] = {}
    for column in observer.columns(databases, names):
        columns.setdefault(Relation(column[0], column[1]), []).append(column)
    return tuple(
        _observed(relation, rows.get(relation), columns.get(relation, []), database_known=relation.schema in known)
        for relation in relations
    )


def _observed(
    relation: Relation, row: TableRow | None, columns: Sequence[_ColumnRow], *, database_known: bool
) -> Observed:
    if not database_known:
        return Unreadable(relation, _failure(relation, f"no database {relation.schema}", "an existing database"))
    if row is None:
        return Absent(relation)
    if row.engine != PLAIN_ENGINE:
        return Occupied(relation, _KINDS.get(row.engine, RelationKind.OTHER_ENGINE))
    try:
        table = _table(relation, row, columns)
    except InvalidSchemaValue as error:
        return Unreadable(relation, _failure(relation, error.found, error.allowed))
    return Present(table, has_rows=row.rows > 0)


def _table(relation: Relation, row: TableRow, columns: Sequence[_ColumnRow]) -> Table:
    return Table(
        schema=relation.schema,
        name=relation.name,
        columns=tuple(_column(*column[2:]) for column in columns),
        comment=row.comment,
        storage=Storage(
            engine=row.engine,
            order_by=split_expressions(row.sorting_key),
            partition_by=row.partition_key or None,
        ),
    )


def _column(name: str, spelling: str, comment: str) -> Column:
    found = logical_type(spelling)
    if found is None:
        raise InvalidSchemaValue(
            subject=f"column {name!r}",
            found=f"column {name!r} of type {spelling}",
            allowed="a type of the reference page for ClickHouse",
        )
    logical, nullable = found
    return Column(name=name, type=logical, nullable=nullable, comment=comment)


def _failure(relation: Relation, found: str, allowed: str) -> Failure:
    return refuse(
        "unreadable_definition",
        f"ClickHouse table {relation}",
        found=found,
        allowed=allowed,
        next_command="correct the table or the declaration, then run it again",
    )


def _all_unreadable(relations: Sequence[Relation], failure: Failure) -> tuple[Observed, ...]:
    return tuple(Unreadable(relation, failure) for relation in relations)
