"""How types fit into each other."""

from __future__ import annotations

import pytest
from hypothesis import given

from dpone_provider.domain.schema.types import LogicalType, parse_logical_type
from dpone_provider.domain.schema.widening import Fit, fit
from tests.domain.schema.strategies import logical_types

CASES = [
    ("int8", "int16", Fit.WIDER),
    ("uint8", "int16", Fit.WIDER),
    ("uint8", "int8", Fit.NARROWER),
    ("int8", "uint8", Fit.NARROWER),
    ("float32", "float64", Fit.WIDER),
    ("decimal(5,2)", "decimal(7,2)", Fit.WIDER),
    ("decimal(5,2)", "decimal(7,4)", Fit.WIDER),
    ("decimal(5,2)", "decimal(5,3)", Fit.NARROWER),
    ("decimal(5,0)", "decimal(5,2)", Fit.NARROWER),
    ("string(5)", "string(6)", Fit.WIDER),
    ("string(5)", "string", Fit.WIDER),
    ("string", "string(5)", Fit.NARROWER),
    ("binary(5)", "binary", Fit.WIDER),
    ("time(0)", "time(6)", Fit.WIDER),
    ("timestamp(6)", "timestamp(3)", Fit.NARROWER),
    ("timestamp(6)", "timestamp_tz(6)", Fit.OTHER),
    ("int32", "decimal(10,0)", Fit.OTHER),
    ("date", "date", Fit.SAME),
    ("string(3)", "binary(3)", Fit.OTHER),
]


@pytest.mark.parametrize(("old", "new", "expected"), CASES)
def test_fit(old: str, new: str, expected: Fit) -> None:
    assert fit(parse_logical_type(old), parse_logical_type(new)) is expected


@given(logical_types(), logical_types(), logical_types())
def test_wider_is_an_order(a: LogicalType, b: LogicalType, c: LogicalType) -> None:
    assert fit(a, a) is Fit.SAME
    if fit(a, b) is Fit.WIDER:
        assert fit(b, a) is Fit.NARROWER
        if fit(b, c) is Fit.WIDER:
            assert fit(a, c) is Fit.WIDER
