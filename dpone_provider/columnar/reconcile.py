"""Two tables that should hold the same rows: do they, and if not, which rows differ and how.

Exact, in two readings and in memory that does not grow with the tables. The first reading sums each table's rows in
65,536 buckets by key hash (3 MiB for both sides). Only if sums differ is anything read again: at most ``limit``
differing buckets, and no more of them than hold ``max_rows`` rows on either side (one at least), are collected and
compared row by row, by their canonical bytes. A differing bucket has at least one deviating row, so ``limit``
deviations are found if there are as many.

Bound: 3 MiB, one chunk (65,536 rows or 64 MiB), and the distinct rows of the examined buckets: about
``limit / 65,536`` of each table.

A row that both sides hold equally often is agreement, also if that is more than once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpone_provider.columnar.buckets import BUCKETS, BucketSums, KeyedEncoding
from dpone_provider.columnar.collected import Collected, RowPlace
from dpone_provider.columnar.content_digest import ContentDigest
from dpone_provider.columnar.offence import row_text, value_text
from dpone_provider.columnar.row_encoding import RowEncoding
from dpone_provider.domain.schema.tables import Column

BatchSource: TypeAlias = Callable[[], Iterable[pa.RecordBatch]]
"""Opens one reading of a table, in the canonical schema of its columns; called at most twice per comparison.

The rows may come in any order and in other batches each time, but must be the same rows: read in one snapshot, or
while nobody writes.
"""

DEFAULT_MAX_ROWS: Final = 1_000_000


class Side(StrEnum):
    """One of the two tables."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class MissingRow:
    """The target lacks a row of the source, ``copies`` times. ``row`` is its key, or the whole row without one."""

    row: str
    copies: int


@dataclass(frozen=True, slots=True)
class UnexpectedRow:
    """The target has a row that the source has not, ``copies`` times."""

    row: str
    copies: int


@dataclass(frozen=True, slots=True)
class Change:
    """One column's value on both sides."""

    column: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A key that both sides have, with other values."""

    row: str
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """A key, or a whole row in a table without one, that stands on both sides but not equally often."""

    row: str
    source_rows: int
    target_rows: int


Deviation: TypeAlias = MissingRow | UnexpectedRow | ChangedRow | Multiplicity


@dataclass(frozen=True, slots=True)
class Agreement:
    """Both tables hold the same rows, equally often."""

    digest: ContentDigest


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """The tables differ.

    Attributes:
        deviations: in the order of their keys' bytes, at most as many as asked for.
        complete: whether these are all.
        at_least: a lower bound of how many rows deviate; exact if complete.
    """

    source: ContentDigest
    target: ContentDigest
    deviations: tuple[Deviation, ...]
    complete: bool
    at_least: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The table did not hold the same rows in both readings, so the rows cannot be named."""

    side: Side


Comparison: TypeAlias = Agreement | Disagreement | Moved


def deviations(
    source: BatchSource,
    target: BatchSource,
    columns: Sequence[Column],
    key_columns: Sequence[str],
    limit: int,
    max_rows: int = DEFAULT_MAX_ROWS,
) -> Comparison:
    """Compare two tables of the same declared columns.

    Args:
        source, target: readings of both sides.
        columns: the declared columns of both.
        key_columns: the columns by which a row is recognised on the other side; empty compares whole rows.
        limit: how many deviations to name, at least 1.
        max_rows: how many rows of either side to hold in memory.

    Raises:
        ValueError: a limit below 1, an unknown key column, or a batch in another schema. What the readings raise
            passes through.
    """
    if limit < 1:
        raise ValueError(f"limit of named deviations: found {limit}, allowed is 1 or more")
    encoding = KeyedEncoding(columns, key_columns)
    sums = {Side.SOURCE: _summed(encoding, source), Side.TARGET: _summed(encoding, target)}
    differing = sums[Side.SOURCE].differing(sums[Side.TARGET])
    if not differing.any():
        return Agreement(sums[Side.SOURCE].digest)
    examined = _examined(differing, sums, limit, max_rows)
    collected = {}
    for side, reading in ((Side.SOURCE, source), (Side.TARGET, target)):
        again = Collected(examined)
        for part in encoding.keyed(reading()):
            again.add(part)
        if (again.sums.differing(sums[side]) & examined).any():
            return Moved(side)
        collected[side] = again
    found = _Compared(collected[Side.SOURCE], collected[Side.TARGET], columns, key_columns).every_key()
    buckets = int(differing.sum())
    return Disagreement(
        source=sums[Side.SOURCE].digest,
        target=sums[Side.TARGET].digest,
        deviations=tuple(found[:limit]),
        complete=len(found) <= limit and buckets == int(examined.sum()),
        at_least=max(len(found), buckets),
    )


def _summed(encoding: KeyedEncoding, reading: BatchSource) -> BucketSums:
    sums = BucketSums()
    for part in encoding.keyed(reading()):
        sums.add(part)
    return sums


def _examined(
    differing: npt.NDArray[np.bool_], sums: dict[Side, BucketSums], limit: int, max_rows: int
) -> npt.NDArray[np.bool_]:
    """The first differing buckets, within both bounds, and at least one."""
    buckets = np.flatnonzero(differing)[:limit]
    rows = np.cumsum(np.maximum(sums[Side.SOURCE].counts, sums[Side.TARGET].counts)[buckets])
    within = max(1, int(np.searchsorted(rows, max_rows, side="right")))
    examined = np.zeros(BUCKETS, np.bool_)
    examined[buckets[:within]] = True
    return examined


@dataclass(frozen=True, slots=True)
class _Compared:
    """The examined rows of both sides."""

    source: Collected
    target: Collected
    columns: Sequence[Column]
    key_columns: Sequence[str]

    def every_key(self) -> list[Deviation]:
        found: list[Deviation] = []
        for key in sorted(self.source.keys | self.target.keys):
            found += self._key(key)
        return found

    def _key(self, key: bytes) -> list[Deviation]:
        ours, theirs = self.source.rows_of(key), self.target.rows_of(key)
        missing, unexpected = sorted((ours - theirs).elements()), sorted((theirs - ours).elements())
        if not missing and not unexpected:
            return []
        row = self._named(self.source.place(missing[0]) if missing else self.target.place(unexpected[0]))
        if not theirs:
            return [MissingRow(row, ours.total())]
        if not ours:
            return [UnexpectedRow(row, theirs.total())]
        found: list[Deviation] = [
            ChangedRow(row, self._changes(self.source.place(left), self.target.place(right)))
            for left, right in zip(missing, unexpected, strict=False)
        ]
        if ours.total() != theirs.total():
            found.append(Multiplicity(row, ours.total(), theirs.total()))
        return found

    def _named(self, place: RowPlace) -> str:
        return row_text(place.batch, place.row, self.key_columns or place.batch.schema.names, place.row)

    def _changes(self, source: RowPlace, target: RowPlace) -> tuple[Change, ...]:
        changes = []
        for column in self.columns:
            ours, theirs = source.value(column.name), target.value(column.name)
            if _canonical(column, ours) != _canonical(column, theirs):
                changes.append(Change(column.name, value_text(ours, 0), value_text(theirs, 0)))
        return tuple(changes)


def _canonical(column: Column, value: pa.Array) -> pa.Scalar:
    """By canonical bytes, as the rows were told apart: Arrow's own equality has NaN differ from itself."""
    return RowEncoding([column]).encode(pa.record_batch([value], names=[column.name]))[0]
