"""Logical types in ClickHouse, both ways.

=================  ======================  ==========================================================================
logical            ClickHouse              note
=================  ======================  ==========================================================================
boolean            Bool
int8 … int64       Int8 … Int64
uint8              UInt8
float32, float64   Float32, Float64
decimal(p,s)       Decimal(p, s)
string, string(n)  String                  no length there: string(n) is normalised to string
binary             –                       refused: String is the same type, so it could not be told from text
date               Date32                  Date (1970 to 2149) fails by name
time(p)            Time64(p)               ClickHouse 25.6 and later
timestamp(p)       DateTime64(p, 'UTC')    shows the same wall clock on every server, whatever its own zone
timestamp_tz(p)    DateTime64(p)           an instant, shown in the server's or session's zone
uuid               UUID
=================  ======================  ==========================================================================

A column that may be NULL is ``Nullable(…)``. Other engine types, LowCardinality too, fail by name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, assert_never

from dpone_provider.adapters.clickhouse.names import Sql
from dpone_provider.domain.outcomes import Refused, refuse
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import (
    Binary,
    Boolean,
    Date,
    Decimal,
    Float,
    Integer,
    LogicalType,
    String,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
)

_PLAIN: Final[dict[str, LogicalType]] = {
    "Bool": Boolean(),
    "Int8": Integer(8),
    "Int16": Integer(16),
    "Int32": Integer(32),
    "Int64": Integer(64),
    "UInt8": Integer(8, signed=False),
    "Float32": Float(32),
    "Float64": Float(64),
    "String": String(),
    "Date32": Date(),
    "UUID": Uuid(),
}
_NULLABLE: Final = re.compile(r"Nullable\((.*)\)")
_DECIMAL: Final = re.compile(r"Decimal\((\d+), (\d+)\)")
_TIME: Final = re.compile(r"Time64\((\d)\)")
_TIMESTAMP: Final = re.compile(r"DateTime64\((\d), 'UTC'\)")
_TIMESTAMP_TZ: Final = re.compile(r"DateTime64\((\d)\)")
_WIDEST_DECIMAL: Final = 38


def engine_type(column: Column) -> Sql | Refused:
    """Return the column's type in ClickHouse's own spelling, or refuse one that it cannot hold."""
    found = _engine_type(column.type)
    if found is None:
        return refuse(
            "unsupported_type",
            f"column {column.name!r}",
            found=f"{column.type}, which ClickHouse stores as String and so could not tell from text",
            allowed="a logical type that ClickHouse gives back",
            next_command="declare it as string (encoded), or leave the column out, then run dpone compile",
        )
    return Sql(f"Nullable({found})" if column.nullable else found)


def _engine_type(logical: LogicalType) -> str | None:
    match logical:
        case Boolean():
            return "Bool"
        case Integer(bits=bits, signed=signed):
            return f"{'' if signed else 'U'}Int{bits}"
        case Float(bits=bits):
            return f"Float{bits}"
        case Decimal(precision=precision, scale=scale):
            return f"Decimal({precision}, {scale})"
        case String():
            return "String"
        case Binary():
            return None
        case Date():
            return "Date32"
        case Time(precision=digits):
            return f"Time64({digits})"
        case Timestamp(precision=digits):
            return f"DateTime64({digits}, 'UTC')"
        case TimestampTz(precision=digits):
            return f"DateTime64({digits})"
        case Uuid():
            return "UUID"
        case _:
            assert_never(logical)


def logical_type(spelling: str) -> tuple[LogicalType, bool] | None:
    """Return the logical type and nullability of a type as ``system.columns`` spells it; None outside the set."""
    nullable = _NULLABLE.fullmatch(spelling)
    inner = nullable[1] if nullable else spelling
    found = _PLAIN.get(inner) or _with_numbers(inner)
    return None if found is None else (found, nullable is not None)


def _with_numbers(spelling: str) -> LogicalType | None:
    if (match := _DECIMAL.fullmatch(spelling)) and int(match[1]) <= _WIDEST_DECIMAL:
        return Decimal(int(match[1]), int(match[2]))
    if match := _TIME.fullmatch(spelling):
        return Time(int(match[1]))
    if match := _TIMESTAMP.fullmatch(spelling):
        return Timestamp(int(match[1]))
    if match := _TIMESTAMP_TZ.fullmatch(spelling):
        return TimestampTz(int(match[1]))
    return None


def normalised_column(column: Column) -> Column:
    """Return the column as ClickHouse would give it back: string(n) has lost its length, nothing else differs."""
    kept = String() if isinstance(column.type, String) else column.type
    return replace(column, type=kept)
