"""Rows, bytes and digest of the batches that pass."""

from __future__ import annotations

import pyarrow as pa

from dpone_provider.application.content import ContentTally
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import Integer

COLUMNS = (Column(name="number", type=Integer(32), nullable=False),)


def batch(*numbers: int) -> pa.RecordBatch:
    """Return rows of one column."""
    return pa.record_batch([pa.array(numbers, pa.int32())], names=["number"])


def test_the_content_is_the_same_in_any_order_and_any_batches() -> None:
    one, other = ContentTally(COLUMNS), ContentTally(COLUMNS)
    one.add(batch(1, 2, 3))
    other.add(batch(3, 1))
    other.add(batch(2))
    assert one.content() == other.content()
    assert (one.rows, one.bytes) == (3, 12)


def test_a_row_more_is_another_content() -> None:
    tally = ContentTally(COLUMNS)
    tally.add(batch(1))
    before = tally.content()
    tally.add(batch(1))
    assert tally.content().content_digest != before.content_digest


def test_nothing_has_a_content() -> None:
    assert ContentTally(COLUMNS).content().rows == 0
