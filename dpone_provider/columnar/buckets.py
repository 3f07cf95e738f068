"""A table's content as a fixed number of bucket sums: where two tables differ, without holding either.

Every row falls into one of ``BUCKETS`` buckets by the hash of its key, so both sides of a key share a bucket. A bucket
holds the number of its rows and the sums, each modulo 2^64, of the lower and the upper half of their row hashes; equal
rows in any order give equal sums, and rows that differ do not, as for the content digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpone_provider.columnar.content_digest import EMPTY, MODULUS, ContentDigest, bounded_chunks, hash_halves
from dpone_provider.columnar.row_encoding import RowEncoding
from dpone_provider.domain.schema.tables import Column

BUCKETS: Final = 65_536
"""24 bytes each: 1.5 MiB per table, whatever its size."""


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """One chunk of a table with what is needed to place and compare its rows.

    Attributes:
        bucket: of each row, from its key.
        halves: of each row's hash, lower then upper, shape (rows, 2).
        keys: canonical bytes of each row's key, which is the whole row in a table without one.
        rows: canonical bytes of each row.
    """

    batch: pa.RecordBatch
    bucket: npt.NDArray[np.uint64]
    halves: npt.NDArray[np.uint64]
    keys: pa.LargeBinaryArray
    rows: pa.LargeBinaryArray


class KeyedEncoding:
    """Splits batches into ``KeyedRows``."""

    def __init__(self, columns: Sequence[Column], key_columns: Sequence[str]) -> None:
        """For rows of ``columns``; ``key_columns`` in any order, or none at all.

        Raises:
            ValueError: a key column is not among the columns.
        """
        names = [column.name for column in columns]
        for name in key_columns:
            if name not in names:
                raise ValueError(f"key column {name!r} is not one of the columns {names}")
        self._row = RowEncoding(columns)
        self._key = RowEncoding([column for column in columns if column.name in key_columns])

    def keyed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[KeyedRows]:
        """The rows of all batches in chunks of bounded size.

        Raises:
            ValueError: a batch is not in the canonical schema of the columns.
        """
        for batch in batches:
            for chunk in bounded_chunks(batch):
                rows = self._row.encode(chunk)
                halves = hash_halves(rows)
                keys, key_halves = rows, halves
                if self._key.columns:
                    keys = self._key.encode(chunk.select(self._key.schema.names))
                    key_halves = hash_halves(keys)
                yield KeyedRows(chunk, key_halves[:, 0] % BUCKETS, halves, keys, rows)


class BucketSums:
    """The running sums of one table."""

    def __init__(self) -> None:
        """Of no rows."""
        self.counts: npt.NDArray[np.int64] = np.zeros(BUCKETS, np.int64)
        self.halves: npt.NDArray[np.uint64] = np.zeros((BUCKETS, 2), np.uint64)
        self.digest: ContentDigest = EMPTY

    def add(self, part: KeyedRows) -> None:
        """Take in one chunk."""
        bucket = part.bucket.astype(np.intp)
        self.counts += np.bincount(bucket, minlength=BUCKETS)
        np.add.at(self.halves[:, 0], bucket, part.halves[:, 0])
        np.add.at(self.halves[:, 1], bucket, part.halves[:, 1])
        self.digest += ContentDigest(len(bucket), _sum_of(part.halves))

    def differing(self, other: BucketSums) -> npt.NDArray[np.bool_]:
        """Which buckets do not hold the same rows."""
        result: npt.NDArray[np.bool_] = (self.counts != other.counts) | (self.halves != other.halves).any(axis=1)
        return result


def _sum_of(halves: npt.NDArray[Any]) -> int:
    """The sum modulo 2^128: both halves in 32-bit limbs, so that no partial sum overflows."""
    limbs = np.ascontiguousarray(halves).view(np.uint32).reshape(-1, 4)
    sums = limbs.sum(axis=0, dtype=np.uint64)
    return sum(int(each) << (32 * position) for position, each in enumerate(sums)) % MODULUS
