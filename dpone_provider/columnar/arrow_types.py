"""The one Arrow type that each logical type travels as.

Readers may deliver others; ``exactness`` converts them, exactly or not at all. Everything behind it (digest, writers,
reconciliation) sees canonical types only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

import pyarrow as pa

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

UUID_BYTES: Final = 16
"""A UUID travels as its RFC 4122 bytes, the order in which its text is written."""

_INTEGERS: Final[dict[str, pa.DataType]] = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
}


def fraction_unit(precision: int) -> str:
    """Arrow's unit for times of ``precision`` fractional digits: microseconds up to six, else nanoseconds."""
    return "us" if precision <= 6 else "ns"


def arrow_type(logical: LogicalType) -> pa.DataType:
    """The canonical Arrow type of a logical type. Lengths are not part of it: ``exactness`` checks them."""
    match logical:
        case Boolean():
            return pa.bool_()
        case Integer():
            return _INTEGERS[str(logical)]
        case Float(bits=bits):
            return pa.float32() if bits == 32 else pa.float64()
        case Decimal(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case String():
            return pa.string()
        case Binary():
            return pa.binary()
        case Date():
            return pa.date32()
        case Time(precision=precision):
            return pa.time64(fraction_unit(precision))
        case Timestamp(precision=precision):
            return pa.timestamp(fraction_unit(precision))
        case TimestampTz(precision=precision):
            return pa.timestamp(fraction_unit(precision), "UTC")
        case Uuid():
            return pa.binary(UUID_BYTES)
        case _:
            assert_never(logical)


def arrow_field(column: Column) -> pa.Field:
    """The canonical field of a column: name, type, nullability, and the logical type's text as metadata."""
    return pa.field(column.name, arrow_type(column.type), column.nullable, {"dpone.logical_type": str(column.type)})


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """The canonical schema of columns, in their order."""
    return pa.schema([arrow_field(column) for column in columns])


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of those of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether an Arrow type is one of those of bytes."""
    variable = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return bool(variable or pa.types.is_fixed_size_binary(kind))
