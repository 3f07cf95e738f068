"""As many rows as the flights of 2013: staged in groups, read back, published; memory follows the batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dpone_provider.application.ports.tables import Published
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.domain.schema.tables import Table
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, column, table

pytestmark = pytest.mark.lab
FLIGHTS = 336_776
BATCH = 65_536


def flights(declared: Table) -> list[pa.RecordBatch]:
    """Build rows of mixed columns from a fixed seed."""
    random = np.random.default_rng(2013)
    batches = []
    for first in range(0, FLIGHTS, BATCH):
        size = min(BATCH, FLIGHTS - first)
        delay = pa.array(random.integers(-60, 1200, size), pa.int32(), mask=random.random(size) < 0.03)
        columns = [
            pa.array(np.arange(first, first + size)),
            pa.array(random.integers(0, 365, size), pa.int32()).cast(pa.date32()),
            delay,
            pa.array(random.integers(0, 5000, size)).cast(pa.decimal128(20, 0)).cast(pa.decimal128(10, 2)),
            pa.array(np.char.add("N", random.integers(10_000, 99_999, size).astype(str))),
            pa.array(random.integers(0, 10**15, size)).cast(pa.timestamp("us")),
        ]
        batches.append(pa.record_batch(columns, schema=arrow_schema(declared.columns)))
    return batches


def test_a_whole_year_of_flights_is_published(enrolled: Enrolled) -> None:
    declared = table(
        enrolled.name(),
        column("id", "int64"),
        column("day", "date"),
        column("delay", "int32", nullable=True),
        column("distance", "decimal(10,2)"),
        column("tail", "string"),
        column("at", "timestamp(6)"),
        order_by=("day", "id"),
        partition_by="toYear(day)",
    )
    batches = flights(declared)
    shown = Refresh.of(enrolled, declared).whole(batches)
    assert isinstance(shown, Published)
    assert shown.rows == FLIGHTS
    ((count, total),) = enrolled.ask(f"SELECT count(), sum(delay) FROM mart.{declared.name}")
    delays = pa.chunked_array([batch["delay"] for batch in batches])
    assert (count, total) == (FLIGHTS, sum(value for value in delays.to_pylist() if value is not None))
