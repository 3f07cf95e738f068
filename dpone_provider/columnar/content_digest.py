"""The digest of a table's content: the same for the same rows in any order and any batches, another for other rows.

For each row, XXH3 128-bit (seed 0) of its canonical bytes (``row_encoding``), as an unsigned number; the sum of them
modulo 2^128, together with the number of rows. A sum and not an XOR, so that a row that stands twice is not the same
as one that is not there. It guards against faults, not against an adversary: XXH3 is not a cryptographic hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import polars_hash  # registers the expression namespace "nchash"
import pyarrow as pa

from dpone_provider.columnar.buffers import fixed_values
from dpone_provider.columnar.row_encoding import RowEncoding
from dpone_provider.domain.schema.tables import Column

MODULUS: Final = 1 << 128
_TEXT: Final = re.compile(r"xxh3sum128:([0-9a-f]{32})")
_CHUNK_ROWS: Final = 65_536
_CHUNK_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ContentDigest:
    """The number of rows, and the sum of their hashes modulo 2^128. Digests of disjoint parts add up.

    Raises:
        ValueError: a negative number, a value of more than 128 bits, or a value without rows.
    """

    rows: int
    value: int

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.rows < 0 or not 0 <= self.value < MODULUS or (self.rows == 0 and self.value != 0):
            raise ValueError(f"not a content digest: {self.rows} rows, value {self.value}")

    def __add__(self, other: ContentDigest) -> ContentDigest:
        """The digest of both parts together."""
        return ContentDigest(self.rows + other.rows, (self.value + other.value) % MODULUS)

    def __str__(self) -> str:
        """``xxh3sum128:`` and 32 hex digits; the number of rows is told beside it."""
        return f"xxh3sum128:{self.value:032x}"


EMPTY: Final = ContentDigest(0, 0)
"""The digest of no rows."""


def parse_content_digest(text: str, rows: int) -> ContentDigest:
    """Read the textual form back, with the number of rows that was told beside it.

    Raises:
        ValueError: another form, or no rows with a value.
    """
    found = _TEXT.fullmatch(text)
    if not found:
        raise ValueError(f"not a content digest: found {text!r}; allowed: xxh3sum128:<32 lower-case hex digits>")
    return ContentDigest(rows, int(found[1], 16))


class ContentHasher:
    """Adds up the digest of a stream of batches. Memory is that of one chunk: 65,536 rows, or 64 MiB of them."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """For rows of ``columns``, whose order is part of the digest and whose names are not."""
        self._encoding = RowEncoding(columns)
        self._digest = EMPTY

    @property
    def digest(self) -> ContentDigest:
        """Of every batch so far."""
        return self._digest

    def update(self, batch: pa.RecordBatch) -> None:
        """Take in one batch in the canonical schema of the columns.

        Raises:
            ValueError: the batch is in another schema.
        """
        for chunk in bounded_chunks(batch):
            hashed = pl.DataFrame({"row": row_hashes(self._encoding.encode(chunk))})
            # Polars adds unsigned numbers modulo their width.
            self._digest += ContentDigest(len(chunk), hashed.select(pl.col("row").sum())["row"][0])


def row_hashes(rows: pa.LargeBinaryArray) -> pl.Series:
    """XXH3 128-bit of each value, as UInt128."""
    frame = pl.DataFrame({"row": pl.from_arrow(rows)})
    return frame.select(polars_hash.col("row").nchash.xxh3_128())["row"]


def hash_halves(rows: pa.LargeBinaryArray) -> npt.NDArray[np.uint64]:
    """XXH3 128-bit of each value as its lower and upper half, shape (rows, 2)."""
    frame = pl.DataFrame({"row": pl.from_arrow(rows)})
    hashed = frame.select(polars_hash.col("row").nchash.xxh3_128(return_binary=True, byte_order="little"))["row"]
    return fixed_values(hashed.to_arrow().cast(pa.binary()).cast(pa.binary(16)), "<2u8").astype(np.uint64)


def bounded_chunks(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in slices of bounded size, none of them empty."""
    size = _CHUNK_ROWS
    if batch.nbytes > _CHUNK_BYTES:
        size = max(1, min(size, len(batch) * _CHUNK_BYTES // batch.nbytes))
    for start in range(0, len(batch), size):
        yield batch.slice(start, size)
