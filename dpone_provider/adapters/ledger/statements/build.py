"""The few forms that the ledger's statements have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Table,
    and_,
    bindparam,
    exists,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import Insert

from dpone_provider.adapters.ledger.locks import Statement


def param(prefix: str, column: Any) -> BindParameter[Any]:
    """Return the parameter ``<prefix>_<column>`` in the column's own type."""
    return bindparam(f"{prefix}_{column.name}", type_=column.type)


def is_id(column: Any) -> ColumnElement[bool]:
    """Return ``column = :id_<column>``."""
    return column == param("id", column)  # type: ignore[no-any-return]


def among(column: Any) -> ColumnElement[bool]:
    """Return ``column IN (:ids …)``."""
    return column.in_(bindparam("ids", expanding=True, type_=column.type))  # type: ignore[no-any-return]


def as_read(column: Any) -> ColumnElement[bool]:
    """Return whether the column still is what the script had read; nothing equals nothing."""
    was = param("was", column)
    return or_(column == was, and_(column.is_(None), was.is_(None))) if column.nullable else column == was


def add(table: Table) -> Statement:
    """Return the INSERT of one row, or of many when sent with many parameter sets."""
    return Statement(f"insert {table.name}", insert(table).inline())


def move(table: Table, keys: Sequence[str], moved: Sequence[str]) -> Statement:
    """Return the UPDATE of one row, guarded by the whole state that was read."""
    found = [is_id(table.c[key]) for key in keys]
    guarded = [as_read(table.c[name]) for name in moved]
    values = {name: param("to", table.c[name]) for name in moved}
    return Statement(f"move {table.name}", update(table).where(*found, *guarded).values(values))


class InsertIfAbsent(Insert):
    """An INSERT of one row that does nothing when its primary key is there already; it waits for a rival's commit."""

    inherit_cache = True
    key_name: str
    """The primary key's name on SQL Server."""


@compiles(InsertIfAbsent, "postgresql")
def _for_postgres(element: InsertIfAbsent, compiler: SQLCompiler, **options: Any) -> str:
    table = element.table
    return compiler.process(postgresql.insert(table).values(_values(table)).on_conflict_do_nothing(), **options)


@compiles(InsertIfAbsent, "mssql")
def _for_mssql(element: InsertIfAbsent, compiler: SQLCompiler, **options: Any) -> str:
    """UPDLOCK and HOLDLOCK keep the gap in the primary key where the row would be, so that two rivals queue up."""
    table = element.table
    key = ", ".join(column.name for column in table.c if column.primary_key)
    there = exists(
        select(literal(1))
        .select_from(table)
        .where(*(column == value for column, value in _pairs(table) if column.primary_key))
        .with_hint(table, f"WITH (UPDLOCK, HOLDLOCK, FORCESEEK ({element.key_name} ({key})))", "mssql")
    )
    rows = select(*(value for _, value in _pairs(table))).where(~there)
    return compiler.process(insert(table).from_select([column.name for column in table.c], rows), **options)


def add_if_absent(table: Table, key_name: str) -> Statement:
    """Return the INSERT of one row that may be there already, by its primary key; parameters are ``to_…``."""
    sql = InsertIfAbsent(table)
    sql.key_name = key_name
    return Statement(f"insert {table.name} if absent", sql)


def _pairs(table: Any) -> list[tuple[Any, BindParameter[Any]]]:
    return [(column, param("to", column)) for column in table.c]


def _values(table: Any) -> dict[str, BindParameter[Any]]:
    return {column.name: value for column, value in _pairs(table)}
