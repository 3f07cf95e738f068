"""Logical types: one spelling each, limits, and the text form as an exact inverse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain.schema.errors import InvalidSchemaValue
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
    parse_logical_type,
)
from tests.domain.schema.strategies import logical_types

SPELLINGS: dict[str, LogicalType] = {
    "boolean": Boolean(),
    "int8": Integer(8),
    "int16": Integer(16),
    "int32": Integer(32),
    "int64": Integer(64),
    "uint8": Integer(8, signed=False),
    "float32": Float(32),
    "float64": Float(64),
    "decimal(38,10)": Decimal(38, 10),
    "string": String(),
    "string(40)": String(40),
    "binary": Binary(),
    "binary(16)": Binary(16),
    "date": Date(),
    "time(0)": Time(0),
    "timestamp(6)": Timestamp(6),
    "timestamp_tz(9)": TimestampTz(9),
    "uuid": Uuid(),
}


@pytest.mark.parametrize(("text", "value"), SPELLINGS.items())
def test_each_type_has_its_spelling(text: str, value: LogicalType) -> None:
    assert parse_logical_type(text) == value
    assert str(value) == text


@given(logical_types())
def test_parse_inverts_str(value: LogicalType) -> None:
    assert parse_logical_type(str(value)) == value


@given(st.text() | st.from_regex(r"[a-z_]{1,12}(\([0-9]{1,3}(,[0-9]{1,3})?\))?", fullmatch=True))
def test_whatever_parses_is_canonical(text: str) -> None:
    try:
        parsed = parse_logical_type(text)
    except InvalidSchemaValue:
        return
    assert str(parsed) == text


@pytest.mark.parametrize(
    "text",
    ["", "Boolean", "int", "int128", "uint16", "decimal", "decimal(5)", "decimal(5, 2)", "decimal(05,2)", "string()",
     "string(-1)", " date", "date\n", "time", "decimal(٣,1)", "uuid(1)", "string(12345678901)"],
)  # fmt: skip
def test_other_spellings_are_refused_with_the_allowed_ones(text: str) -> None:
    with pytest.raises(InvalidSchemaValue, match="allowed is one of boolean") as caught:
        parse_logical_type(text)
    assert caught.value.found == repr(text)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Integer(128),
        lambda: Integer(16, signed=False),
        lambda: Float(16),
        lambda: Decimal(0, 0),
        lambda: Decimal(39, 0),
        lambda: Decimal(5, 6),
        lambda: Decimal(5, -1),
        lambda: String(0),
        lambda: Binary(0),
        lambda: Time(10),
        lambda: Timestamp(-1),
        lambda: TimestampTz(10),
        lambda: parse_logical_type("decimal(39,0)"),
    ],
)
def test_parameters_out_of_range_cannot_be_built(build: Callable[[], LogicalType]) -> None:
    with pytest.raises(InvalidSchemaValue, match="is not valid: found"):
        build()


@pytest.mark.parametrize(
    ("value", "minimum", "maximum"),
    [
        (Integer(8), -128, 127),
        (Integer(8, signed=False), 0, 255),
        (Integer(64), -(2**63), 2**63 - 1),
    ],
)
def test_integer_ranges(value: Integer, minimum: int, maximum: int) -> None:
    assert (value.minimum, value.maximum) == (minimum, maximum)
