"""Hypothesis strategies for schema values."""

from __future__ import annotations

from hypothesis import strategies as st

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Column, ForeignKey, Index, Storage, Table
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


NAMES = ("a", "b", "c", "d", "A", "straße")
"""Few, so that two tables have columns in common, some of them in other case."""

TYPES: tuple[LogicalType, ...] = (Integer(8), Integer(32), Decimal(5, 2), Decimal(9, 2), String(), String(4), Date())


STORAGES = (None, Storage(engine="MergeTree"), Storage(engine="MergeTree", order_by=("a",)))


def comments() -> st.SearchStrategy[str | None]:
    """Not managed, none, or one."""
    return st.sampled_from([None, "", "what it is"])


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    """A column of that name."""
    return Column(name=name, type=draw(st.sampled_from(TYPES)), nullable=draw(st.booleans()), comment=draw(comments()))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table stage.t with every aspect, without renames."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    subsets = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True).map(tuple)
    references = Relation("stage", "parent")
    return Table(
        schema="stage",
        name="t",
        columns=tuple(draw(columns(name)) for name in names),
        primary_key=draw(st.none() | st.just(()) | subsets),
        comment=draw(comments()),
        indexes=tuple(
            Index(name=name, columns=draw(subsets), unique=draw(st.booleans()))
            for name in draw(st.lists(st.sampled_from(["i", "j"]), unique=True))
        ),
        foreign_keys=tuple(
            ForeignKey(
                name=name, columns=(draw(st.sampled_from(names)),), references=references, referenced_columns=("id",)
            )
            for name in draw(st.lists(st.sampled_from(["f"]), unique=True))
        ),
        storage=draw(
            st.sampled_from([None, Storage(engine="MergeTree"), Storage(engine="MergeTree", order_by=("a",))])
        ),
    )
