"""What stands in a staging table in place of values that a bulk load may round or reorder: their text.

``uniqueidentifier`` has its first three fields swapped, and a loader of Arrow carries seven fractional digits as six.
Their text is exact whatever a driver does, and the server turns it into the target's type.
"""

from __future__ import annotations

import uuid
from typing import Final

import numpy as np
import pyarrow as pa

from dpone_provider.adapters.mssql.column_reads import is_staged_as_text
from dpone_provider.adapters.mssql.types import sql_type
from dpone_provider.columnar.buffers import fixed_values, validity
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import LogicalType, Time, Timestamp, TimestampTz, Uuid

TEXT_TYPE: Final = "varchar(40)"
_UNITS: Final = {"us": 1_000_000, "ns": 1_000_000_000}
_TICKS: Final = 10_000_000
"""Of 100 nanoseconds in a second: what SQL Server keeps."""


def staged_type(logical: LogicalType) -> str | None:
    """Return the type of a staging table's column, None where SQL Server has none that keeps the values."""
    own = sql_type(logical)
    return TEXT_TYPE if own is not None and is_staged_as_text(logical) else own


def staged_batch(batch: pa.RecordBatch, columns: tuple[Column, ...]) -> pa.RecordBatch:
    """Return a canonical batch as it is staged."""
    arrays = [_staged(batch.column(column.name), column.type) for column in columns]
    return pa.record_batch(arrays, names=[column.name for column in columns])


def staged_schema(schema: pa.Schema, columns: tuple[Column, ...]) -> pa.Schema:
    """Return the schema of what ``staged_batch`` gives."""
    return staged_batch(pa.RecordBatch.from_pylist([], schema=schema), columns).schema


def _staged(array: pa.Array, logical: LogicalType) -> pa.Array:
    if not is_staged_as_text(logical):
        return array
    match logical:
        case Uuid():
            return pa.array(
                [None if each is None else str(uuid.UUID(bytes=each)) for each in array.to_pylist()], pa.string()
            )
        case Time():
            return _texts(array, 0, "")
        case Timestamp():
            return _texts(array, 1, "")
        case TimestampTz():
            return _texts(array, 1, "Z")
        case _:
            raise AssertionError(f"{logical} is staged in its own type")


def _texts(array: pa.Array, has_day: int, suffix: str) -> pa.Array:
    """Return instants or times of day as ISO 8601 with seven fractional digits."""
    per_second = _UNITS[array.type.unit]
    values, valid = fixed_values(array.cast(pa.int64()), np.int64), validity(array)
    seconds, rest = np.divmod(values, per_second)
    ticks = rest * (_TICKS // per_second) if per_second < _TICKS else rest // (per_second // _TICKS)
    moments = np.datetime_as_string(seconds.astype("datetime64[s]"))
    texts = [
        f"{moment if has_day else moment[11:]}.{tick:07d}{suffix}" if there else None
        for moment, tick, there in zip(moments.tolist(), ticks.tolist(), valid.tolist(), strict=True)
    ]
    return pa.array(texts, pa.string())
