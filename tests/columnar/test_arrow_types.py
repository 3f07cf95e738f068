"""Each logical type has one Arrow type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dpone_provider.columnar.arrow_types import arrow_schema, arrow_type
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import parse_logical_type

CANONICAL = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal(38,10)": pa.decimal128(38, 10),
    "string": pa.string(),
    "string(3)": pa.string(),
    "binary": pa.binary(),
    "binary(3)": pa.binary(),
    "date": pa.date32(),
    "time(6)": pa.time64("us"),
    "time(7)": pa.time64("ns"),
    "timestamp(0)": pa.timestamp("us"),
    "timestamp(9)": pa.timestamp("ns"),
    "timestamp_tz(6)": pa.timestamp("us", "UTC"),
    "timestamp_tz(7)": pa.timestamp("ns", "UTC"),
    "uuid": pa.binary(16),
}


@pytest.mark.parametrize(("text", "expected"), CANONICAL.items())
def test_canonical_arrow_type(text: str, expected: pa.DataType) -> None:
    assert arrow_type(parse_logical_type(text)) == expected


def test_a_schema_keeps_order_nullability_and_the_logical_type() -> None:
    columns = [
        Column(name="b", type=parse_logical_type("string(3)"), nullable=True),
        Column(name="a", type=parse_logical_type("int8"), nullable=False),
    ]
    schema = arrow_schema(columns)
    assert schema.names == ["b", "a"]
    assert [field.nullable for field in schema] == [True, False]
    assert schema.field("b").metadata == {b"dpone.logical_type": b"string(3)"}
