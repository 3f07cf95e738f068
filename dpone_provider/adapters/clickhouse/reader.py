"""Reading one table as canonical Arrow batches, for reconciliation and for reading back what was staged.

The guarantee: the rows come from one SELECT, which holds one set of immutable parts from its beginning to its end, also
when the table is exchanged or dropped meanwhile. The count is a statement of its own just before; a snapshot whose rows
are not as many, or that is not whole, is a failure. A table that somebody writes between the two is therefore noticed
unless it keeps its number of rows, and then its rows are still those of one instant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from dpone_provider.adapters.clickhouse.arrow_stream import record_batches
from dpone_provider.adapters.clickhouse.errors import ERRORS, ClickHouseError
from dpone_provider.adapters.clickhouse.names import Sql, quoted, with_names
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.adapters.clickhouse.types import logical_type, normalised_column
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.columnar.exact_stream import exact_stream, sliced
from dpone_provider.columnar.exactness import RowContract
from dpone_provider.columnar.target_limits import CLICKHOUSE
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, fail, refuse
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import LogicalType, Timestamp
from dpone_provider.sql_files import load

_STATEMENTS: Final = load(Path(__file__).with_name("read.sql"))
READ_SECONDS: Final = 3600.0
_ARROW_SETTINGS: Final = {
    "output_format_arrow_string_as_string": 1,
    "output_format_arrow_fixed_string_as_fixed_byte_array": 1,
    "output_format_arrow_low_cardinality_as_dictionary": 0,
    "output_format_arrow_compression_method": "none",
    "output_format_arrow_date_as_uint16": 0,
}


class ClickHouseReader:
    """``TableReader`` through a user that may SELECT from the table."""

    def __init__(self, server: ClickHouseServer) -> None:
        """Hold where the table is."""
        self._server = server

    @contextmanager
    def snapshot(
        self, relation: Relation, columns: Sequence[Column], key: Sequence[str], bounds: Bounds
    ) -> Iterator[ClickHouseSnapshot]:
        """Open the snapshot.

        Raises:
            DponeError: Refused when the table or a column is missing, not visible, or of another type than declared;
                Failed when there are more rows than the bounds allow.
        """
        session = Session(self._server)
        try:
            _require_columns(session, relation, columns)
            sql = with_names(_STATEMENTS["described"], {"table": relation})
            ((_, rows),) = session.rows(sql, {"database": relation.schema, "table": relation.name})
            if rows > bounds.max_rows:
                raise DponeError(_passed(relation, f"{rows} rows", bounds))
            yield ClickHouseSnapshot(session, relation, columns, key, bounds, int(rows))
        except ERRORS as error:
            raise DponeError(_broken(relation, error)) from None
        finally:
            session.release()


class ClickHouseSnapshot:
    """``TableSnapshot``: ``rows`` is the server's own count, and what ``batches`` yields in all, else it fails."""

    def __init__(
        self,
        session: Session,
        relation: Relation,
        columns: Sequence[Column],
        key: Sequence[str],
        bounds: Bounds,
        rows: int,
    ) -> None:
        """Hold an open session; nothing is read yet."""
        self._session = session
        self._relation = relation
        self._contract = RowContract(
            relation=relation, columns=tuple(columns), limits=CLICKHOUSE, key_columns=tuple(key)
        )
        self._bounds = bounds
        self.rows = rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in canonical types.

        Raises:
            DponeError: Failed when the answer broke, had another number of rows or passed the bounds; Refused when a
                value is not exact.
        """
        seen = 0
        try:
            for batch in exact_stream(sliced(self._bounded(), self._bounds.batch_rows), self._contract):
                seen += len(batch)
                yield batch
        except ERRORS as error:
            raise DponeError(_broken(self._relation, error)) from None
        if seen != self.rows:
            raise DponeError(_changed(self._relation, seen, self.rows))

    def _bounded(self) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in self._stream():
            size += batch.nbytes
            if size > self._bounds.max_bytes:
                raise DponeError(_passed(self._relation, f"at least {size} bytes", self._bounds))
            yield batch

    def _stream(self) -> Iterator[pa.RecordBatch]:
        columns = Sql(", ".join(quoted(column.name) for column in self._contract.columns))
        sql = with_names(_STATEMENTS["rows"], {"table": self._relation, "columns": columns})
        settings = _ARROW_SETTINGS | {"max_block_size": self._bounds.batch_rows}
        answer = self._session.stream(sql, arrow_settings=settings, parameters={})
        try:
            for batch in record_batches(answer):
                yield _in_declared_terms(batch, self._contract.columns)
        finally:
            answer.close()


def _in_declared_terms(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    """Undo what only the engine says: a timestamp without zone is stored as UTC, a UUID comes as an extension type."""
    arrays = [_in_declared_term(array, column.type) for array, column in zip(batch.columns, columns, strict=True)]
    return pa.record_batch(arrays, names=batch.schema.names)


def _in_declared_term(array: pa.Array, logical: LogicalType) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        return array.storage
    if isinstance(logical, Timestamp) and pa.types.is_timestamp(array.type):
        return array.view(pa.timestamp(array.type.unit))
    return array


def _require_columns(session: Session, relation: Relation, columns: Sequence[Column]) -> None:
    rows = session.rows(_STATEMENTS["columns"], {"database": relation.schema, "table": relation.name})
    found = {name: logical_type(kind) for name, kind in rows}
    spelled = dict(rows)
    if not found:
        raise DponeError(_refused(relation, "no such table, or one that the user may not see", "an existing table"))
    for column in columns:
        wanted = normalised_column(column)
        if found.get(column.name) != (wanted.type, wanted.nullable):
            raise DponeError(
                _refused(
                    relation,
                    f"column {column.name!r}: {spelled.get(column.name, 'missing')}",
                    f"{column.type}{' or NULL' if column.nullable else ''}",
                )
            )


def _refused(relation: Relation, found: str, allowed: str) -> Refused:
    return refuse(
        "source_differs",
        f"ClickHouse table {relation}",
        found=found,
        allowed=allowed,
        next_command="run dpone compile again against the table as it is",
    )


def _broken(relation: Relation, error: ClickHouseError) -> Failed:
    return fail(
        "source_broke",
        f"ClickHouse table {relation}",
        found=error,
        allowed="a whole answer of the server",
        next_command="retry; if it repeats, look at the server's log",
    )


def _passed(relation: Relation, found: str, bounds: Bounds) -> Failed:
    return fail(
        "bounds_passed",
        f"ClickHouse table {relation}",
        found=found,
        allowed=f"{bounds.max_rows} rows and {bounds.max_bytes} bytes",
        next_command="raise `bounds` in the workspace and release anew, if the table may be that large",
    )


def _changed(relation: Relation, seen: int, counted: int) -> Failed:
    return fail(
        "source_changed_while_read",
        f"ClickHouse table {relation}",
        found=f"{seen} rows read",
        allowed=f"the {counted} rows that the server counted just before",
        next_command="retry",
    )
