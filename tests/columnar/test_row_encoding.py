"""The canonical bytes of rows, against fixed examples and against the slow second way."""

from __future__ import annotations

import datetime
import math
import struct
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from dpone_provider.columnar.row_encoding import RowEncoding
from tests.columnar.batches import ALL_TYPES, EVERY_COLUMN, Row, batch_of, columns_of, rows_of, slow_row_bytes

EXAMPLES = {
    "boolean": (True, "01 01"),
    "int8": (-2, "01 fe"),
    "int16": (258, "01 0102"),
    "int32": (-2, "01 fffffffe"),
    "int64": (1, "01 0000000000000001"),
    "uint8": (255, "01 ff"),
    "float32": (1.5, "01 3fc00000"),
    "float64": (-0.0, "01 0000000000000000"),
    "decimal(4,2)": (Decimal("-1.50"), "01 " + "ff" * 15 + "6a"),
    "string": ("aü", "00000003 61c3bc"),
    "binary": (b"\x00", "00000001 00"),
    "date": (datetime.date(1969, 12, 31), "01 ffffffff"),
    "time(6)": (1, "01 0000000000000001"),
    "timestamp(9)": (-1, "01 ffffffffffffffff"),
    "timestamp_tz(6)": (2, "01 0000000000000002"),
    "uuid": (uuid.UUID("00112233-4455-6677-8899-AABBCCDDEEFF").bytes, "01 00112233445566778899aabbccddeeff"),
}


@pytest.mark.parametrize("logical", EXAMPLES)
def test_the_documented_bytes(logical: str) -> None:
    value, expected = EXAMPLES[logical]
    columns = columns_of(logical)
    encoded = RowEncoding(columns).encode(batch_of(columns, [(value,), (None,)])).to_pylist()
    assert encoded[0] == bytes.fromhex(expected)
    assert encoded[1] == (b"\xff" * 4 if logical in ("string", "binary") else bytes(len(encoded[0])))


def test_heads_stand_before_all_variable_bytes() -> None:
    columns = columns_of("string", "int8", "binary")
    (encoded,) = RowEncoding(columns).encode(batch_of(columns, [("ab", 7, b"\x01")])).to_pylist()
    assert encoded.hex(" ", 1) == "00 00 00 02 01 07 00 00 00 01 61 62 01"


@settings(max_examples=50)
@given(rows_of(*ALL_TYPES))
def test_every_type_agrees_with_the_slow_way(rows: list[Row]) -> None:
    encoded = RowEncoding(EVERY_COLUMN).encode(batch_of(EVERY_COLUMN, rows))
    assert encoded.null_count == 0
    assert encoded.to_pylist() == [slow_row_bytes(EVERY_COLUMN, row) for row in rows]


@settings(max_examples=50)
@given(rows_of(*ALL_TYPES, min_size=3))
def test_a_slice_encodes_as_its_rows(rows: list[Row]) -> None:
    encoded = RowEncoding(EVERY_COLUMN).encode(batch_of(EVERY_COLUMN, rows).slice(1, 1))
    assert encoded.to_pylist() == [slow_row_bytes(EVERY_COLUMN, rows[1])]


def test_every_nan_is_one() -> None:
    columns = columns_of("float64")
    patterns = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF]
    bits = np.array(patterns, np.uint64)
    array = pa.Array.from_buffers(pa.float64(), len(bits), [None, pa.py_buffer(bits)])
    encoded = RowEncoding(columns).encode(pa.record_batch([array], names=["c0"]))
    assert set(encoded.to_pylist()) == {b"\1" + struct.pack(">d", math.nan)}


def test_what_stands_under_a_null_does_not_matter() -> None:
    columns = columns_of("int32", "uuid", "decimal(4,2)")
    clean = batch_of(columns, [(None, None, None)])
    dirt = [
        pa.array([7], pa.int32()),
        pa.array([b"x" * 16], pa.binary(16)),
        pa.array([Decimal(1)], pa.decimal128(4, 2)),
    ]
    masked = [pa.Array.from_buffers(each.type, 1, [pa.py_buffer(b"\0"), each.buffers()[1]]) for each in dirt]
    encoding = RowEncoding(columns)
    assert encoding.encode(pa.record_batch(masked, schema=clean.schema)) == encoding.encode(clean)


def test_another_schema_is_refused() -> None:
    encoding = RowEncoding(columns_of("int32"))
    for wrong in (pa.record_batch({"c0": pa.array([1])}), pa.record_batch({"x": pa.array([1], pa.int32())})):
        with pytest.raises(ValueError, match="not the canonical schema"):
            encoding.encode(wrong)
