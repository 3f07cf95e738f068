"""`TableReader`: one table at one instant, in one SNAPSHOT transaction, as canonical Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from dpone_provider.adapters.mssql.arrow_session import ArrowSession, arrow_session
from dpone_provider.adapters.mssql.column_reads import ColumnRead, Guard, column_read
from dpone_provider.adapters.mssql.definitions import read
from dpone_provider.adapters.mssql.enrolment import require_life
from dpone_provider.adapters.mssql.errors import ERRORS, MssqlError, refusal_of
from dpone_provider.adapters.mssql.names import Fragment, filled, identifier, joined, qualified
from dpone_provider.adapters.mssql.replaced_text import ReplacedText
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.application.relational.definitions import EngineColumn, Standing
from dpone_provider.application.relational.enrolment import Facts
from dpone_provider.application.relational.source import (
    broken,
    could_write,
    declared_rows,
    ended_early,
    fitting_columns,
    holds_no_more,
    require_rows,
    require_same,
    standing_source,
)
from dpone_provider.columnar.exactness import RowContract
from dpone_provider.columnar.offence import InexactValue, asked_row_text
from dpone_provider.columnar.target_limits import MSSQL
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Refused, refuse
from dpone_provider.domain.schema.tables import Column
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("reader.sql"))
READ_SECONDS: Final = 3600.0
PURPOSE: Final = "dpone reader"
SNAPSHOT_ON: Final = 1


class MssqlReader:
    """Reads through a login that cannot write what it reads: the binding's read-only one."""

    def __init__(self, server: MssqlServer, *, pinned: Facts | None = None, seconds: float = READ_SECONDS) -> None:
        """Connect to nothing yet; ``pinned`` are the facts of the database's life that may be read, None for any;
        ``seconds`` bound the whole."""
        self._server = server
        self._pinned = pinned
        self._seconds = seconds

    @contextmanager
    def snapshot(
        self, relation: Relation, columns: Sequence[Column], key: Sequence[str], bounds: Bounds
    ) -> Iterator[MssqlSnapshot]:
        """Open the snapshot.

        Raises:
            DponeError: Refused when the database allows no snapshot, when it is another life of it than the pinned one,
                when the table or a column is missing or of another type than declared, when it is kept in memory,
                when the login could write the table or rows are hidden from it, or when a value has no Arrow value;
                Failed when it broke, or has too many rows.
        """
        with self._open(relation) as (definitions, arrow):
            require_life(definitions, relation, self._pinned)
            _require_snapshots(definitions, relation)
            found = _standing(definitions, relation)
            self._require_readable(relation, found)
            _require_on_disk(definitions, relation, found)
            reads = column_reads(columns, found)
            arrow.run(STATEMENTS["snapshot"])
            rows = counted(arrow, relation, reads, key)
            # What changed between the first look and the snapshot shows here; what changes later ends it (3961).
            require_same(_standing(definitions, relation), found)
            require_rows(relation, rows, bounds)
            yield MssqlSnapshot(arrow, relation, reads, key, bounds, rows)

    @contextmanager
    def _open(self, relation: Relation) -> Iterator[tuple[Session, ArrowSession]]:
        failure: MssqlError
        server = self._server
        try:
            with (
                server.session(PURPOSE, self._seconds) as definitions,
                arrow_session(server.endpoint, server.credential, seconds=self._seconds) as arrow,
            ):
                yield definitions, arrow
            return
        except ERRORS as error:
            failure = error
        raise DponeError(refusal_of(failure) or broken(relation, failure))

    def _require_readable(self, relation: Relation, found: Standing) -> None:
        if found.writable:
            raise DponeError(
                could_write(relation, self._server.credential.user, "a right to change its rows or its definition")
            )
        if found.row_security:
            raise DponeError(_hidden_rows(relation))


class MssqlSnapshot:
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
            limits=MSSQL,
            key_columns=tuple(key),
        )
        self.rows = rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in canonical types.

        Raises:
            DponeError: Failed when the source broke, ended early or is larger than its bounds, Refused when a value is
                not exact.
        """
        failure: MssqlError
        relation = self._contract.relation
        replaced = ReplacedText(relation, self._reads, self._contract.key_columns)
        try:
            selected = replaced.watched(self._arrow.batches(select_rows(relation, self._reads)))
            read = 0
            for batch in declared_rows(selected, self._reads, self._contract, self._bounds):
                read += len(batch)
                yield batch
            # The driver may take a connection that broke between two rows for the end of them.
            if read != self.rows:
                raise DponeError(ended_early(relation, read, self.rows))
            replaced.require_none(self._arrow, self.rows)
            return
        except ERRORS as error:
            failure = error
        raise DponeError(broken(relation, failure))


def select_rows(relation: Relation, reads: Sequence[ColumnRead], *, name: str = "rows") -> Fragment:
    """Return the query whose rows ``as_declared`` understands."""
    columns = joined(Fragment(f"{one.selected} AS {identifier(one.column.name)}") for one in reads)
    return filled(STATEMENTS[name], columns=columns, table=qualified(relation))


def column_reads(columns: Sequence[Column], found: Standing, *, staged: bool = False) -> tuple[ColumnRead, ...]:
    """Decide how each declared column is read.

    Raises:
        DponeError: Refused when one is missing, of an unsupported or other type, or may hold NULL undeclared.
    """
    fits = _always if staged else holds_no_more
    return tuple(column_read(column, there, staged=staged) for column, there in fitting_columns(columns, found, fits))


def _always(column: Column, there: EngineColumn) -> bool:
    """A staging table was made for the columns; some values stand there as text."""
    return True


def counted(arrow: ArrowSession, relation: Relation, reads: Sequence[ColumnRead], key: Sequence[str]) -> int:
    """Count the rows inside the snapshot.

    Raises:
        DponeError: Refused when a guard is met, naming column, row and value.
    """
    guarded = [(one.column, one.guard) for one in reads if one.guard is not None]
    filters = [Fragment(f"COUNT_BIG(CASE WHEN {guard.condition} THEN 1 END)") for _, guard in guarded]
    counts = joined([Fragment("COUNT_BIG(*)"), *filters])
    rows, *met = arrow.row(filled(STATEMENTS["count"], counts=counts, table=qualified(relation)))
    for (column, guard), times in zip(guarded, met, strict=True):
        if times:
            raise DponeError(_offender(arrow, relation, column, guard, key).refusal())
    return int(rows)


def _offender(
    arrow: ArrowSession, relation: Relation, column: Column, guard: Guard, key: Sequence[str]
) -> InexactValue:
    names = [*key, column.name]
    shown = joined(Fragment(f"CONVERT(nvarchar(200), {identifier(name)})") for name in names)
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


def _require_snapshots(definitions: Session, relation: Relation) -> None:
    state, words = definitions.row(STATEMENTS["snapshot_allowed"])
    if state != SNAPSHOT_ON:
        raise DponeError(
            refuse(
                "snapshot_not_allowed",
                f"the database of source {relation}",
                found=f"ALLOW_SNAPSHOT_ISOLATION {words}",
                allowed="ON: without a snapshot a scan can miss a row, or read it twice",
                next_command="ALTER DATABASE … SET ALLOW_SNAPSHOT_ISOLATION ON, then run the task again",
            )
        )


def _require_on_disk(definitions: Session, relation: Relation, found: Standing) -> None:
    (in_memory,) = definitions.row(STATEMENTS["memory_optimised"], {"object": int(found.identity)})
    if in_memory:
        raise DponeError(
            refuse(
                "source_is_memory_optimised",
                f"source {relation}",
                found="a memory-optimised table",
                allowed="a table on disk: a SNAPSHOT transaction reads none that is kept in memory",
                next_command="copy it into a table on disk and read that, or choose another source",
            )
        )


def _standing(definitions: Session, relation: Relation) -> Standing:
    (found,) = read(definitions, [relation])
    return standing_source(found)


def _hidden_rows(relation: Relation) -> Refused:
    return refuse(
        "source_rows_filtered",
        f"source {relation}",
        found="a security policy, which may hide rows from this login",
        allowed="a table whose rows are the same for everybody",
        next_command="read a copy without the policy, or choose another source",
    )
