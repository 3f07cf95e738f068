"""One bulk load of many batches: the loader runs beside the reader, and takes no more than it has room for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from dpone_provider.adapters.mssql.errors import ERRORS, AnswerLost, MssqlError

PENDING_BATCHES: Final = 2
"""Batches that wait at most: one is being sent, one is ready, and the reader makes the next."""
LOOK_SECONDS: Final = 0.2
Load = Callable[[pa.RecordBatchReader], int]
"""Sends every batch and returns how many rows the server took. Raises what a session raises."""


class BulkLoad:
    """Feeds one load from a queue. ``send`` and ``finish`` raise what the load raised; used by one thread, once."""

    def __init__(self, schema: pa.Schema, load: Load) -> None:
        """Start the load; ``schema`` is that of every batch."""
        self._pending: queue.Queue[pa.RecordBatch | None] = queue.Queue(PENDING_BATCHES)
        self._failure: MssqlError | None = None
        self._taken: int | None = None
        self._abandoned = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(schema, load), name="dpone bulk load", daemon=True)
        self._thread.start()

    def send(self, batch: pa.RecordBatch) -> None:
        """Hand over one batch; waits while the load is busy with earlier ones."""
        self._put(batch)

    def finish(self) -> int:
        """Say that there is no more, wait for the load, and return how many rows the server took."""
        self._put(None)
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        if self._taken is None:
            raise AnswerLost("the bulk load ended without a word")
        return self._taken

    def abandon(self) -> None:
        """End the load as soon as it asks for its next batch; what was sent may stand in the staging table."""
        self._abandoned.set()

    def _put(self, item: pa.RecordBatch | None) -> None:
        while True:
            if not self._thread.is_alive():
                raise self._failure or AnswerLost("the bulk load ended before the last batch")
            try:
                self._pending.put(item, timeout=LOOK_SECONDS)
                return
            except queue.Full:
                continue

    def _run(self, schema: pa.Schema, load: Load) -> None:
        try:
            self._taken = load(pa.RecordBatchReader.from_batches(schema, self._batches()))
        except ERRORS as error:
            self._failure = error

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while not self._abandoned.is_set():
            try:
                item = self._pending.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                continue
            if item is None:
                return
            yield item
        # An error of the stream ends the load: the end of it would be taken for the end of the rows.
        raise OSError("the load was abandoned")
