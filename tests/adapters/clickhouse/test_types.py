"""Logical types and ClickHouse's, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given

from dpone_provider.adapters.clickhouse.types import engine_type, logical_type, normalised_column
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import Binary, LogicalType
from tests.adapters.clickhouse.enrolled import Enrolled, column
from tests.domain.schema.strategies import logical_types


@given(logical_types())
def test_what_is_created_is_observed_again(logical: LogicalType) -> None:
    for nullable in (False, True):
        declared = Column(name="c", type=logical, nullable=nullable)
        spelled = engine_type(declared)
        if isinstance(logical, Binary):
            assert isinstance(spelled, Refused)
            continue
        assert isinstance(spelled, str)
        assert logical_type(spelled) == (normalised_column(declared).type, nullable)


@pytest.mark.lab
def test_the_server_spells_every_type_as_we_do(enrolled: Enrolled) -> None:
    kinds = [
        *(
            "boolean",
            "int8",
            "int16",
            "int32",
            "int64",
            "uint8",
            "float32",
            "float64",
            "decimal(1,0)",
            "decimal(38,38)",
        ),
        *("string", "date", "time(0)", "time(9)", "timestamp(0)", "timestamp(9)", "timestamp_tz(3)", "uuid"),
    ]
    declared = [column(f"c{n}", kind, nullable=n % 2 == 1) for n, kind in enumerate(kinds)]
    name = enrolled.name()
    spelled = [engine_type(each) for each in declared]
    listed = ", ".join(f"c{n} {kind}" for n, kind in enumerate(spelled))
    enrolled.run(f"CREATE TABLE mart.{name} ({listed}) ENGINE = MergeTree ORDER BY tuple()")
    found = enrolled.ask(f"SELECT type FROM system.columns WHERE table = '{name}' ORDER BY position")
    assert [row[0] for row in found] == spelled


@pytest.mark.parametrize(
    "spelling",
    [
        *("UInt16", "UInt32", "UInt64", "Int128", "Int256", "Date", "DateTime", "DateTime('UTC')", "FixedString(16)"),
        *(
            "DateTime64(3, 'Europe/Berlin')",
            "Decimal(39, 0)",
            "Decimal(76, 10)",
            "LowCardinality(String)",
            "Array(Int8)",
        ),
        *("LowCardinality(Nullable(String))", "Enum8('a' = 1)", "Map(String, Int8)", "Tuple(Int8)", "IPv4", "JSON"),
        *(
            "Nullable(Nothing)",
            "BFloat16",
            "Point",
            "AggregateFunction(sum, Int8)",
            "Time",
            "Variant(Int8)",
            "Dynamic",
            "",
        ),
    ],
)
def test_a_type_outside_the_set_is_none(spelling: str) -> None:
    assert logical_type(spelling) is None
