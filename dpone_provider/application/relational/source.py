"""What reading a table of an SQL database requires of it, before and while its rows are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from dpone_provider.application.ports.tables import Bounds
from dpone_provider.application.relational.answers import LOGIN_REFUSED, Trouble
from dpone_provider.application.relational.definitions import EngineColumn, Found, Standing
from dpone_provider.columnar.exact_stream import ColumnRead, as_declared, exact_stream, sliced
from dpone_provider.columnar.exactness import RowContract
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, fail, refuse
from dpone_provider.domain.schema.tables import Absent, Column, RelationKind, Unreadable
from dpone_provider.domain.schema.widening import Fit, fit

if TYPE_CHECKING:
    import pyarrow as pa

READABLE: Final = (None, RelationKind.VIEW, RelationKind.MATERIALIZED_VIEW, RelationKind.PARTITIONED_TABLE)
"""Kinds of what can be read: ordinary tables, and what a SELECT cannot tell from them."""


def standing_source(found: Found) -> Standing:
    """Return what stands at a source's name.

    Raises:
        DponeError: Refused for nothing, for what has no rows, and for what this login may not read.
    """
    match found:
        case Standing() if found.kind in READABLE and found.readable:
            return found
        case Standing():
            what = "a table that this login may not read" if found.kind in READABLE else "another kind of object"
            raise DponeError(_no_source(found.relation, what))
        case Absent():
            raise DponeError(_no_source(found.relation, "nothing of that name"))
        case Unreadable(failure=failure):
            raise DponeError(failure)


def require_same(now: Standing, before: Standing) -> None:
    """Require the definition of a moment before.

    Raises:
        DponeError: Failed.
    """
    if now != before:
        raise DponeError(
            fail(
                "source_changed",
                f"source {now.relation}",
                found="another definition than a moment before",
                allowed="a definition that stands while it is read",
                next_command="retry",
            )
        )


def fitting_columns(
    columns: Sequence[Column], found: Standing, fits: Callable[[Column, EngineColumn], bool]
) -> Iterator[tuple[Column, EngineColumn]]:
    """Yield each declared column with the one that stands there.

    Raises:
        DponeError: Refused when one is missing, or does not fit.
    """
    by_name = {column.name: column for column in found.columns}
    for column in columns:
        there = by_name.get(column.name)
        if there is None or not fits(column, there):
            raise DponeError(_other_column(found.relation, column, there))
        yield column, there


def holds_no_more(column: Column, there: EngineColumn) -> bool:
    """Tell whether each value that the column there may hold is one of the declared column."""
    if there.logical is None or (there.nullable and not column.nullable):
        return False
    return fit(there.logical, column.type) in (Fit.SAME, Fit.WIDER)


def require_rows(relation: Relation, rows: int, bounds: Bounds) -> None:
    """Require a table that is not larger than declared.

    Raises:
        DponeError: Failed.
    """
    if rows > bounds.max_rows:
        raise DponeError(_too_large(relation, f"{rows} rows", f"{bounds.max_rows} rows"))


def bounded(batches: Iterable[pa.RecordBatch], relation: Relation, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """Yield the batches while they are, all together, not more bytes than declared.

    Raises:
        DponeError: Failed.
    """
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > bounds.max_bytes:
            raise DponeError(_too_large(relation, f"more than {size} bytes", f"{bounds.max_bytes} bytes"))
        yield batch


def declared_rows(
    batches: Iterable[pa.RecordBatch], reads: Sequence[ColumnRead], contract: RowContract, bounds: Bounds
) -> Iterator[pa.RecordBatch]:
    """Yield what a SELECT of ``reads`` gives, in canonical types and in batches as large as declared.

    Raises:
        DponeError: Refused for the first value that is not exact, Failed for more bytes than declared.
    """
    declared = (as_declared(batch, reads) for batch in sliced(batches, bounds.batch_rows))
    return bounded(exact_stream(declared, contract), contract.relation, bounds)


def could_write(relation: Relation, user: str, right: str) -> Refused:
    """Return why a login is not used that has a ``right`` to change its source."""
    return refuse(
        "source_login_could_write",
        f"login {user}, source {relation}",
        found=right,
        allowed="read-only credentials",
        next_command="bind the source to a login that has SELECT only",
    )


def broken(relation: Relation, error: Trouble) -> Failed:
    """Return what a read comes to that did not end: nothing was published."""
    return fail(
        LOGIN_REFUSED if error.reason == LOGIN_REFUSED else "source_broke",
        f"source {relation}",
        found=error,
        allowed="a whole answer of the server",
        next_command="retry; if it repeats, look at the server's log",
    )


def ended_early(relation: Relation, read: int, counted: int) -> Failed:
    """Return what other rows than the snapshot's own count come to: nothing was published."""
    return fail(
        "source_ended_early",
        f"source {relation}",
        found=f"{read} rows read",
        allowed=f"the {counted} rows that the source counted in the same snapshot",
        next_command="retry; nothing was published",
    )


def _no_source(relation: Relation, found: str) -> Refused:
    return refuse(
        "source_missing",
        f"source {relation}",
        found=found,
        allowed="a table or view that the source's login may read",
        next_command="correct the transfer, or grant SELECT to the login; then dpone compile",
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


def _too_large(relation: Relation, found: str, allowed: str) -> Failed:
    return fail(
        "bounds_passed",
        f"source {relation}",
        found=found,
        allowed=allowed,
        next_command="raise `bounds` in the workspace and release anew, if the table may be that large",
    )
