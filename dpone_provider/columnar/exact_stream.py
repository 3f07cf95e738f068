"""A stream of batches against the declared columns: the first value that cannot be carried exactly ends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from dpone_provider.columnar.exactness import RowContract, exact_batch
from dpone_provider.columnar.offence import InexactValue
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.schema.tables import Column


class ColumnRead(Protocol):
    """How one declared column is read where a driver would not carry its values as they are."""

    @property
    def column(self) -> Column:
        """The declared column."""

    def values(self, array: pa.Array) -> pa.Array:
        """Return what arrived as what it stands for."""


def require_exact(batch: pa.RecordBatch, contract: RowContract, first_row: int = 0) -> pa.RecordBatch:
    """Return a batch in the canonical types of the declared columns, as `exact_batch`.

    Raises:
        DponeError: Refused, naming column, row, value and what would be allowed.
    """
    exact = exact_batch(batch, contract, first_row)
    if isinstance(exact, InexactValue):
        raise DponeError(exact.refusal())
    return exact


def exact_stream(batches: Iterable[pa.RecordBatch], contract: RowContract) -> Iterator[pa.RecordBatch]:
    """Yield the batches in canonical types; rows without a key are named by their place in the whole stream.

    Raises:
        DponeError: Refused, as `require_exact`.
    """
    seen = 0
    for batch in batches:
        exact = require_exact(batch, contract, seen)
        seen += len(exact)
        yield exact


def as_declared(batch: pa.RecordBatch, reads: Sequence[ColumnRead]) -> pa.RecordBatch:
    """Return a batch of selected expressions under the declared names, each column as what it stands for."""
    arrays = [one.values(array) for one, array in zip(reads, batch.columns, strict=True)]
    return pa.record_batch(arrays, names=[one.column.name for one in reads])


def sliced(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in the same order, at most ``rows`` of them at a time, without copying them."""
    for batch in batches:
        for start in range(0, len(batch), rows):
            yield batch.slice(start, rows)
