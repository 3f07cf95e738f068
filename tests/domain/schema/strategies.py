"""Hypothesis strategies for schema values."""

from __future__ import annotations

from hypothesis import strategies as st

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


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    """Every decimal type."""
    precision = draw(st.integers(1, 38))
    return Decimal(precision, draw(st.integers(0, precision)))


def logical_types() -> st.SearchStrategy[LogicalType]:
    """Every logical type."""
    lengths = st.none() | st.integers(1, 1_000_000)
    fractions = st.integers(0, 9)
    return st.one_of(
        st.sampled_from([Boolean(), Date(), Uuid(), Float(32), Float(64), Integer(8, signed=False)]),
        st.sampled_from([8, 16, 32, 64]).map(Integer),
        decimals(),
        lengths.map(String),
        lengths.map(Binary),
        fractions.map(Time),
        fractions.map(Timestamp),
        fractions.map(TimestampTz),
    )
