"""How each column is read so that every value arrives exactly, or is refused at the source.

ADBC's driver wraps infinite dates and timestamps, reads 24:00 as 00:00 and gives NUMERIC as text. So: what Arrow has
no value for is counted by the server in the same snapshot (``guard``), and a NUMERIC of up to 18 digits is read as a
scaled 64-bit integer and widened, which is exact and much cheaper than parsing text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from psycopg import sql

from dpone_provider.adapters.postgres.names import identifier
from dpone_provider.adapters.postgres.types import UNBOUNDED_NUMERIC
from dpone_provider.application.relational.definitions import EngineColumn
from dpone_provider.columnar.arrow_types import arrow_type
from dpone_provider.columnar.buffers import fixed_values, validity
from dpone_provider.columnar.offence import Rule
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import Date, Decimal, LogicalType, Time, Timestamp, TimestampTz

SCALED_DIGITS: Final = 18
"""Every number of so many digits fits into 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A condition that no row may meet: which rule the value would break, and what is allowed."""

    condition: sql.Composed
    rule: Rule
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRead:
    """One column: what is selected, what is guarded, and whether decimals come as scaled integers."""

    column: Column
    selected: sql.Composed
    guard: Guard | None
    scaled: bool

    def values(self, array: pa.Array) -> pa.Array:
        """Return what arrived as what it stands for."""
        return widened(array, arrow_type(self.column.type)) if self.scaled else array


def column_read(column: Column, found: EngineColumn) -> ColumnRead:
    """Decide how a column of a supported type is read."""
    name = sql.Composed([identifier(column.name)])
    scaled = isinstance(column.type, Decimal) and _fits(column.type, found)
    return ColumnRead(
        column=column,
        selected=_selected(name, column.type, scaled=scaled),
        guard=_guard(name, column.type, found),
        scaled=scaled,
    )


def _selected(name: sql.Composed, logical: LogicalType, *, scaled: bool) -> sql.Composed:
    if not isinstance(logical, Decimal):
        return name
    # As text already in the server: the driver's own conversion of NUMERIC takes three times as long.
    return _scaled(name, logical) if scaled else sql.SQL("{}::text").format(name)


def _fits(declared: Decimal, found: EngineColumn) -> bool:
    return declared.precision <= SCALED_DIGITS and found.engine_type != UNBOUNDED_NUMERIC


def _scaled(name: sql.Composed, declared: Decimal) -> sql.Composed:
    factor = sql.SQL(f"({10**declared.scale})")
    return sql.SQL("({} * {}::numeric)::bigint").format(name, factor)


def _guard(name: sql.Composed, logical: LogicalType, found: EngineColumn) -> Guard | None:
    match logical:
        case Date():
            return Guard(condition=_infinite(name), rule=Rule.DATE_RANGE, limit="a finite date")
        case Timestamp() | TimestampTz():
            return Guard(condition=_infinite(name), rule=Rule.TIMESTAMP_RANGE, limit="a finite timestamp")
        case Time():
            late = sql.SQL("{} = TIME '24:00'").format(name)
            return Guard(condition=late, rule=Rule.TIME_RANGE, limit="a time before 24:00")
        case Decimal() if found.engine_type == UNBOUNDED_NUMERIC or _fits(logical, found):
            # A numeric with a declared precision holds no infinities, but it does hold NaN.
            other = sql.SQL("{} IN ('NaN', 'Infinity', '-Infinity')").format(name)
            return Guard(condition=other, rule=Rule.NOT_FINITE, limit=f"{logical}: numbers only")
        case _:
            return None


def _infinite(name: sql.Composed) -> sql.Composed:
    return sql.SQL("NOT isfinite({})").format(name)


def widened(scaled: pa.Array, kind: pa.Decimal128Type) -> pa.Array:
    """Return 64-bit integers as the decimals of which they are the unscaled values: a sign extension, nothing else."""
    low = fixed_values(scaled, np.int64)
    unscaled = np.empty((len(low), 2), dtype=np.int64)
    unscaled[:, 0] = low
    unscaled[:, 1] = low >> 63
    valid = pa.py_buffer(np.packbits(validity(scaled), bitorder="little")) if scaled.null_count else None
    return pa.Array.from_buffers(kind, len(scaled), [valid, pa.py_buffer(unscaled)])
