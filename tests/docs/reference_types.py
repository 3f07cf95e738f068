"""The logical types in each engine, by asking the adapters."""

from __future__ import annotations

from datetime import date, timedelta

from dpone_provider.adapters.clickhouse.types import engine_type, normalised_column
from dpone_provider.adapters.mssql import types as mssql_types
from dpone_provider.adapters.postgres.types import sql_type
from dpone_provider.columnar.arrow_types import arrow_type
from dpone_provider.columnar.target_limits import CLICKHOUSE, MSSQL, POSTGRES, TargetLimits
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import parse_logical_type
from tests.docs.tables import code, table

DAY = 24 * 60 * 60 * 10**9
SHOWN = (
    *("boolean", "int8", "int16", "int32", "int64", "uint8", "float32", "float64", "decimal(38,10)", "string"),
    *("string(20)", "binary", "binary(20)", "date", "time(6)", "time(9)", "timestamp(6)", "timestamp(9)"),
    *("timestamp_tz(6)", "timestamp_tz(9)", "uuid"),
)


def types() -> str:
    """Return each logical type with its Arrow type, and the engine types in which a column of it is created."""
    return table(("logical type", "Arrow", "PostgreSQL", "SQL Server", "ClickHouse"), map(_row, SHOWN))


def limits() -> str:
    """Return what each engine holds at most; a value beyond is refused by row before anything is published."""
    text = ("U+0000 in text", "string(n) counts", "NaN, infinities")
    head = ("engine", "dates", "times: the days of UTC", *text, "digits of a decimal", "digits of a second")
    return table(head, map(_limits, (POSTGRES, CLICKHOUSE, MSSQL)))


def _limits(one: TargetLimits) -> tuple[str, ...]:
    return (
        one.engine,
        f"{_day(one.min_day)} to {_day(one.max_day)}",
        f"{_day(one.min_instant // DAY)} to {_day(one.max_instant // DAY)}",
        "kept" if one.allows_nul else "refused",
        str(one.string_unit),
        "kept" if one.allows_nan else "refused",
        str(one.max_decimal_precision),
        str(one.max_fractional_digits),
    )


def _day(number: int) -> str:
    """Return the date of a day counted from 1970-01-01, also where Python's own calendar ends.

    Four hundred years of the Gregorian calendar have 146,097 days.
    """
    cycles, within = divmod(number, 146_097)
    near = date(1970, 1, 1) + timedelta(days=within)
    year = near.year + 400 * cycles
    return f"{year if year > 0 else 1 - year}-{near:%m-%d}{'' if year > 0 else ' BC'}"


def _row(text: str) -> tuple[str, ...]:
    logical = parse_logical_type(text)
    column = Column(name="c", type=logical, nullable=False)
    postgres, mssql, clickhouse = sql_type(logical), mssql_types.sql_type(logical), engine_type(column)
    kept = normalised_column(column).type
    note = "" if kept == logical else f", observed again as {code(str(kept))}"
    return (
        code(text),
        code(str(arrow_type(logical))),
        code(postgres) if postgres else "refused",
        code(mssql) if mssql else "refused",
        code(clickhouse) + note if isinstance(clickhouse, str) else "refused",
    )
