"""`TableReader` over ADBC: one table at one instant, as canonical Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
from psycopg import sql

from dpone_provider.adapters.postgres.arrow_session import ArrowSession, arrow_session
from dpone_provider.adapters.postgres.column_reads import ColumnRead, Guard, column_read
from dpone_provider.adapters.postgres.definitions import read
from dpone_provider.adapters.postgres.enrolment import require_life
from dpone_provider.adapters.postgres.errors import ERRORS, PostgresError
from dpone_provider.adapters.postgres.names import filled, identifier, qualified
from dpone_provider.adapters.postgres.session import Session, session
from dpone_provider.adapters.postgres.types import UNBOUNDED_NUMERIC
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.application.relational.definitions import EngineColumn, Standing
from dpone_provider.application.relational.enrolment import Facts
from dpone_provider.application.relational.source import (
    broken,
    could_write,
    declared_rows,
    fitting_columns,
    holds_no_more,
    require_rows,
    require_same,
    standing_source,
)
from dpone_provider.columnar.exactness import RowContract
from dpone_provider.columnar.offence import InexactValue, asked_row_text
from dpone_provider.columnar.target_limits import POSTGRES
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import Decimal
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("reader.sql"))
READ_SECONDS: Final = 3600.0
PURPOSE: Final = "dpone reader"


class PostgresReader:
    """Reads through a login that cannot write what it reads: the binding's read-only one."""

    def __init__(
        self,
        endpoint: Endpoint,
        credential: Credential,
        *,
        pinned: Facts | None = None,
        seconds: float = READ_SECONDS,
    ) -> None:
        """Connect to nothing yet; ``pinned`` are the facts of the database's life that may be read, None for any;
        ``seconds`` bound each statement."""
        self._endpoint = endpoint
        self._credential = credential
        self._pinned = pinned
        self._seconds = seconds

    @contextmanager
    def snapshot(
        self, relation: Relation, columns: Sequence[Column], key: Sequence[str], bounds: Bounds
    ) -> Iterator[PostgresSnapshot]:
        """Open the snapshot.

        Raises:
            DponeError: Refused when it is another life of the database than the pinned one, when the table or a column
                is missing or of another type than declared, when the login could write the table, or when a value has
                no Arrow value; Failed when it broke, or has too many rows.
        """
        with self._open(relation) as (definitions, arrow):
            # A database cannot be replaced under a session: the second look below proves that this one is still there.
            require_life(definitions, relation, self._pinned)
            found = _standing(definitions, relation)
            if found.writable:
                raise DponeError(could_write(relation, self._credential.user, "a right to change its rows"))
            reads = column_reads(columns, found)
            arrow.run(STATEMENTS["begin"])
            arrow.run(STATEMENTS["no_row_policies"])
            arrow.run(filled(STATEMENTS["hold"], table=qualified(relation)).as_string(None))
            require_same(_standing(definitions, relation), found)
            rows = counted(arrow, relation, reads, key)
            require_rows(relation, rows, bounds)
            yield PostgresSnapshot(arrow, relation, reads, key, bounds, rows)

    @contextmanager
    def _open(self, relation: Relation) -> Iterator[tuple[Session, ArrowSession]]:
        failure: PostgresError
        try:
            with (
                session(self._endpoint, self._credential, purpose=PURPOSE, seconds=self._seconds) as definitions,
                arrow_session(self._endpoint, self._credential, purpose=PURPOSE, seconds=self._seconds) as arrow,
            ):
                yield definitions, arrow
            return
        except ERRORS as error:
            failure = error
        raise DponeError(broken(relation, failure))


class PostgresSnapshot:
    """`TableSnapshot`: ``rows`` is the server's own count inside the snapshot that ``batches`` streams."""

    def __init__(
        self,
        arrow: ArrowSession,
        relation: Relation,
        reads: Sequence[ColumnRead],
        key: Sequence[str],
        bounds: Bounds,
        rows: int,
    ) -> None:
        """Hold an open transaction; nothing is streamed yet."""
        self._arrow = arrow
        self._reads = tuple(reads)
        self._bounds = bounds
        self._contract = RowContract(
            relation=relation,
            columns=tuple(one.column for one in reads),
            limits=POSTGRES,
            key_columns=tuple(key),
        )
        self.rows = rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in canonical types.

        Raises:
            DponeError: Failed when the source broke or is larger than its bounds, Refused when a value is not exact.
        """
        failure: PostgresError
        try:
            selected = self._arrow.batches(select_rows(self._contract.relation, self._reads))
            yield from declared_rows(selected, self._reads, self._contract, self._bounds)
            return
        except ERRORS as error:
            failure = error
        raise DponeError(broken(self._contract.relation, failure))


def select_rows(relation: Relation, reads: Sequence[ColumnRead]) -> sql.Composed:
    """Return the query whose rows ``as_declared`` understands."""
    columns = sql.SQL(", ").join(one.selected for one in reads)
    return filled(STATEMENTS["rows"], columns=columns, table=qualified(relation))


def column_reads(columns: Sequence[Column], found: Standing) -> tuple[ColumnRead, ...]:
    """Decide how each declared column is read.

    Raises:
        DponeError: Refused when one is missing, of an unsupported or other type, or may hold NULL undeclared.
    """
    return tuple(column_read(column, there) for column, there in fitting_columns(columns, found, _fits))


def _fits(column: Column, there: EngineColumn) -> bool:
    if there.engine_type == UNBOUNDED_NUMERIC:
        return isinstance(column.type, Decimal) and (column.nullable or not there.nullable)
    return holds_no_more(column, there)


def counted(arrow: ArrowSession, relation: Relation, reads: Sequence[ColumnRead], key: Sequence[str]) -> int:
    """Count the rows inside the snapshot.

    Raises:
        DponeError: Refused when a guard is met, naming column, row and value.
    """
    guarded = [(one.column, one.guard) for one in reads if one.guard is not None]
    filters = [sql.SQL("count(*) FILTER (WHERE {})").format(guard.condition) for _, guard in guarded]
    counts = sql.SQL(", ").join([sql.SQL("count(*)"), *filters])
    rows, *met = arrow.row(filled(STATEMENTS["count"], counts=counts, table=qualified(relation)))
    for (column, guard), times in zip(guarded, met, strict=True):
        if times:
            raise DponeError(_offender(arrow, relation, column, guard, key).refusal())
    return int(rows)


def _offender(
    arrow: ArrowSession, relation: Relation, column: Column, guard: Guard, key: Sequence[str]
) -> InexactValue:
    names = [*key, column.name]
    shown = sql.SQL(", ").join(sql.SQL("{}::text").format(identifier(name)) for name in names)
    query = filled(STATEMENTS["offender"], shown=shown, table=qualified(relation), guard=guard.condition)
    *keys, value = arrow.row(query)
    return InexactValue(
        relation=relation,
        column=column.name,
        row=asked_row_text(key, keys),
        rule=guard.rule,
        value=str(value),
        limit=guard.limit,
    )


def _standing(definitions: Session, relation: Relation) -> Standing:
    (found,) = read(definitions, [relation])
    return standing_source(found)
