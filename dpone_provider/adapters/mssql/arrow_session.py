"""Rows as Arrow, both ways: the one place that knows the library which moves data (docs/decisions/0018).

Its exceptions carry neither a native number nor a SQLSTATE, so nothing that must be decided by one is sent here: what
fails while rows are read or staged has published nothing. It keeps the interpreter's lock while it waits for a server,
so no thread beside it runs then: what bounds it is the statement's own time-out, and the worker's process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Final

import pyarrow as pa

from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.connection_string import arrow_parts, connection_string
from dpone_provider.adapters.mssql.errors import AnswerLost, MssqlError, ServerError
from dpone_provider.adapters.mssql.names import qualified
from dpone_provider.adapters.mssql.session import scrubbed
from dpone_provider.adapters.mssql.sockets import require_listener
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import Relation

CONNECT_SECONDS: Final = 15
READ_ROWS: Final = 8192
"""Rows of one fetch: more cost memory and save no time."""
NO_NUMBER: Final = 0
_FROM_SERVER: Final = "[SQL Server]"
_LOADER_ERRORS: Final = (RuntimeError, ValueError, TypeError, OSError, ArithmeticError, ImportError)
"""What the bulk loader raises: it is a library of its own, without a common base of exceptions."""
_PANIC: Final = "pyo3_runtime"
"""The module of what Rust code raises when it gives up; it cannot be imported."""


class ArrowSession:
    """An open connection in autocommit. Its methods raise ``ServerError`` or ``AnswerLost``."""

    def __init__(self, connection: Any, credential: Credential, errors: type[Exception]) -> None:
        """Wrap an open connection; ``errors`` is the base of the driver's exceptions."""
        self._connection = connection
        self._credential = credential
        self._errors = errors

    def run(self, statement: str) -> None:
        """Run a batch without rows."""
        for _ in self._fetched(statement, lambda cursor: iter(())):
            pass

    def row(self, query: str) -> tuple[Any, ...]:
        """Run a query that gives exactly one row."""
        found = list(self._fetched(query, lambda cursor: iter(cursor.fetchall())))
        if len(found) != 1:
            raise AnswerLost(f"{len(found)} rows, where there is always one")
        return tuple(found[0])

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Stream a query's rows; whoever reads them counts, as a broken connection may look like their end."""
        return self._fetched(query, _read)

    def load(self, relation: Relation, columns: Sequence[str], batches: pa.RecordBatchReader, seconds: float) -> int:
        """Append rows to a table that exists, through a bulk load of a connection of its own; return how many.

        The columns are always named: by position, a loader may fill others than are meant.
        """
        failure: MssqlError
        try:
            with _PanicAsError(), self._connection.cursor() as cursor:
                told = cursor.bulkcopy_arrow(
                    qualified(relation),
                    batches,
                    timeout=max(1, int(seconds)),
                    column_mappings=list(columns),
                    table_lock=True,
                    keep_nulls=True,
                )
            return int(told["rows_copied"])
        except (self._errors, *_LOADER_ERRORS) as error:
            failure = self._told(error)
        raise failure

    def _fetched(self, statement: str, fetch: Any) -> Iterator[Any]:
        failure: MssqlError
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
                yield from fetch(cursor)
                while cursor.nextset():
                    pass
            return
        except (self._errors, pa.ArrowException) as error:
            failure = self._told(error)
        raise failure

    def _told(self, error: Exception) -> MssqlError:
        words = " ".join(scrubbed(str(getattr(error, "ddbc_error", None) or error), self._credential).split())
        return ServerError(NO_NUMBER, words) if _FROM_SERVER in words else AnswerLost(words)


class _PanicAsError:
    """Raises what the loader's own code gives up with, which is none of Python's Exceptions, as a ``RuntimeError``."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let everything else pass."""
        if kind is not None and kind.__module__ == _PANIC:
            raise RuntimeError(f"the bulk loader gave up: {error}")


def _read(cursor: Any) -> Iterator[pa.RecordBatch]:
    reader = cursor.arrow_reader(READ_ROWS)
    try:
        yield from reader
    finally:
        reader.close()


@contextmanager
def arrow_session(endpoint: Endpoint, credential: Credential, *, seconds: float) -> Iterator[ArrowSession]:
    """Open a new connection, and close it at the end. ``seconds`` bound every statement.

    Raises:
        AnswerLost: nobody answered, or the login was not let in: the driver does not tell them apart.
    """
    module = driver.mssql_python()
    raw = _opened(module, endpoint, credential, seconds)
    try:
        yield ArrowSession(raw, credential, module.Error)
    finally:
        with suppress(module.Error):
            raw.close()


def _opened(module: Any, endpoint: Endpoint, credential: Credential, seconds: float) -> Any:
    failure: MssqlError
    connecting = max(1, min(CONNECT_SECONDS, round(seconds)))
    require_listener(endpoint.host, endpoint.port, connecting)
    try:
        text = connection_string(arrow_parts(endpoint, credential))
        raw = module.connect(text, autocommit=True, timeout=connecting)
        raw.timeout = max(1, round(seconds))
        return raw
    except (module.Error, RuntimeError, ValueError) as error:
        words = " ".join(scrubbed(str(getattr(error, "ddbc_error", None) or error), credential).split())
        failure = AnswerLost(words)
    raise failure
