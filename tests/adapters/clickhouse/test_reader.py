"""Reading a table as Arrow: every type exactly, one instant, and nothing that is not whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from dpone_provider.adapters.clickhouse.reader import ClickHouseReader
from dpone_provider.adapters.clickhouse.session import ClickHouseServer
from dpone_provider.application.ports.tables import Bounds, Published
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.domain.schema.tables import Table
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, column, rows, table, with_port
from tests.adapters.clickhouse.fault_proxy import (
    AnswerError,
    AppendToAnswer,
    CutAnswer,
    Fault,
    FaultProxy,
    LoseAnswer,
    PassOn,
    Rule,
    Seen,
)

pytestmark = pytest.mark.lab


def naive(*parts: int) -> datetime:
    """Return a wall clock's reading, without a zone."""
    return datetime(*parts)  # type: ignore[arg-type,misc]  # noqa: DTZ001


GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
VALUES: dict[str, tuple[list[object], pa.DataType]] = {
    "boolean": ([True, False], pa.bool_()),
    "int8": ([-128, 127], pa.int8()),
    "int16": ([-(2**15), 2**15 - 1], pa.int16()),
    "int32": ([-(2**31), 2**31 - 1], pa.int32()),
    "int64": ([-(2**63), 2**63 - 1], pa.int64()),
    "uint8": ([0, 255], pa.uint8()),
    "float32": ([1.5, float("-inf")], pa.float32()),
    "float64": ([1e-310, float("inf")], pa.float64()),
    "decimal(4,2)": ([Decimal("0.07"), Decimal("-99.99")], pa.decimal128(4, 2)),
    "decimal(18,0)": ([Decimal(10**18 - 1), Decimal(-1)], pa.decimal128(18, 0)),
    "decimal(38,10)": (
        [Decimal("1.0000000001"), Decimal("-9999999999999999999999999999.9999999999")],
        pa.decimal128(38, 10),
    ),
    "decimal(38,38)": ([Decimal("0." + "9" * 38), Decimal("-0." + "0" * 37 + "1")], pa.decimal128(38, 38)),
    "string": (["", "a\x00b€ \U0001f600"], pa.string()),
    "string(3)": (["", "äöü"], pa.string()),
    "date": ([date(1900, 1, 1), date(2299, 12, 31)], pa.date32()),
    "time(6)": ([time(0), time(23, 59, 59, 999999)], pa.time64("us")),
    "time(0)": ([time(0), time(23, 59, 59)], pa.time64("us")),
    "timestamp(0)": ([naive(1900, 1, 1), naive(2299, 12, 31, 23, 59, 59)], pa.timestamp("us")),
    "timestamp(3)": (
        [naive(1969, 12, 31, 23, 59, 59, 999000), naive(2013, 3, 10, 2, 30, 0, 1000)],
        pa.timestamp("us"),
    ),
    "timestamp(6)": ([naive(1900, 1, 1), naive(2299, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us")),
    "timestamp(7)": ([-100, 1_234_567_890_123_456_700], pa.timestamp("ns")),
    "timestamp(9)": ([-1, 2**63 - 1], pa.timestamp("ns")),
    "timestamp_tz(6)": (
        [datetime(1900, 1, 1, tzinfo=UTC), datetime(2299, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
        pa.timestamp("us", "UTC"),
    ),
    "uuid": ([GUID.bytes, GUID.bytes[::-1]], pa.binary(16)),
}
BOUNDS = Bounds(max_rows=10**9, max_bytes=10**12, batch_rows=65_536)


def every_type() -> tuple[Table, pa.RecordBatch]:
    """Build a table with every type, once NOT NULL and once nullable, and three rows."""
    columns = [column("id", "int64")]
    arrays: list[pa.Array] = [pa.array([1, 2, 3], pa.int64())]
    for number, (kind, (values, arrow)) in enumerate(VALUES.items()):
        columns += [column(f"c{number}", kind), column(f"n{number}", kind, nullable=True)]
        arrays += [pa.array([*values, values[0]], arrow), pa.array([None, *values], arrow)]
    return table("every_type", *columns), pa.record_batch(arrays, schema=arrow_schema(columns))


def read(server: ClickHouseServer, declared: Table, bounds: Bounds = BOUNDS) -> pa.Table:
    """Read a whole table, in the order of its id."""
    with ClickHouseReader(server).snapshot(declared.relation, declared.columns, ("id",), bounds) as snapshot:
        batches = list(snapshot.batches())
        assert snapshot.rows == sum(map(len, batches))
    return pa.Table.from_batches(batches, arrow_schema(declared.columns)).sort_by("id")


def test_every_type_comes_back_exactly_as_it_was_written(enrolled: Enrolled) -> None:
    declared, batch = every_type()
    declared = replace(declared, name=enrolled.name())
    assert isinstance(Refresh.of(enrolled, declared).whole([batch]), Published)
    found = read(enrolled.reader, declared)
    assert found.schema.equals(batch.schema)
    for name in batch.schema.names:
        assert found[name].combine_chunks().equals(batch[name]), name


def test_the_text_that_readers_see_is_the_value(enrolled: Enrolled) -> None:
    declared, batch = every_type()
    declared = replace(declared, name=enrolled.name())
    Refresh.of(enrolled, declared).whole([batch])
    number = {kind: f"c{place}" for place, kind in enumerate(VALUES)}
    shown = ", ".join(f"toString({number[kind]})" for kind in ("uuid", "timestamp(3)", "decimal(38,38)", "date"))
    assert enrolled.ask(f"SELECT {shown} FROM mart.{declared.name} WHERE id = 2") == [
        (str(UUID(bytes=GUID.bytes[::-1])), "2013-03-10 02:30:00.001", "-0." + "0" * 37 + "1", "2299-12-31")
    ]


def test_batches_are_never_larger_than_asked(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([rows(*range(1000))])
    bounds = replace(BOUNDS, batch_rows=7)
    with ClickHouseReader(enrolled.reader).snapshot(declared.relation, declared.columns, (), bounds) as snapshot:
        sizes = [len(batch) for batch in snapshot.batches()]
    assert max(sizes) <= 7
    assert sum(sizes) == 1000


def test_an_empty_table_is_read_as_none(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([])
    assert len(read(enrolled.reader, declared)) == 0


@pytest.mark.parametrize(
    "declared",
    [
        table("not_there"),
        table("{name}", column("id", "int32")),
        table("{name}", column("ID", "int64")),
        table("{name}", column("id", "int64", nullable=True)),
    ],
)
def test_what_differs_from_the_declaration_is_refused(enrolled: Enrolled, declared: Table) -> None:
    standing = table(enrolled.name())
    Refresh.of(enrolled, standing).whole([])
    asked = replace(declared, name=declared.name.format(name=standing.name))
    with pytest.raises(DponeError) as raised:
        read(enrolled.reader, asked)
    assert isinstance(raised.value.failure, Refused)


def on_rows(fault: Fault) -> Rule:
    """Break the statement that reads rows."""

    def rule(seen: Seen) -> Fault:
        return fault if "ArrowStream" in seen.statement else PassOn()

    return rule


@pytest.fixture
def standing(enrolled: Enrolled) -> Table:
    """Give a table of 1,000 rows."""
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([rows(*range(1000))])
    return declared


def size_of_answer(enrolled: Enrolled, proxy: FaultProxy, declared: Table) -> int:
    """Return the size of the Arrow stream that the server answers with."""
    read(with_port(enrolled.reader, proxy.port), declared)
    return proxy.answered[-1]


@pytest.mark.parametrize(
    "fault_of",
    [
        lambda size: CutAnswer(0),
        lambda size: CutAnswer(10),
        lambda size: CutAnswer(size // 2),
        lambda size: CutAnswer(size - 1),
        lambda size: AppendToAnswer(0, b""),
        lambda size: AppendToAnswer(size // 2, b""),
        lambda size: AppendToAnswer(size - 8, b""),
        lambda size: AppendToAnswer(size, b"Code: 241. DB::Exception: Memory limit exceeded."),
        lambda size: AppendToAnswer(size - 8, b"Code: 241. DB::Exception: Memory limit exceeded."),
        lambda size: AppendToAnswer(size, b"\n"),
        lambda size: AnswerError(241, "MEMORY_LIMIT_EXCEEDED"),
        lambda size: LoseAnswer(),
    ],
)
def test_an_answer_that_is_not_whole_is_a_failure(
    enrolled: Enrolled, proxy: FaultProxy, standing: Table, fault_of: Callable[[int], Fault]
) -> None:
    proxy.rule = on_rows(fault_of(size_of_answer(enrolled, proxy, standing)))
    with pytest.raises(DponeError) as raised:
        read(with_port(enrolled.reader, proxy.port), standing)
    assert isinstance(raised.value.failure, Failed)


def test_an_exception_in_the_middle_of_the_rows_is_told(enrolled: Enrolled, proxy: FaultProxy, standing: Table) -> None:
    size = size_of_answer(enrolled, proxy, standing)
    proxy.rule = on_rows(AppendToAnswer(size - 8, b"Code: 241. DB::Exception: Memory limit exceeded."))
    with pytest.raises(DponeError, match="Memory limit exceeded"):
        read(with_port(enrolled.reader, proxy.port), standing)


def test_a_server_that_fails_half_way_is_a_failure(enrolled: Enrolled) -> None:
    name = enrolled.name()
    enrolled.run(
        f"CREATE VIEW mart.{name} AS SELECT toInt64(number) AS id, throwIf(number = 600000) AS bad FROM numbers(700000)"
    )
    declared = table(name, column("id", "int64"), column("bad", "uint8"))
    with pytest.raises(DponeError) as raised:
        read(enrolled.controller, declared)
    assert isinstance(raised.value.failure, Failed)


def test_a_table_that_grows_after_it_was_counted_is_noticed(enrolled: Enrolled, standing: Table) -> None:
    reader = ClickHouseReader(enrolled.controller)
    with reader.snapshot(standing.relation, standing.columns, (), BOUNDS) as snapshot:
        enrolled.run(f"INSERT INTO mart.{standing.name} VALUES (5000, 'late')")
        with pytest.raises(DponeError, match="source_changed_while_read"):
            list(snapshot.batches())


def test_a_table_that_is_exchanged_while_it_is_read_is_read_to_its_end(enrolled: Enrolled, standing: Table) -> None:
    bounds = replace(BOUNDS, batch_rows=10)
    with ClickHouseReader(enrolled.reader).snapshot(standing.relation, standing.columns, (), bounds) as snapshot:
        batches = snapshot.batches()
        seen = [next(batches)]
        assert isinstance(Refresh.of(enrolled, standing).whole([rows(1)]), Published)
        seen += batches
    assert sorted(pa.Table.from_batches(seen)["id"].to_pylist()) == list(range(1000))
