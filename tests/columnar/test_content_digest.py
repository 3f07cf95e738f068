"""The content digest: what changes it and what does not, and that a slow second way gives the same."""

from __future__ import annotations

import random

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone_provider.columnar.content_digest import (
    EMPTY,
    MODULUS,
    ContentDigest,
    ContentHasher,
    bounded_chunks,
    parse_content_digest,
)
from dpone_provider.domain.schema.tables import Column
from tests.columnar.batches import ALL_TYPES, EVERY_COLUMN, Row, batch_of, columns_of, rows_of, slow_digest

PAIR = columns_of("string", "string")


def digest(rows: list[Row], columns: tuple[Column, ...] = EVERY_COLUMN, size: int = 100) -> ContentDigest:
    """Digest rows in batches of a size."""
    hasher = ContentHasher(columns)
    for start in range(0, len(rows), size):
        hasher.update(batch_of(columns, rows[start : start + size]))
    return hasher.digest


@settings(max_examples=50)
@given(rows_of(*ALL_TYPES))
def test_the_slow_way_gives_the_same(rows: list[Row]) -> None:
    assert digest(rows) == ContentDigest(*slow_digest(EVERY_COLUMN, rows))


@settings(max_examples=50)
@given(rows_of(*ALL_TYPES), st.randoms(use_true_random=False), st.integers(1, 5))
def test_neither_order_nor_batches_matter(rows: list[Row], shuffler: random.Random, size: int) -> None:
    shuffled = rows.copy()
    shuffler.shuffle(shuffled)
    assert digest(shuffled, size=size) == digest(rows)


@settings(max_examples=50)
@given(rows_of(*ALL_TYPES), rows_of(*ALL_TYPES))
def test_digests_of_parts_add_up(left: list[Row], right: list[Row]) -> None:
    assert digest(left) + digest(right) == digest(left + right)


@settings(max_examples=50)
@given(rows_of(*ALL_TYPES, min_size=1), st.data())
def test_a_duplicate_changes_it_and_a_pair_of_them_does_too(rows: list[Row], data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(rows))
    values = {digest(rows + [again] * times).value for times in range(4)}
    assert len(values) == 4


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=20))
def test_swapping_two_values_between_rows_changes_it(rows: list[tuple[int, int]]) -> None:
    columns = columns_of("int32", "int32")
    (a, b), (c, d), *rest = rows
    swapped: list[Row] = [(a, d), (c, b), *rest]
    same = a == c or b == d
    assert (digest(swapped, columns) == digest(list(rows), columns)) is same


def test_null_is_neither_empty_nor_zero() -> None:
    assert digest([(None, "a")], PAIR) != digest([("", "a")], PAIR)
    one = columns_of("int64")
    assert digest([(None,)], one) != digest([(0,)], one)


def test_neighbours_do_not_run_into_each_other() -> None:
    rows: list[Row] = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), (None, "abc"), ("abc", None)]
    assert len({digest([row], PAIR) for row in rows}) == len(rows)


def test_float_foldings() -> None:
    columns = columns_of("float64")
    assert digest([(0.0,)], columns) == digest([(-0.0,)], columns)
    assert digest([(float("nan"),)], columns) == digest([(-float("nan"),)], columns)
    assert digest([(float("inf"),)], columns) != digest([(float("nan"),)], columns)


def test_a_known_value() -> None:
    # Written down once; a change of the encoding or of the hash would make every stored digest void.
    columns = columns_of("int64", "string", "decimal(18,4)")
    rows: list[Row] = [(1, "one", None), (2, None, 5)]
    assert str(digest(rows, columns)) == "xxh3sum128:cb11192f9aad3d38b23637957077d57b"


def test_no_rows() -> None:
    assert digest([]) == EMPTY
    assert str(EMPTY) == "xxh3sum128:" + "0" * 32


def test_the_sum_wraps_at_128_bits() -> None:
    assert pl.Series([2**128 - 1, 3], dtype=pl.UInt128).sum() == 2
    assert ContentDigest(1, MODULUS - 1) + ContentDigest(1, 3) == ContentDigest(2, 2)


@given(st.integers(1, 2**40), st.integers(0, MODULUS - 1))
def test_the_textual_form_reads_back(rows: int, value: int) -> None:
    found = ContentDigest(rows, value)
    assert parse_content_digest(str(found), rows) == found


@pytest.mark.parametrize("text", ["", "xxh3sum128:0", "sha256:" + "0" * 64, "xxh3sum128:" + "A" * 32])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a content digest"):
        parse_content_digest(text, 1)


@pytest.mark.parametrize(("rows", "value"), [(-1, 0), (1, -1), (1, MODULUS), (0, 1)])
def test_impossible_digests_cannot_be_built(rows: int, value: int) -> None:
    with pytest.raises(ValueError, match="not a content digest"):
        ContentDigest(rows, value)


def test_chunks_are_bounded_in_rows_and_bytes() -> None:
    many = pa.record_batch({"c0": pa.array(range(200_000))})
    assert [len(chunk) for chunk in bounded_chunks(many)] == [65_536, 65_536, 65_536, 3_392]
    wide = pa.record_batch({"c0": pa.array([b"x" * 16_000_000] * 9)})
    assert [len(chunk) for chunk in bounded_chunks(wide)] == [4, 4, 1]
    assert list(bounded_chunks(many.slice(0, 0))) == []
