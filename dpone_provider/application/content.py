"""Rows, bytes and digest of the batches that pass: what was read, what was sent, what stands staged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpone_provider.application.ports.tables import StagedContent
from dpone_provider.columnar.content_digest import ContentHasher
from dpone_provider.domain.schema.tables import Column

if TYPE_CHECKING:
    import pyarrow as pa


class ContentTally:
    """Counts batches in canonical types; their order does not matter."""

    def __init__(self, columns: Sequence[Column]) -> None:
        """Count nothing yet; ``columns`` are the declared ones."""
        self._hasher = ContentHasher(columns)
        self.bytes = 0

    @property
    def rows(self) -> int:
        """How many rows passed."""
        return self._hasher.digest.rows

    def add(self, batch: pa.RecordBatch) -> None:
        """Count one batch."""
        self._hasher.update(batch)
        self.bytes += batch.nbytes

    def content(self) -> StagedContent:
        """Return what passed so far."""
        return StagedContent(rows=self.rows, bytes=self.bytes, content_digest=str(self._hasher.digest))
