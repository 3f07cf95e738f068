"""How each column is read so that every value arrives exactly, whatever a driver makes of SQL Server's types.

Dates, times and instants come as integers that the server counts; a decimal of up to 18 digits as a scaled 64-bit
integer, a longer one as text; a uniqueidentifier as text, since its bytes are in an order of their own. Text of a code
page is turned into Unicode by the server. What Arrow has no value for is counted by the server in the same snapshot
(``guard``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

import pyarrow as pa

from dpone_provider.adapters.mssql.names import Fragment, identifier
from dpone_provider.adapters.mssql.types import READ_ONLY, sql_type
from dpone_provider.application.relational.definitions import EngineColumn
from dpone_provider.columnar.arrow_types import arrow_type
from dpone_provider.columnar.offence import Rule
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

SCALED_DIGITS: Final = 18
"""Every number of so many digits fits into 64 bits."""
_MICROSECOND_DIGITS: Final = 6
_STYLES: Final = {Timestamp: ", 126", TimestampTz: ", 127"}
"""How ISO 8601 is said to CONVERT: without a zone, and with one."""
_NANOSECOND_DAYS: Final = ("1677-09-22", "2262-04-11")
"""The days between which nanoseconds from 1970 fit into 64 bits, whole days only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A condition that no row may meet: which rule the value would break, and what is allowed."""

    condition: Fragment
    rule: Rule
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRead:
    """One column: the expression that is selected, and what is guarded."""

    column: Column
    selected: Fragment
    guard: Guard | None

    def values(self, array: pa.Array) -> pa.Array:
        """Return what arrived as what it stands for."""
        logical = self.column.type
        match logical:
            case Decimal() if pa.types.is_integer(array.type):
                return _unscaled(array, logical)
            case Date():
                return array.cast(pa.int32()).cast(pa.date32())
            case Time() | Timestamp() | TimestampTz():
                return array.cast(pa.int64()).cast(arrow_type(logical))
            case _:
                return array


def column_read(column: Column, found: EngineColumn, *, staged: bool = False) -> ColumnRead:
    """Decide how a column of a supported type is read; ``staged``: it stands in a staging table, some types as text."""
    name = identifier(column.name)
    value = staged_value(column, name) if staged else _value(name, found)
    return ColumnRead(column=column, selected=_selected(value, column.type), guard=_guard(value, column.type))


def is_staged_as_text(logical: LogicalType) -> bool:
    """Whether values of a type stand in a staging table as text: those that a bulk load may round, or reorder."""
    match logical:
        case Uuid() | TimestampTz():
            return True
        case Time(precision=digits) | Timestamp(precision=digits):
            return digits > _MICROSECOND_DIGITS
        case _:
            return False


def staged_value(column: Column, name: Fragment) -> Fragment:
    """Return the expression that gives a staged column's value in the target's type."""
    if not is_staged_as_text(column.type):
        return name
    style = _STYLES.get(type(column.type), "")
    return Fragment(f"CONVERT({sql_type(column.type)}, {name}{style})")


def _value(name: Fragment, found: EngineColumn) -> Fragment:
    """Return the column in a type whose every conversion here is exact."""
    old = READ_ONLY.get(found.engine_type)
    if old is not None:
        return Fragment(f"CONVERT({sql_type(old)}, {name})")
    if found.engine_type.startswith(("char(", "varchar(")):
        length = found.engine_type.partition("(")[2].removesuffix(")")
        whole = "max" if length == "max" or int(length) > 4000 else length
        return Fragment(f"CONVERT(nvarchar({whole}), {name})")
    return name


def _selected(value: Fragment, logical: LogicalType) -> Fragment:
    match logical:
        case Decimal(precision=precision, scale=scale):
            if precision > SCALED_DIGITS:
                return Fragment(f"CONVERT(varchar(41), CONVERT(decimal({precision},{scale}), {value}))")
            return Fragment(f"CONVERT(bigint, {value} * CONVERT(decimal(19,0), {10**scale}))")
        case Date():
            return Fragment(f"DATEDIFF(day, CONVERT(date, '19700101', 112), {value})")
        case Time(precision=digits):
            return Fragment(f"DATEDIFF_BIG({_unit(digits)}, CONVERT(time(7), '00:00:00'), {value})")
        case Timestamp(precision=digits):
            return Fragment(f"DATEDIFF_BIG({_unit(digits)}, CONVERT(datetime2(7), '19700101', 112), {value})")
        case TimestampTz(precision=digits):
            epoch = "CONVERT(datetimeoffset(7), '1970-01-01T00:00:00+00:00', 127)"
            return Fragment(f"DATEDIFF_BIG({_unit(digits)}, {epoch}, {value})")
        case Uuid():
            return Fragment(f"CONVERT(char(36), {value})")
        case Boolean() | Integer() | Float() | String() | Binary():
            return value
        case _:
            assert_never(logical)


def _unit(digits: int) -> str:
    return "microsecond" if digits <= _MICROSECOND_DIGITS else "nanosecond"


def _guard(value: Fragment, logical: LogicalType) -> Guard | None:
    match logical:
        case Timestamp(precision=digits) | TimestampTz(precision=digits) if digits > _MICROSECOND_DIGITS:
            first, last = _NANOSECOND_DAYS
            return Guard(
                condition=Fragment(f"({value} < '{first}' OR {value} >= '{last}')"),
                rule=Rule.TIMESTAMP_RANGE,
                limit=f"{logical}: {first} to before {last}, as nanoseconds have no room for more",
            )
        case _:
            return None


def _unscaled(array: pa.Array, logical: Decimal) -> pa.Array:
    """Return integers as the decimals of which they are the unscaled values."""
    whole = array.cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(arrow_type(logical), len(whole), whole.buffers())
