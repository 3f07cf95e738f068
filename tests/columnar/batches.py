"""Batches of every logical type, and a slow second way to encode and digest them."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import xxhash
from hypothesis import strategies as st

from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import parse_logical_type

EPOCH_DAY = datetime.date(1970, 1, 1)
ALL_TYPES = (
    *("boolean", "int8", "int16", "int32", "int64", "uint8", "float32", "float64", "decimal(38,10)", "decimal(4,2)"),
    *("string", "string(3)", "binary", "date", "time(6)", "time(9)", "timestamp(6)", "timestamp(9)"),
    *("timestamp_tz(6)", "uuid"),
)

Row = tuple[Any, ...]


def columns_of(*logical: str, nullable: bool = True) -> tuple[Column, ...]:
    """Columns c0, c1, … of the given types."""
    return tuple(
        Column(name=f"c{index}", type=parse_logical_type(text), nullable=nullable) for index, text in enumerate(logical)
    )


EVERY_COLUMN = columns_of(*ALL_TYPES)


def batch_of(columns: Sequence[Column], rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows of Python values as a batch in the canonical schema; times are ticks."""
    schema = arrow_schema(columns)
    arrays = []
    for index, field in enumerate(schema):
        values = [row[index] for row in rows]
        ticks = pa.types.is_time(field.type) or pa.types.is_timestamp(field.type)
        arrays.append(pa.array(values, pa.int64()).cast(field.type) if ticks else pa.array(values, field.type))
    return pa.record_batch(arrays, schema=schema)


def values_of(logical: str) -> st.SearchStrategy[Any]:
    """Values of one type, NULL among them; times are ticks."""
    name = logical.split("(", 1)[0]
    int64 = st.integers(-(2**63), 2**63 - 1)
    strategies: dict[str, st.SearchStrategy[Any]] = {
        "boolean": st.booleans(),
        "int8": st.integers(-128, 127),
        "int16": st.integers(-(2**15), 2**15 - 1),
        "int32": st.integers(-(2**31), 2**31 - 1),
        "int64": int64,
        "uint8": st.integers(0, 255),
        "float32": st.floats(width=32),
        "float64": st.floats(),
        "string": st.text(max_size=3),
        "binary": st.binary(max_size=5),
        "date": st.dates(),
        "time": st.integers(0, 86_399_999_999),
        "timestamp": int64,
        "timestamp_tz": int64,
        "uuid": st.uuids().map(lambda each: each.bytes),
    }
    if name == "decimal":
        precision, scale = map(int, logical.removeprefix("decimal(").removesuffix(")").split(","))
        unscaled = st.integers(1 - 10**precision, 10**precision - 1)
        return st.none() | unscaled.map(lambda each: decimal.Decimal(each).scaleb(-scale, decimal.Context(prec=38)))
    return st.none() | strategies[name]


def rows_of(*logical: str, min_size: int = 0, max_size: int = 12) -> st.SearchStrategy[list[Row]]:
    """Lists of rows."""
    return st.lists(st.tuples(*map(values_of, logical)), min_size=min_size, max_size=max_size)


def slow_row_bytes(columns: Sequence[Column], row: Row) -> bytes:
    """The canonical bytes of a row as the documentation says them, value by value."""
    head, tail = b"", b""
    for column, value in zip(columns, row, strict=True):
        logical = str(column.type)
        if logical.startswith(("string", "binary")):
            data = b"" if value is None else value.encode() if isinstance(value, str) else value
            head += struct.pack(">i", -1 if value is None else len(data))
            tail += data
        else:
            head += b"\0" * (1 + len(_slow_value(logical, _zero(logical)))) if value is None else b"\1"
            head += b"" if value is None else _slow_value(logical, value)
    return head + tail


def _zero(logical: str) -> Any:
    if logical == "date":
        return EPOCH_DAY
    return uuid.UUID(int=0).bytes if logical == "uuid" else 0


def _slow_value(logical: str, value: Any) -> bytes:
    widths = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "boolean": "?"}
    if logical in widths:
        return struct.pack(">" + widths[logical], value)
    if logical in ("float32", "float64"):
        if math.isnan(value):
            return bytes.fromhex("7fc00000" if logical == "float32" else "7ff8000000000000")
        return struct.pack(">f" if logical == "float32" else ">d", 0.0 if value == 0 else value)
    if logical.startswith("decimal"):
        scale = int(logical.rstrip(")").split(",")[1])
        exact = decimal.Context(prec=80)
        return int(exact.scaleb(decimal.Decimal(value), scale)).to_bytes(16, "big", signed=True)
    if logical == "date":
        return struct.pack(">i", (value - EPOCH_DAY).days)
    if logical == "uuid":
        return bytes(value)
    return struct.pack(">q", value)


def slow_digest(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[int, int]:
    """Number of rows, and the sum of their hashes modulo 2^128."""
    total = sum(int.from_bytes(xxhash.xxh3_128_digest(slow_row_bytes(columns, row)), "big") for row in rows)
    return len(rows), total % 2**128
