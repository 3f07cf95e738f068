"""Comparison of two tables: what is planted is found by key and nothing else; checked against plain counting."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone_provider.columnar import buckets
from dpone_provider.columnar.content_digest import ContentDigest
from dpone_provider.columnar.reconcile import (
    Agreement,
    BatchSource,
    Change,
    ChangedRow,
    Comparison,
    Disagreement,
    MissingRow,
    Moved,
    Multiplicity,
    Side,
    UnexpectedRow,
    deviations,
)
from dpone_provider.domain.schema.tables import Column
from tests.columnar.batches import ALL_TYPES, EVERY_COLUMN, Row, batch_of, columns_of, rows_of, slow_digest

FLIGHT = (*columns_of("int64", "string", "int32"),)
ROWS: list[Row] = [(number, f"N{number}", number * 2) for number in range(2_000)]


def reading(rows: Sequence[Row], columns: Sequence[Column] = FLIGHT, size: int = 300) -> BatchSource:
    """A table whose rows come in another order at each reading."""
    shuffler = random.Random(len(rows))

    def batches() -> Iterable[pa.RecordBatch]:
        shuffled = list(rows)
        shuffler.shuffle(shuffled)
        for start in range(0, len(shuffled), size):
            yield batch_of(columns, shuffled[start : start + size])

    return batches


def compare(source: Sequence[Row], target: Sequence[Row], key: Sequence[str] = ("c0",), limit: int = 10) -> Comparison:
    """Compare two lists of flights."""
    return deviations(reading(source), reading(target), FLIGHT, key, limit)


def differs(comparison: Comparison) -> Disagreement:
    """The disagreement that must be found, whole."""
    assert isinstance(comparison, Disagreement)
    assert comparison.complete
    assert comparison.at_least == len(comparison.deviations)
    return comparison


def test_equal_tables_agree_on_the_content_digest() -> None:
    assert compare(ROWS, ROWS[::-1]) == Agreement(ContentDigest(*slow_digest(FLIGHT, ROWS)))
    assert compare([], []) == Agreement(ContentDigest(0, 0))


def test_a_planted_wrong_row_is_found() -> None:
    target = [*ROWS[:7], (7, "N7", 0), *ROWS[8:]]
    found = differs(compare(ROWS, target))
    assert found.deviations == (ChangedRow("key (c0=7)", (Change("c2", "14", "0"),)),)
    assert (found.source, found.target) == (
        ContentDigest(*slow_digest(FLIGHT, ROWS)),
        ContentDigest(*slow_digest(FLIGHT, target)),
    )


def test_missing_and_unexpected_rows_are_found() -> None:
    found = differs(compare(ROWS[1:], ROWS[:-1]))
    assert found.deviations == (UnexpectedRow("key (c0=0)", 1), MissingRow("key (c0=1999)", 1))


def test_a_duplicated_pair_is_found_though_the_keys_agree() -> None:
    found = differs(compare(ROWS, [*ROWS, ROWS[3], ROWS[3]]))
    assert found.deviations == (Multiplicity("key (c0=3)", 1, 3),)
    assert differs(compare([*ROWS, ROWS[3]], ROWS)).deviations == (Multiplicity("key (c0=3)", 2, 1),)


def test_two_swapped_values_are_found() -> None:
    target = [(0, "N1", 0), (1, "N0", 2), *ROWS[2:]]
    assert differs(compare(ROWS, target)).deviations == (
        ChangedRow("key (c0=0)", (Change("c1", "'N0'", "'N1'"),)),
        ChangedRow("key (c0=1)", (Change("c1", "'N1'", "'N0'"),)),
    )


def test_a_key_that_stands_twice_with_other_values() -> None:
    source: list[Row] = [(1, "a", 1), (1, "b", 2)]
    assert differs(compare(source, [(1, "a", 1), (1, "x", 2)])).deviations == (
        ChangedRow("key (c0=1)", (Change("c1", "'b'", "'x'"),)),
    )
    assert differs(compare(source, [(1, "x", 9)])).deviations == (
        ChangedRow("key (c0=1)", (Change("c1", "'a'", "'x'"), Change("c2", "1", "9"))),
        Multiplicity("key (c0=1)", 2, 1),
    )


def test_without_a_key_whole_rows_are_counted() -> None:
    source: list[Row] = [(1, "a", None), (1, "a", None), (2, "b", 2)]
    target: list[Row] = [(1, "a", None), (2, "x", 2), (2, "x", 2)]
    assert set(differs(compare(source, target, key=())).deviations) == {
        Multiplicity("key (c0=1, c1='a', c2=NULL)", 2, 1),
        MissingRow("key (c0=2, c1='b', c2=2)", 1),
        UnexpectedRow("key (c0=2, c1='x', c2=2)", 2),
    }
    assert isinstance(compare(source, source[::-1], key=()), Agreement)


def test_null_and_empty_keys_are_two() -> None:
    found = differs(compare([(1, None, 0)], [(1, "", 0)], key=("c1",)))
    assert found.deviations == (UnexpectedRow("key (c1='')", 1), MissingRow("key (c1=NULL)", 1))


def test_a_nan_is_no_change() -> None:
    columns = columns_of("int8", "float64", "string")
    source, target = [(1, math.nan, "a")], [(1, -math.nan, "b")]
    outcome = deviations(reading(source, columns), reading(target, columns), columns, ["c0"], 10)
    assert differs(outcome).deviations == (ChangedRow("key (c0=1)", (Change("c2", "'a'", "'b'"),)),)


def test_no_more_is_named_than_asked_for_and_the_rest_is_admitted() -> None:
    outcome = compare(ROWS, [], limit=3)
    assert isinstance(outcome, Disagreement)
    assert len(outcome.deviations) == 3
    assert not outcome.complete
    # Each differing bucket is one deviating row at least.
    assert 1_900 < outcome.at_least <= 2_000


def test_memory_is_bounded_by_the_rows_of_the_examined_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "BUCKETS", 1)
    monkeypatch.setattr("dpone_provider.columnar.reconcile.BUCKETS", 1)
    everything = compare(ROWS, [], limit=5)
    assert isinstance(everything, Disagreement)
    assert (len(everything.deviations), everything.complete, everything.at_least) == (5, False, 2_000)
    one = differs(compare(ROWS, ROWS[1:]))  # every agreeing row shares the bucket of the one that is missing
    assert one.deviations == (MissingRow("key (c0=0)", 1),)
    monkeypatch.undo()
    few = deviations(reading(ROWS), reading([]), FLIGHT, ["c0"], 1_000, max_rows=50)
    assert isinstance(few, Disagreement)
    assert 40 < len(few.deviations) <= 50
    assert not few.complete
    at_least_one = deviations(reading(ROWS), reading([]), FLIGHT, ["c0"], 1_000, max_rows=0)
    assert isinstance(at_least_one, Disagreement)
    assert len(at_least_one.deviations) >= 1


@pytest.mark.parametrize("side", list(Side))
def test_a_table_that_moves_between_the_readings_is_told(side: Side) -> None:
    first = {Side.SOURCE: ROWS, Side.TARGET: [(0, "x", 0), *ROWS[1:]]}
    readings = {each: [first[each], first[each]] for each in Side}
    readings[side][1] = [(0, "moved", 0), *ROWS[1:]]
    calls = {each: iter(readings[each]) for each in Side}
    opened = {each: lambda each=each: reading(next(calls[each]))() for each in Side}
    assert deviations(opened[Side.SOURCE], opened[Side.TARGET], FLIGHT, ["c0"], 5) == Moved(side)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="limit of named deviations: found 0"):
        compare(ROWS, ROWS, limit=0)
    with pytest.raises(ValueError, match="key column 'no' is not one of"):
        compare(ROWS, ROWS, key=["no"])
    with pytest.raises(ValueError, match="not the canonical schema"):
        deviations(lambda: [pa.record_batch({"c0": pa.array([1])})], reading(ROWS), FLIGHT, [], 1)


@settings(max_examples=50)
@given(rows_of(*ALL_TYPES), st.data())
def test_every_type_against_plain_counting(rows: list[Row], data: st.DataObject) -> None:
    several = rows * 2
    source, target = (data.draw(st.lists(st.sampled_from(several))) if several else [] for _ in range(2))
    outcome = deviations(reading(source, EVERY_COLUMN), reading(target, EVERY_COLUMN), EVERY_COLUMN, [], 10_000)
    ours, theirs = (Counter(slow_digest(EVERY_COLUMN, [row])[1] for row in side) for side in (source, target))
    wrong = [row for row in ours | theirs if ours[row] != theirs[row]]
    found = outcome.deviations if isinstance(outcome, Disagreement) else ()
    assert len(found) == len(wrong)
    copies = sum(each.copies for each in found if isinstance(each, MissingRow))
    assert copies == sum(ours[row] for row in wrong if not theirs[row])
