"""One ADBC connection to PostgreSQL: rows as Arrow, both ways, bounded in time, never leaking its credential.

ADBC takes one connection string and repeats parts of it when libpq cannot parse it, so every error is told anew,
outside of its ``except`` block and with the password struck out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import adbc_driver_manager
import adbc_driver_postgresql
import adbc_driver_postgresql.dbapi
import pyarrow as pa
from psycopg import sql
from psycopg.conninfo import make_conninfo

from dpone_provider.adapters.postgres.errors import AnswerLost, LoginRefused, PostgresError, ServerError
from dpone_provider.adapters.postgres.session import SSL_MODES, scrubbed
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import Relation

BATCH_BYTES: Final = 8 * 1024 * 1024
"""ADBC ends a batch after about so many bytes; larger ones cost memory and save no time."""
_DRIVER_ERRORS: Final = (adbc_driver_manager.Error, pa.ArrowException, OSError)
"""A stream's errors come as those of Arrow, or as OSError."""


class ArrowSession:
    """An open connection in autocommit. Its methods raise ``ServerError`` or ``AnswerLost``."""

    def __init__(self, connection: Any, credential: Credential) -> None:
        """Wrap an open connection."""
        self._connection = connection
        self._credential = credential

    def run(self, statement: str) -> None:
        """Run a statement without rows."""
        failure: PostgresError
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
            return
        except _DRIVER_ERRORS as error:
            failure = told(error, self._credential)
        raise failure

    def row(self, query: sql.Composed) -> tuple[Any, ...]:
        """Run a query that gives exactly one row."""
        failure: PostgresError
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(query.as_string(None))
                (only,) = cursor.fetchall()
                return tuple(only)
        except _DRIVER_ERRORS as error:
            failure = told(error, self._credential)
        raise failure

    def batches(self, query: sql.Composed) -> Iterator[pa.RecordBatch]:
        """Stream a query's rows, through COPY in binary form."""
        failure: PostgresError
        try:
            with self._connection.cursor() as cursor:
                hint = adbc_driver_postgresql.StatementOptions.BATCH_SIZE_HINT_BYTES.value
                cursor.adbc_statement.set_options(**{hint: str(BATCH_BYTES)})
                cursor.execute(query.as_string(None))
                yield from cursor.fetch_record_batch()
            return
        except _DRIVER_ERRORS as error:
            failure = told(error, self._credential)
        raise failure

    def ingest(self, relation: Relation, rows: pa.RecordBatch | pa.RecordBatchReader) -> int:
        """Append rows to a table that exists, through COPY in binary form; return how many the server took."""
        failure: PostgresError
        try:
            with self._connection.cursor() as cursor:
                return int(cursor.adbc_ingest(relation.name, rows, mode="append", db_schema_name=relation.schema))
        except _DRIVER_ERRORS as error:
            failure = told(error, self._credential)
        raise failure


@contextmanager
def arrow_session(
    endpoint: Endpoint, credential: Credential, *, purpose: str, seconds: float
) -> Iterator[ArrowSession]:
    """Open a new connection, and close it at the end. ``seconds`` bound the connecting and every statement.

    Raises:
        LoginRefused: the server let the role not in.
        AnswerLost: nobody answered.
    """
    connection = _opened(endpoint, credential, purpose, seconds)
    try:
        yield ArrowSession(connection, credential)
    finally:
        with suppress(*_DRIVER_ERRORS):
            connection.close()


def _opened(endpoint: Endpoint, credential: Credential, purpose: str, seconds: float) -> Any:
    failure: PostgresError
    milliseconds = max(1, int(seconds * 1000))
    try:
        return adbc_driver_postgresql.dbapi.connect(
            make_conninfo(
                host=endpoint.host,
                port=endpoint.port,
                dbname=endpoint.database,
                user=credential.user,
                password=credential.password.reveal(),
                sslmode=SSL_MODES[endpoint.tls],
                connect_timeout=max(2, milliseconds // 1000),
                application_name=purpose,
                options=f"-c statement_timeout={milliseconds} -c lock_timeout={max(1, milliseconds * 9 // 10)}",
                client_encoding="UTF8",
            ),
            autocommit=True,
        )
    except _DRIVER_ERRORS as error:
        failure = told(error, credential)
    raise failure


def told(error: Exception, credential: Credential) -> PostgresError:
    """Return what a driver's error says, without the connection string."""
    words = " ".join(scrubbed(str(error), credential).split())
    state = getattr(error, "sqlstate", None)
    if state:
        return ServerError(state, words.partition("ERROR:")[2].partition("DETAIL:")[0].strip() or words)
    if "FATAL:" in words:
        return LoginRefused(words.partition("FATAL:")[2].partition("CONTEXT:")[0].strip())
    return AnswerLost(words)
