"""`StagingWriter`: the worker fills the slot's staging table on its issued login, and reads it back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import pyarrow as pa

from dpone_provider.adapters.mssql import ddl
from dpone_provider.adapters.mssql.arrow_session import ArrowSession, arrow_session
from dpone_provider.adapters.mssql.bulk import BulkLoad
from dpone_provider.adapters.mssql.definitions import read
from dpone_provider.adapters.mssql.errors import ERRORS, MssqlError, ServerError
from dpone_provider.adapters.mssql.names import filled, qualified
from dpone_provider.adapters.mssql.reader import column_reads, select_rows
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.adapters.mssql.staged_values import staged_batch, staged_schema
from dpone_provider.application.content import ContentTally
from dpone_provider.application.ports.tables import PublishJob, StagedContent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.relational.answers import before_commit
from dpone_provider.application.relational.definitions import Standing
from dpone_provider.application.relational.publication import staging_gone
from dpone_provider.columnar.exact_stream import as_declared, exact_stream, require_exact
from dpone_provider.columnar.exactness import RowContract
from dpone_provider.columnar.target_limits import MSSQL
from dpone_provider.domain.outcomes import DponeError, Failed, fail

WRITE_SECONDS: Final = 3600.0
PURPOSE: Final = "dpone staging"
_LABEL_DIGITS: Final = 40
"""The ledger on SQL Server keeps identities of at most 60 characters."""


def label_of(job: PublishJob) -> str:
    """Return what a staging table is labelled with: whose rows these are."""
    return job.attempt_id[:_LABEL_DIGITS]


class MssqlStagingWriter:
    """Fills ``job.staged``: made anew at the first use, labelled with the attempt; one bulk load of all batches."""

    def __init__(self, server: MssqlServer, job: PublishJob, *, key: Sequence[str] = ()) -> None:
        """Connect to nothing yet; ``key`` names the columns by which a message names a row."""
        self._server = server
        self._job = job
        self._columns = job.declared.columns
        self._contract = RowContract(relation=job.target, columns=self._columns, limits=MSSQL, key_columns=tuple(key))
        self._open = ExitStack()
        self._arrow: ArrowSession | None = None
        self._load: BulkLoad | None = None
        self._sent = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Check one batch and hand it to the load.

        Raises:
            DponeError: Refused when a value is not exact, Failed when the server refused or broke.
        """
        exact = self._exact(batch)
        failure: MssqlError
        try:
            self._loading(exact.schema).send(staged_batch(exact, self._columns))
            self._sent += len(batch)
            return
        except ERRORS as error:
            self._give_up()
            failure = error
        raise DponeError(self._failed(failure))

    def finish(self, deadline: Deadline) -> StagedContent | Failed:
        """Flush, read the staged table back on the same login, and disconnect."""
        try:
            with self._open:
                arrow = self._connected()
                if self._load is not None:
                    self._require_taken(self._load.finish())
                return self._read_back(arrow, deadline)
        except ERRORS as error:
            return self._failed(error)
        except DponeError as error:
            return Failed(error.failure.problem)

    def _exact(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return require_exact(batch, self._contract, self._sent)
        except DponeError:
            self._give_up()
            raise

    def _connected(self) -> ArrowSession:
        if self._arrow is None:
            with self._server.session(PURPOSE, WRITE_SECONDS) as own:
                make_staging(own, self._job)
            opened = arrow_session(self._server.endpoint, self._server.credential, seconds=WRITE_SECONDS)
            self._arrow = self._open.enter_context(opened)
        return self._arrow

    def _loading(self, schema: pa.Schema) -> BulkLoad:
        if self._load is None:
            arrow, names = self._connected(), [column.name for column in self._columns]
            self._load = BulkLoad(
                staged_schema(schema, self._columns),
                lambda batches: arrow.load(self._job.staged, names, batches, WRITE_SECONDS),
            )
        return self._load

    def _give_up(self) -> None:
        if self._load is not None:
            self._load.abandon()
        self._open.close()

    def _require_taken(self, taken: int) -> None:
        if taken != self._sent:
            raise DponeError(_other_count(self._job, taken, self._sent))

    def _read_back(self, arrow: ArrowSession, deadline: Deadline) -> StagedContent:
        staged = self._job.staged
        with self._server.session(PURPOSE, max(1.0, deadline.remaining())) as own:
            (found,) = read(own, [staged])
        if not isinstance(found, Standing):
            raise DponeError(staging_gone(self._job))
        reads = column_reads(self._columns, found, staged=True)
        kept = arrow.batches(select_rows(staged, reads, name="rows_kept"))
        tally = ContentTally(self._columns)
        for exact in exact_stream((as_declared(batch, reads) for batch in kept), self._contract):
            tally.add(exact)
            if deadline.passed():
                raise ServerError(0, "the time was up while the staging table was read back")
        return tally.content()

    def _failed(self, error: MssqlError) -> Failed:
        return before_commit(error, f"staging table {self._job.staged}")


def make_staging(own: Session, job: PublishJob) -> None:
    """Make the slot's staging table anew, whatever an earlier attempt left under its name."""
    with own.transaction():
        own.run(filled(ddl.STATEMENTS["drop_table"], table=qualified(job.staged)))
        own.run(ddl.staging_table(job.declared, job.staged))
        own.run(ddl.table_comment(job.staged, label_of(job)))


def _other_count(job: PublishJob, taken: int, sent: int) -> Failed:
    return fail(
        "staged_rows_lost",
        f"staging table {job.staged}",
        found=f"{taken} rows taken by the server",
        allowed=f"the {sent} rows that were sent",
        next_command="nothing was published; the next try begins anew",
    )
