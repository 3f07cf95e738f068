"""The canonical bytes of a row: what the content digest hashes and what reconciliation compares.

A row is its *head*, of the same size for every row of a table, and then the bytes of its variable-width values.

Head, column by column in declared order, nothing between them, all numbers big-endian:

=====================  =========================================================================================
fixed-width column     one byte, 1 for a value and 0 for NULL, and the value; all zeros for NULL
string, binary         the number of bytes as a signed 32-bit number, -1 for NULL; the bytes themselves follow the
                       head, in declared order
=====================  =========================================================================================

The value of a fixed-width column:

=====================  =========================================================================================
boolean                one byte, 0 or 1
int8 … int64, uint8    two's complement in its own width (1, 2, 4 or 8 bytes)
float32, float64       IEEE 754 in its own width; -0.0 is written as 0.0 and every NaN as the quiet NaN
                       ``7fc00000`` or ``7ff8000000000000``, so equal content has equal bytes
decimal(p,s)           the unscaled number (the value times 10^s) in two's complement, 16 bytes
date                   days from 1970-01-01, 4 bytes, two's complement
time(p)                from 00:00, 8 bytes; microseconds if p <= 6, else nanoseconds
timestamp(p)           from 1970-01-01 00:00, 8 bytes, two's complement; microseconds if p <= 6, else nanoseconds
timestamp_tz(p)        as timestamp, in UTC
uuid                   its 16 bytes in RFC 4122 order
=====================  =========================================================================================

Strings are UTF-8 without any normalisation. Given the column types, the bytes determine the row, except for the two
float foldings above: no two different rows share them, whatever NULLs, empty strings or neighbours they hold. Names
and nullability are not part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.columnar.buffers import fixed_values, truth_values, validity
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

_DECIMAL_PARTS: Final = np.dtype([("high", ">i8"), ("low", ">u8")])
_UUID: Final = np.dtype((np.void, 16))


class RowEncoding:
    """Encodes batches of one table's canonical schema into one byte string per row."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """For ``columns`` in this order, which is the order of their values in a row."""
        self.columns: Final = tuple(columns)
        self.schema: Final = arrow_schema(columns)

    @cached_property
    def head_type(self) -> np.dtype[Any]:
        """The head as a packed numpy record: ``has_<i>`` and ``value_<i>``, or ``length_<i>``."""
        fields: list[tuple[str, npt.DTypeLike]] = []
        for index, column in enumerate(self.columns):
            width = _value_type(column.type)
            if width is None:
                fields.append((f"length_{index}", ">i4"))
            else:
                fields += [(f"has_{index}", "u1"), (f"value_{index}", width)]
        return np.dtype(fields)

    def encode(self, batch: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One value per row, never NULL.

        Raises:
            ValueError: the batch is not in the canonical schema; ``exact_batch`` makes it so.
        """
        if batch.schema.names != self.schema.names or batch.schema.types != self.schema.types:
            raise ValueError(f"not the canonical schema: found {batch.schema}, allowed {self.schema}")
        head = np.zeros(len(batch), self.head_type)
        tails = []
        for index, (column, array) in enumerate(zip(self.columns, batch.columns, strict=True)):
            if _value_type(column.type) is None:
                _write_length(head[f"length_{index}"], array)
                tails.append(array.cast(pa.large_binary()))
            else:
                head[f"has_{index}"] = validity(array)
                _write_values(head[f"value_{index}"], array, column.type)
        return _joined(head, tails)


def _value_type(logical: LogicalType) -> npt.DTypeLike | None:
    """How a fixed-width value stands in the head; None for variable width."""
    match logical:
        case Boolean():
            return "u1"
        case Integer(bits=bits, signed=signed):
            return f">{'i' if signed else 'u'}{bits // 8}"
        case Float(bits=bits):
            return f">f{bits // 8}"
        case Decimal():
            return _DECIMAL_PARTS
        case String() | Binary():
            return None
        case Date():
            return ">i4"
        case Time() | Timestamp() | TimestampTz():
            return ">i8"
        case Uuid():
            return _UUID
        case _:
            assert_never(logical)


def _write_length(field: npt.NDArray[Any], array: pa.Array) -> None:
    field[:] = fixed_values(pc.fill_null(pc.binary_length(array), -1), np.int32)


def _write_values(field: npt.NDArray[Any], array: pa.Array, logical: LogicalType) -> None:
    match logical:
        case Boolean():
            field[:] = truth_values(array)
        case Float(bits=bits):
            found = fixed_values(array, np.float32 if bits == 32 else np.float64)
            with np.errstate(invalid="ignore"):  # a signalling NaN
                field[:] = found + found.dtype.type(0)  # -0.0 + 0.0 is 0.0
            field[np.isnan(found)] = np.nan
        case Decimal():
            parts = fixed_values(array, np.dtype([("low", "<u8"), ("high", "<i8")]))
            field["high"], field["low"] = parts["high"], parts["low"]
        case _:
            field[:] = fixed_values(array, field.dtype.newbyteorder("="))
    if array.null_count:
        field[~validity(array)] = np.zeros(1, field.dtype)[0]


def _joined(head: npt.NDArray[Any], tails: list[pa.Array]) -> pa.LargeBinaryArray:
    offsets = np.arange(len(head) + 1, dtype=np.int64) * head.itemsize
    heads = pa.Array.from_buffers(pa.large_binary(), len(head), [None, pa.py_buffer(offsets), pa.py_buffer(head)])
    if not tails:
        return heads
    nothing = pa.scalar(b"", pa.large_binary())
    return pc.binary_join_element_wise(heads, *tails, nothing, null_handling="replace", null_replacement=b"")
