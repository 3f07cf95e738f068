"""`StagingWriter`: the worker fills the slot's staging table on its issued login, and reads it back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pyarrow as pa

from dpone_provider.adapters.postgres import ddl
from dpone_provider.adapters.postgres.arrow_session import ArrowSession, arrow_session
from dpone_provider.adapters.postgres.definitions import read
from dpone_provider.adapters.postgres.errors import ERRORS, PostgresError
from dpone_provider.adapters.postgres.names import filled, literal, qualified
from dpone_provider.adapters.postgres.reader import column_reads, select_rows
from dpone_provider.adapters.postgres.session import Session, session
from dpone_provider.application.content import ContentTally
from dpone_provider.application.ports.tables import PublishJob, StagedContent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.relational.answers import before_commit
from dpone_provider.application.relational.definitions import Standing
from dpone_provider.application.relational.publication import staging_gone
from dpone_provider.columnar.exact_stream import as_declared, exact_stream, require_exact
from dpone_provider.columnar.exactness import RowContract
from dpone_provider.columnar.target_limits import POSTGRES
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.outcomes import DponeError, Failed
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("publication.sql"))
WRITE_SECONDS: Final = 3600.0
PURPOSE: Final = "dpone staging"


class PostgresStagingWriter:
    """Fills ``job.staged``: made anew at the first use, unlogged, labelled with the attempt."""

    def __init__(self, endpoint: Endpoint, credential: Credential, job: PublishJob, *, key: Sequence[str] = ()) -> None:
        """Connect to nothing yet; ``key`` names the columns by which a message names a row."""
        self._endpoint = endpoint
        self._credential = credential
        self._job = job
        self._contract = RowContract(
            relation=job.target, columns=job.declared.columns, limits=POSTGRES, key_columns=tuple(key)
        )
        self._open = ExitStack()
        self._arrow: ArrowSession | None = None
        self._sent = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Check and send one batch, as one COPY in binary form.

        Raises:
            DponeError: Refused when a value is not exact, Failed when the server refused or broke.
        """
        exact = self._exact(batch)
        failure: PostgresError
        try:
            self._connected().ingest(self._job.staged, exact)
            self._sent += len(batch)
            return
        except ERRORS as error:
            self._open.close()
            failure = error
        raise DponeError(self._failed(failure))

    def finish(self, deadline: Deadline) -> StagedContent | Failed:
        """Read the staged table back, on the same login, and disconnect."""
        try:
            with self._open:
                return self._read_back(self._connected(), deadline)
        except ERRORS as error:
            return self._failed(error)
        except DponeError as error:
            return Failed(error.failure.problem)

    def _exact(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return require_exact(batch, self._contract, self._sent)
        except DponeError:
            self._open.close()
            raise

    def _connected(self) -> ArrowSession:
        if self._arrow is None:
            with session(self._endpoint, self._credential, purpose=PURPOSE, seconds=WRITE_SECONDS) as own:
                make_staging(own, self._job)
            self._arrow = self._open.enter_context(
                arrow_session(self._endpoint, self._credential, purpose=PURPOSE, seconds=WRITE_SECONDS)
            )
        return self._arrow

    def _read_back(self, arrow: ArrowSession, deadline: Deadline) -> StagedContent:
        staged = self._job.staged
        with session(self._endpoint, self._credential, purpose=PURPOSE, seconds=deadline.remaining()) as own:
            (found,) = read(own, [staged])
        if not isinstance(found, Standing):
            raise DponeError(staging_gone(self._job))
        arrow.run(f"SET statement_timeout = {max(1, int(deadline.remaining() * 1000))}")
        reads = column_reads(self._contract.columns, found)
        read_back = (as_declared(batch, reads) for batch in arrow.batches(select_rows(staged, reads)))
        tally = ContentTally(self._contract.columns)
        for exact in exact_stream(read_back, self._contract):
            tally.add(exact)
        return tally.content()

    def _failed(self, error: PostgresError) -> Failed:
        return before_commit(error, f"staging table {self._job.staged}")


def make_staging(own: Session, job: PublishJob) -> None:
    """Make the slot's staging table anew, whatever an earlier attempt left under its name."""
    with own.transaction():
        own.run(filled(ddl.STATEMENTS["drop_table"], table=qualified(job.staged)))
        own.run(ddl.staging_table(job.declared, job.staged))
        own.run(filled(STATEMENTS["label"], table=qualified(job.staged), label=literal(job.attempt_id)))
