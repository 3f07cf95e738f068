"""The rows of a few buckets in memory: how often each stands, and one example of each to show."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpone_provider.columnar.buckets import BucketSums, KeyedRows


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Where an example of a row is kept."""

    batch: pa.RecordBatch
    row: int

    def value(self, column: str) -> pa.Array:
        """One value as an array of one."""
        return self.batch.column(column).slice(self.row, 1)


class Collected:
    """Counts the rows of ``examined`` buckets by key. Memory is that of the distinct rows."""

    def __init__(self, examined: npt.NDArray[np.bool_]) -> None:
        """For the buckets that are True."""
        self.sums = BucketSums()
        self._examined = examined
        self._rows: dict[bytes, Counter[bytes]] = {}
        self._places: dict[bytes, RowPlace] = {}

    def add(self, part: KeyedRows) -> None:
        """Take in one chunk; rows of other buckets are passed over."""
        wanted = np.flatnonzero(self._examined[part.bucket])
        chosen = KeyedRows(
            part.batch,
            part.bucket[wanted],
            part.halves[wanted],
            part.keys.take(wanted),
            part.rows.take(wanted),
        )
        self.sums.add(chosen)
        new: dict[bytes, int] = {}
        for place, key, row in zip(wanted, chosen.keys.to_pylist(), chosen.rows.to_pylist(), strict=True):
            self._rows.setdefault(key, Counter())[row] += 1
            if row not in self._places:
                new.setdefault(row, int(place))
        # A copy of the new rows only: a slice would keep the whole chunk alive.
        kept = part.batch.take(pa.array(list(new.values()), pa.int64()))
        self._places |= {row: RowPlace(kept, index) for index, row in enumerate(new)}

    @property
    def keys(self) -> set[bytes]:
        """Every key seen."""
        return set(self._rows)

    def rows_of(self, key: bytes) -> Counter[bytes]:
        """The rows of a key, with how often each stands."""
        return self._rows.get(key, Counter())

    def place(self, row: bytes) -> RowPlace:
        """An example of a row that was seen."""
        return self._places[row]
