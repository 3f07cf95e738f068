"""The worker's side: fill the staged table with the issued login, one INSERT per group of batches.

An INSERT is not atomic and is never repeated; a part that was left behind is found by the count and digest that are
read back, here and again by the controller after this login is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from dpone_provider.adapters.clickhouse.arrow_stream import END_OF_STREAM
from dpone_provider.adapters.clickhouse.content import content_of
from dpone_provider.adapters.clickhouse.errors import ERRORS, ClickHouseError
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.application.ports.tables import PublishJob, StagedContent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.columnar.exact_stream import require_exact
from dpone_provider.columnar.exactness import RowContract
from dpone_provider.columnar.target_limits import CLICKHOUSE
from dpone_provider.domain.outcomes import DponeError, Failed, fail

GROUP_BYTES: Final = 32 * 1024 * 1024
INSERT_SECONDS: Final = 600.0
INSERT_SETTINGS: Final[dict[str, int]] = {
    "async_insert": 0,
    "insert_deduplicate": 0,
    "optimize_on_insert": 0,
    "input_format_null_as_default": 0,
    "input_format_defaults_for_omitted_fields": 0,
    "input_format_skip_unknown_fields": 0,
    "input_format_arrow_allow_missing_columns": 0,
    "input_format_arrow_case_insensitive_column_matching": 0,
    "input_format_arrow_skip_columns_with_unsupported_types_in_schema_inference": 0,
    "input_format_allow_errors_num": 0,
    "input_format_allow_errors_ratio": 0,
}
"""Everything that could change, drop or fill in a value, sent with each INSERT whatever the server's profile says."""


class ClickHouseStagingWriter:
    """``StagingWriter`` of one attempt. Memory: one group of batches (32 MiB, or one batch if that is larger)."""

    def __init__(self, server: ClickHouseServer, job: PublishJob, *, key: Sequence[str] = ()) -> None:
        """Connect as the issued login; ``key`` names columns by which a message can name a row."""
        self._server = server
        self._session = Session(server)
        self._job = job
        self._contract = RowContract(
            relation=job.target, columns=job.declared.columns, limits=CLICKHOUSE, key_columns=tuple(key)
        )
        self._group: list[pa.RecordBatch] = []
        self._group_bytes = 0
        self._rows = 0
        self._inserts = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Check one batch and send it with its group.

        Raises:
            DponeError: Refused when a value is not exact in ClickHouse; Failed when the server refused or broke.
        """
        exact = require_exact(batch, self._contract, self._rows)
        if len(exact) == 0:
            return
        self._rows += len(exact)
        self._group.append(exact)
        self._group_bytes += exact.nbytes
        if self._group_bytes >= GROUP_BYTES:
            self._send()

    def finish(self, deadline: Deadline) -> StagedContent | Failed:
        """Send the last group and return what stands staged, by its own count and digest."""
        try:
            self._send()
            return content_of(self._server, self._job.staged, self._job.declared.columns, deadline)
        except DponeError as error:
            return self._failed(error.failure.problem)
        finally:
            self._session.release()

    def _send(self) -> None:
        group, self._group, self._group_bytes = self._group, [], 0
        if not group:
            return
        self._inserts += 1
        try:
            written = self._session.insert(
                self._job.staged,
                self._job.declared.column_names,
                arrow_body(group),
                query_id=insert_id(self._job, self._inserts),
                settings=INSERT_SETTINGS,
                seconds=INSERT_SECONDS,
            )
        except ERRORS as error:
            raise DponeError(self._failed(error)) from None
        sent = sum(map(len, group))
        if written != sent:
            raise DponeError(self._failed(f"{written} rows written of {sent} sent"))

    def _failed(self, found: ClickHouseError | object) -> Failed:
        return fail(
            "staging_failed",
            f"staged table {self._job.staged}",
            found=found,
            allowed="every row staged",
            next_command="retry; nothing was published, and what was staged is dropped",
        )


def insert_id(job: PublishJob, number: int) -> str:
    """Return the query id of an attempt's n-th INSERT: the server can be asked about it."""
    return f"dpone-{job.attempt_id[:32]}-insert-{number:06d}"


def arrow_body(batches: Sequence[pa.RecordBatch]) -> Iterator[memoryview]:
    """Yield an Arrow stream of the batches, message by message, without copying the batches."""
    yield memoryview(batches[0].schema.serialize())
    for batch in batches:
        yield memoryview(batch.serialize())
    yield memoryview(END_OF_STREAM)
