"""A source that breaks at any row, and values that have no place on the way: the reader over both real drivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.managers import BaseManager

import pyarrow as pa
import pytest

from dpone_provider.adapters.mssql import types
from dpone_provider.adapters.mssql.reader import MssqlReader
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failed, Failure, Refused
from dpone_provider.domain.schema.tables import Column
from tests.adapters.mssql.odbc import needs_odbc, server_at
from tests.adapters.mssql.source_database import Fault, SourceDatabase, SourceTable
from tests.adapters.mssql.tds_server import Answer, Cut, Error, Silence

pytestmark = needs_odbc
WIDE = Bounds(max_rows=10**6, max_bytes=1 << 30, batch_rows=1000)
RELATION = Relation("sales", "orders")
COLUMNS = {"id": "bigint", "word": "nvarchar(max)", "at": "datetime2(7)", "weight": "float", "code": "char(3)"}


class ServedSource:
    """A source in a process of its own: mssql-python keeps the interpreter's lock while it waits for a server."""

    def __init__(self) -> None:
        self._served = ExitStack()
        self._database = SourceDatabase()
        self._served.enter_context(self._database.serving())

    def port(self) -> int:
        """Return where it listens."""
        return self._database.server.port

    def make(self, rows: Sequence[tuple[object, ...]], fault: Fault | None = None) -> None:
        """Make the one table anew."""
        self._database.make(RELATION, SourceTable(COLUMNS, list(rows), key=("id",)))
        self._database.fault = fault

    def sent(self) -> list[str]:
        """Return the texts of all batches."""
        return self._database.server.sent()


class SourceProcess(BaseManager):
    """The process that a source is served in."""


SourceProcess.register("ServedSource", ServedSource)


@pytest.fixture(scope="module")
def source() -> Iterator[ServedSource]:
    """Give a source."""
    with SourceProcess(ctx=get_context("spawn")) as process:
        yield process.ServedSource()  # type: ignore[attr-defined]


def columns(found: Mapping[str, str] = COLUMNS) -> list[Column]:
    """Return the columns as they are compiled from the table."""
    return [
        Column(name=name, type=logical, nullable=name != "id")
        for name, engine_type in found.items()
        if (logical := types.logical_type(engine_type)) is not None
    ]


def read(source: ServedSource, bounds: Bounds = WIDE, seconds: float = 20) -> list[pa.RecordBatch]:
    """Read the whole table."""
    reader = MssqlReader(server_at(source.port()), seconds=seconds)
    with reader.snapshot(RELATION, columns(), ("id",), bounds) as snapshot:
        return list(snapshot.batches())


def failure(source: ServedSource, bounds: Bounds = WIDE, seconds: float = 20) -> Failure:
    """Read the table, which must fail."""
    with pytest.raises(DponeError) as raised:
        read(source, bounds, seconds)
    return raised.value.failure


def rows(count: int) -> list[tuple[object, ...]]:
    """Return so many rows."""
    return [(each, f"n{each}" + "x" * 100, None, 1.5, None) for each in range(count)]


ENDS: Mapping[str, Answer] = {
    "chosen as a deadlock's victim": Error(1205, "Transaction was deadlocked and has been chosen as the victim."),
    "another's change in the snapshot": Error(3960, "Snapshot isolation transaction aborted."),
    "a definition changed under the snapshot": Error(3961, "Snapshot isolation transaction failed."),
    "the connection breaks": Cut(),
}
MORE_THAN_A_BATCH = 9_000


@pytest.mark.parametrize("after", [0, MORE_THAN_A_BATCH])
@pytest.mark.parametrize("what", ENDS)
def test_a_source_that_ends_at_any_row_is_never_taken_for_the_end_of_its_rows(
    source: ServedSource, what: str, after: int
) -> None:
    end = ENDS[what]
    source.make(rows(MORE_THAN_A_BATCH + 500), Fault(after, (end,)))
    problem = failure(source)
    assert isinstance(problem, Failed)
    if isinstance(end, Error):
        assert problem.problem.reason == "source_broke"
        assert end.text in str(problem.problem.found)
    else:
        # What mssql-python says of it, or what the count of the rows does where it says nothing.
        assert problem.problem.reason in ("source_broke", "source_ended_early")


def test_the_units_of_every_row_are_looked_at_or_nothing_is_read(source: ServedSource) -> None:
    """A connection that breaks while they are read is not the end of them."""
    source.make([*rows(20), (21, "\ufffd", None, None, None)], Fault(10, (Cut(),), only="varbinary(max)"))
    problem = failure(source)
    assert isinstance(problem, Failed)
    assert problem.problem.reason in ("source_broke", "source_ended_early")


@pytest.mark.parametrize("after", [0, MORE_THAN_A_BATCH])
def test_a_source_that_falls_silent_is_waited_for_as_long_as_allowed(source: ServedSource, after: int) -> None:
    source.make(rows(MORE_THAN_A_BATCH), Fault(after, (Silence(attentive=True),)))
    problem = failure(source, seconds=1)
    assert isinstance(problem, Failed)
    assert problem.problem.reason == "source_broke"


def test_more_rows_or_bytes_than_declared_are_refused(source: ServedSource) -> None:
    source.make(rows(1_000))
    for bounds, allowed in (
        (replace(WIDE, max_rows=999), "999 rows"),
        (replace(WIDE, max_bytes=100_000, batch_rows=100), "100000 bytes"),
    ):
        problem = failure(source, bounds).problem
        assert (problem.reason, str(problem.allowed)) == ("bounds_passed", allowed)


FIRST, LAST = "1677-09-22 00:00:00.0000000", "2262-04-10 23:59:59.9999999"
NO_PLACE = {
    "an instant before all that nanoseconds count": ("at", "1677-09-21 23:59:59.9999999", "timestamp_out_of_range"),
    "an instant after them": ("at", "2262-04-11 00:00:00.0000000", "timestamp_out_of_range"),
    "the first half of a character": ("word", "a\ud83d", "invalid_utf8"),
    "the second half of one": ("word", "\ude00", "invalid_utf8"),
    "the halves the wrong way round": ("word", "\ude00\ud83d", "invalid_utf8"),
    "one beside a character like its replacement": ("word", "\ufffd\ud83d", "invalid_utf8"),
    "a character that no key tells": ("word", "a\0b", "nul_character"),
    "less than a float of SQL Server is": ("weight", 5e-324, "subnormal_float"),
}


@pytest.mark.parametrize("what", NO_PLACE)
def test_a_value_that_has_no_place_on_the_way_is_named(source: ServedSource, what: str) -> None:
    name, value, reason = NO_PLACE[what]
    offender = {"id": 8, "word": None, "at": None, "weight": None, "code": None} | {name: value}
    source.make([*rows(3), tuple(offender.values())])
    problem = failure(source)
    assert isinstance(problem, Refused), problem
    assert problem.problem.reason == reason
    assert f"column {name!r}, key (id=8)" in problem.problem.subject


def test_what_looks_like_a_fault_and_is_none_passes(source: ServedSource) -> None:
    """U+FFFD that stands there, whole pairs, nothing, blanks, the last instants, and the sign of zero."""
    given: list[tuple[object, ...]] = [
        (1, "\ufffd", FIRST, -0.0, "   "),
        (2, "\U0001f600\ufffd" * 5000, LAST, 2.2250738585072014e-308, "a  "),
        (3, "", None, None, None),
    ]
    source.make(given)
    (batch,) = (one for one in read(source) if len(one))
    assert batch.column("word").to_pylist() == [word for _, word, *_ in given]
    assert [str(one) for one in batch.column("at").cast(pa.string()).to_pylist()[:2]] == [
        FIRST + "00",
        LAST + "00",
    ]
    assert [float.hex(one) if one is not None else None for one in batch.column("weight").to_pylist()] == [
        float.hex(-0.0),
        float.hex(2.2250738585072014e-308),
        None,
    ]
    assert batch.column("code").to_pylist() == ["   ", "a  ", None]
    units = [text for text in source.sent() if "varbinary(max)" in text]
    assert all("[word]" in text for text in units)


def test_units_are_read_only_where_a_replacement_was_seen(source: ServedSource) -> None:
    before = sum("varbinary(max)" in text for text in source.sent())
    source.make(rows(10))
    read(source)
    assert sum("varbinary(max)" in text for text in source.sent()) == before
