"""`TableReader`: one table at one instant, in one SNAPSHOT transaction, as canonical Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from dpone_provider.adapters.mssql.arrow_session import ArrowSession, arrow_session
from dpone_provider.adapters.mssql.column_reads import ColumnRead, Guard, column_read
from dpone_provider.adapters.mssql.definitions import TABLE, VIEW, EngineColumn, Standing, read
from dpone_provider.adapters.mssql.enrolment import Facts, require_life
from dpone_provider.adapters.mssql.errors import ERRORS, LoginRefused, MssqlError
from dpone_provider.adapters.mssql.names import Fragment, filled, identifier, joined, qualified
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.columnar.exactness import RowContract, exact_batch
from dpone_provider.columnar.offence import InexactValue
from dpone_provider.columnar.target_limits import MSSQL
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, fail, refuse
from dpone_provider.domain.schema.tables import Absent, Column, Unreadable
from dpone_provider.domain.schema.widening import Fit, fit
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("reader.sql"))
READ_SECONDS: Final = 3600.0
READABLE: Final = (TABLE, VIEW)
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
                when the table or a column is missing or of another type than declared, when the login could write the
                table or rows are hidden from it, or when a value has no Arrow value; Failed when it broke, or has too
                many rows.
        """
        with self._open(relation) as (definitions, arrow):
            require_life(definitions, relation, self._pinned)
            _require_snapshots(definitions, relation)
            found = _standing(definitions, relation)
            self._require_readable(relation, found)
            reads = column_reads(relation, columns, found)
            arrow.run(STATEMENTS["snapshot"])
            rows = counted(arrow, relation, reads, key)
            # What changed between the first look and the snapshot shows here; what changes later ends it (3961).
            if _standing(definitions, relation) != found:
                raise DponeError(_changed(relation))
            _require_rows(relation, rows, bounds)
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
        raise DponeError(broken(relation, failure))

    def _require_readable(self, relation: Relation, found: Standing) -> None:
        if found.writable:
            raise DponeError(_could_write(relation, self._server.credential.user))
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
            DponeError: Failed when the source broke or is larger than its bounds, Refused when a value is not exact.
        """
        failure: MssqlError
        try:
            yield from self._batches()
            return
        except ERRORS as error:
            failure = error
        raise DponeError(broken(self._contract.relation, failure))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        seen = size = 0
        for whole in self._arrow.batches(select_rows(self._contract.relation, self._reads)):
            for start in range(0, len(whole), self._bounds.batch_rows):
                batch = exact_batch(
                    as_declared(whole.slice(start, self._bounds.batch_rows), self._reads), self._contract, seen
                )
                if isinstance(batch, InexactValue):
                    raise DponeError(batch.refusal())
                seen += len(batch)
                size += batch.nbytes
                if size > self._bounds.max_bytes:
                    found, allowed = f"more than {size} bytes", f"{self._bounds.max_bytes} bytes"
                    raise DponeError(_too_large(self._contract.relation, found, allowed))
                yield batch


def select_rows(relation: Relation, reads: Sequence[ColumnRead], *, name: str = "rows") -> Fragment:
    """Return the query whose rows ``as_declared`` understands."""
    columns = joined(Fragment(f"{one.selected} AS {identifier(one.column.name)}") for one in reads)
    return filled(STATEMENTS[name], columns=columns, table=qualified(relation))


def as_declared(batch: pa.RecordBatch, reads: Sequence[ColumnRead]) -> pa.RecordBatch:
    """Return a batch of ``select_rows`` under the declared names, with integers as what they stand for."""
    arrays = [one.values(array) for one, array in zip(reads, batch.columns, strict=True)]
    return pa.record_batch(arrays, names=[one.column.name for one in reads])


def column_reads(
    relation: Relation, columns: Sequence[Column], found: Standing, *, staged: bool = False
) -> tuple[ColumnRead, ...]:
    """Decide how each declared column is read.

    Raises:
        DponeError: Refused when one is missing, of an unsupported or other type, or may hold NULL undeclared.
    """
    by_name = {column.name: column for column in found.columns}
    reads = []
    for column in columns:
        there = by_name.get(column.name)
        if there is None or not (staged or _fits(column, there)):
            raise DponeError(_other_column(relation, column, there))
        reads.append(column_read(column, there, staged=staged))
    return tuple(reads)


def _fits(column: Column, there: EngineColumn) -> bool:
    if there.logical is None or (there.nullable and not column.nullable):
        return False
    return fit(there.logical, column.type) in (Fit.SAME, Fit.WIDER)


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
    parts = ", ".join(f"{name}={text}" for name, text in zip(key, keys, strict=True))
    return InexactValue(
        relation=relation,
        column=column.name,
        row=f"key ({parts})" if parts else "a row of a table without a declared key",
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


def _standing(definitions: Session, relation: Relation) -> Standing:
    (found,) = read(definitions, [relation])
    match found:
        case Standing() if found.kind in READABLE and found.readable:
            return found
        case Standing():
            what = "a table that this login may not read" if found.kind in READABLE else "another kind of object"
            raise DponeError(_no_source(relation, what))
        case Absent():
            raise DponeError(_no_source(relation, "nothing of that name"))
        case Unreadable(failure=failure):
            raise DponeError(failure)


def _require_rows(relation: Relation, rows: int, bounds: Bounds) -> None:
    if rows > bounds.max_rows:
        raise DponeError(_too_large(relation, f"{rows} rows", f"{bounds.max_rows} rows"))


def _no_source(relation: Relation, found: str) -> Refused:
    return refuse(
        "source_missing",
        f"source {relation}",
        found=found,
        allowed="a table or view that the source's login may read",
        next_command="correct the transfer, or grant SELECT to the login; then dpone compile",
    )


def _could_write(relation: Relation, user: str) -> Refused:
    return refuse(
        "source_login_could_write",
        f"login {user}, source {relation}",
        found="a right to change its rows or its definition",
        allowed="read-only credentials",
        next_command="bind the source to a login that has SELECT only",
    )


def _hidden_rows(relation: Relation) -> Refused:
    return refuse(
        "source_rows_filtered",
        f"source {relation}",
        found="a security policy, which may hide rows from this login",
        allowed="a table whose rows are the same for everybody",
        next_command="read a copy without the policy, or choose another source",
    )


def _other_column(relation: Relation, column: Column, there: EngineColumn | None) -> Refused:
    found = "no such column" if there is None else there.engine_type + (", nullable" if there.nullable else "")
    return refuse(
        "source_differs",
        f"source {relation}, column {column.name!r}",
        found=found,
        allowed=f"{column.type}{' or NULL' if column.nullable else ', NOT NULL'}",
        next_command="dpone compile again against the table as it is, or declare the column as it is",
    )


def _changed(relation: Relation) -> Failed:
    return fail(
        "source_changed",
        f"source {relation}",
        found="another definition than a moment before",
        allowed="a definition that stands while it is read",
        next_command="retry",
    )


def _too_large(relation: Relation, found: str, allowed: str) -> Failed:
    return fail(
        "bounds_passed",
        f"source {relation}",
        found=found,
        allowed=allowed,
        next_command="raise `bounds` in the workspace and release anew, if the table may be that large",
    )


def broken(relation: Relation, error: MssqlError) -> Failed:
    """Return what a read comes to that did not end: nothing was published."""
    return fail(
        "login_refused" if isinstance(error, LoginRefused) else "source_broke",
        f"source {relation}",
        found=error,
        allowed="a whole answer of the server",
        next_command="retry; if it repeats, look at the server's log",
    )
