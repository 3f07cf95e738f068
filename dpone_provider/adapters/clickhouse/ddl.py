"""The definition of a staged table as SQL: everything that the declared table says, and what makes it durable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dpone_provider.adapters.clickhouse.names import Sql, quoted, text_literal
from dpone_provider.adapters.clickhouse.types import engine_type
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.schema.tables import Column, Table
from dpone_provider.domain.schema.types import Time

TIME_SETTING: Final = "enable_time_time64_type"
"""Needed for Time64 from ClickHouse 25.6 on; older servers know neither."""


def column_list(table: Table) -> Sql | Refused:
    """Return the columns as they stand between the brackets of CREATE TABLE, or refuse a type."""
    lines = []
    for column in table.columns:
        kind = engine_type(column)
        if isinstance(kind, Refused):
            return kind
        lines.append(_column(column, kind))
    return Sql(",\n    ".join(lines))


def storage_clauses(table: Table) -> Sql:
    """Return PARTITION BY, ORDER BY and SETTINGS of a normalised table."""
    storage = table.storage
    assert storage is not None, "normalise the table first"
    partition = "" if storage.partition_by is None else f"PARTITION BY {storage.partition_by}\n"
    nullable = {column.name for column in table.columns if column.nullable}
    named = {name for each in storage.order_by for name in (each, each.strip("`"))}
    allow = ", allow_nullable_key = 1" if nullable & named else ""
    return Sql(
        f"{partition}ORDER BY {_key(storage.order_by)}\n"
        f"SETTINGS fsync_after_insert = 1, fsync_part_directory = 1{allow}"
    )


def comment_clause(table: Table) -> Sql:
    """Return COMMENT of the table; nothing when there is none to set."""
    return Sql(f"\nCOMMENT {text_literal(table.comment)}" if table.comment else "")


def creation_settings(table: Table) -> dict[str, int]:
    """Return the settings that creating the table needs."""
    return {TIME_SETTING: 1} if any(isinstance(column.type, Time) for column in table.columns) else {}


def _key(expressions: Sequence[str]) -> str:
    """Return a key as the server would keep it: it would keep brackets around a single expression."""
    return expressions[0] if len(expressions) == 1 else f"({', '.join(expressions)})"


def _column(column: Column, kind: Sql) -> str:
    comment = f" COMMENT {text_literal(column.comment)}" if column.comment else ""
    return f"{quoted(column.name)} {kind}{comment}"
