"""What an engine can store of a logical type's values, as far as that is less than all of them.

Days count from 1970-01-01; instants are nanoseconds from 1970-01-01 00:00 as unbounded integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Final

from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import Decimal, LogicalType, Time, Timestamp, TimestampTz

NANOSECONDS_PER_DAY: Final = 86_400_000_000_000
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_INT64_MICROSECONDS_AS_NS: Final = (2**63 - 1) * 1000


class LengthUnit(StrEnum):
    """What an engine counts when it says string(n)."""

    CODE_POINTS = "characters"
    UTF16_UNITS = "UTF-16 code units"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLimits:
    """The limits of one engine.

    Attributes:
        engine: its name, for messages.
        allows_nul: whether text may hold U+0000.
        allows_nan: whether float columns may hold NaN and the infinities.
        allows_subnormal: whether float columns may hold subnormal numbers.
        max_decimal_precision: digits of its widest decimal, never above 38 here.
        max_fractional_digits: finest time, timestamp and timestamp_tz.
        string_unit: what string(n) counts there.
    """

    engine: str
    min_day: int
    max_day: int
    min_instant: int
    max_instant: int
    allows_nul: bool
    allows_nan: bool
    allows_subnormal: bool
    max_decimal_precision: int
    max_fractional_digits: int
    string_unit: LengthUnit = LengthUnit.CODE_POINTS


def _day(year: int, month: int, day: int) -> int:
    return date(year, month, day).toordinal() - _EPOCH_ORDINAL


def _end_of(year: int, month: int, day: int) -> int:
    return (_day(year, month, day) + 1) * NANOSECONDS_PER_DAY - 1


POSTGRES: Final = TargetLimits(
    engine="PostgreSQL",
    # src/include/datatype/timestamp.h: dates are Julian days 0 (4714-11-24 BC) to 2147483493 (5874897-12-31);
    # 1970-01-01 is Julian day 2440588.
    min_day=-2_440_588,
    max_day=2_147_483_493 - 2_440_588,
    # Same file: MIN_TIMESTAMP is Julian day 0. END_TIMESTAMP (294277-01-01) is beyond int64 microseconds from 1970,
    # which Arrow counts in, so that is the limit.
    min_instant=-2_440_588 * NANOSECONDS_PER_DAY,
    max_instant=_INT64_MICROSECONDS_AS_NS,
    allows_nul=False,  # "invalid byte sequence for encoding: 0x00", documentation of character types
    allows_nan=True,
    allows_subnormal=True,
    max_decimal_precision=38,  # NUMERIC itself goes to 1000
    max_fractional_digits=6,
)
"""PostgreSQL 14 and later."""

CLICKHOUSE: Final = TargetLimits(
    engine="ClickHouse",
    # Documentation of Date32: 1900-01-01 to 2299-12-31; outside it values are clamped without a word.
    min_day=_day(1900, 1, 1),
    max_day=_day(2299, 12, 31),
    # Documentation of DateTime64: the same days; with 9 digits only to 2262-04-11 23:47:16.854775807, which is where
    # Arrow's nanoseconds end too.
    min_instant=_day(1900, 1, 1) * NANOSECONDS_PER_DAY,
    max_instant=_end_of(2299, 12, 31),
    allows_nul=True,  # String is any bytes
    allows_nan=True,
    allows_subnormal=True,
    max_decimal_precision=38,  # Decimal256 goes to 76; logical decimals stop at 38
    max_fractional_digits=9,
)
"""ClickHouse 24.8 and later, with Date32 and DateTime64."""

MSSQL: Final = TargetLimits(
    engine="SQL Server",
    # Documentation of date, datetime2 and datetimeoffset: 0001-01-01 to 9999-12-31, 100 ns.
    min_day=_day(1, 1, 1),
    max_day=_day(9999, 12, 31),
    min_instant=_day(1, 1, 1) * NANOSECONDS_PER_DAY,
    max_instant=_end_of(9999, 12, 31),
    # nvarchar stores U+0000, but most collations give it no weight: two different keys would be one.
    allows_nul=False,
    # Documentation of float and real: neither NaN nor infinities, and nothing between 0 and 2.23E-308 (1.18E-38).
    allows_nan=False,
    allows_subnormal=False,
    max_decimal_precision=38,
    max_fractional_digits=7,
    string_unit=LengthUnit.UTF16_UNITS,  # nvarchar(n): byte pairs
)
"""SQL Server 2019 and later, with nvarchar, date, time, datetime2 and datetimeoffset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedType:
    """A declared column that the engine cannot hold exactly; known before any data moves."""

    column: str
    type: LogicalType
    limit: str


def unsupported_columns(columns: Iterable[Column], limits: TargetLimits) -> tuple[UnsupportedType, ...]:
    """Every declared column whose type is beyond the engine's limits, in order."""
    found = []
    for column in columns:
        limit = _limit_broken_by(column.type, limits)
        if limit is not None:
            found.append(UnsupportedType(column=column.name, type=column.type, limit=limit))
    return tuple(found)


def _limit_broken_by(logical: LogicalType, limits: TargetLimits) -> str | None:
    match logical:
        case Decimal(precision=precision) if precision > limits.max_decimal_precision:
            return f"{limits.engine} holds decimals of at most {limits.max_decimal_precision} digits"
        case Time(precision=digits) | Timestamp(precision=digits) | TimestampTz(precision=digits):
            if digits > limits.max_fractional_digits:
                return f"{limits.engine} holds at most {limits.max_fractional_digits} fractional digits of a second"
    return None
