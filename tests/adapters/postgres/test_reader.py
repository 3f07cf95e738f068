"""Reading a PostgreSQL table as Arrow: every value exactly, or the row named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import psycopg
import pyarrow as pa
import pytest

from dpone_provider import lab
from dpone_provider.adapters.postgres.reader import PostgresReader
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.columnar.arrow_types import arrow_type
from dpone_provider.domain.identity import Relation, ServiceId
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import parse_logical_type
from tests.adapters.postgres.enrolled import Enrolled, new_hex
from tests.adapters.postgres.proxy import CuttingProxy
from tests.adapters.postgres.refresh import column
from tests.conformance.reader_suite import COLUMNS, WIDE, ReaderSuite

pytestmark = pytest.mark.lab


@dataclass(slots=True)
class Stage:
    enrolled: Enrolled

    @property
    def reader(self) -> PostgresReader:
        return PostgresReader(self.enrolled.endpoint, self.enrolled.credential("warehouse_reader"))

    @property
    def unreachable(self) -> PostgresReader:
        nowhere = replace(self.enrolled.endpoint, port=1)
        return PostgresReader(nowhere, self.enrolled.credential("warehouse_reader"))

    def make(self, definition: str, *statements: str) -> Relation:
        relation = Relation("public", f"t{new_hex()[:12]}")
        self.enrolled.execute(f"CREATE TABLE {relation} ({definition})")
        self.enrolled.execute(f"GRANT SELECT ON {relation} TO warehouse_reader")
        for statement in statements:
            self.enrolled.execute(statement.format(relation))
        return relation

    def table(self, rows: int) -> Relation:
        return self.make(
            "id bigint NOT NULL, name text",
            "INSERT INTO {} SELECT g, CASE WHEN g % 3 <> 0 THEN 'n' || g END "
            + f"FROM generate_series(1, {rows}) AS g",
        )

    def change(self, relation: Relation) -> None:
        self.enrolled.execute(f"DELETE FROM {relation} WHERE id = 1")
        self.enrolled.execute(f"INSERT INTO {relation} VALUES (-1, 'x'), (-2, 'y')")

    def read(
        self, relation: Relation, columns: Sequence[Column], bounds: Bounds = WIDE, key: Sequence[str] = ("id",)
    ) -> pa.Table:
        with self.reader.snapshot(relation, columns, key, bounds) as snapshot:
            found = pa.Table.from_batches(list(snapshot.batches()), pa.schema([]) if not columns else None)
            assert found.num_rows == snapshot.rows
            return found

    def refused(self, relation: Relation, *columns: Column, key: Sequence[str] = ("id",)) -> Refused:
        with pytest.raises(DponeError) as raised:
            self.read(relation, columns, key=key)
        failure = raised.value.failure
        assert isinstance(failure, Refused), failure
        return failure


@pytest.fixture(scope="module")
def database(postgres_lab: lab.LabState) -> Iterator[Enrolled]:
    """One database for all of them, not enrolled: a source is not."""
    with lab.fresh_database(postgres_lab) as fresh:
        yield Enrolled(database=fresh, service_id=ServiceId(str(UUID(int=0))))


@pytest.fixture
def stage(database: Enrolled) -> Stage:
    return Stage(database)


class TestReader(ReaderSuite):
    @pytest.fixture
    def stage(self, database: Enrolled) -> Stage:
        return Stage(database)


GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
NINES = "9" * 38
VALUES: dict[str, tuple[str, list[object]]] = {
    "boolean": ("boolean", [True, False]),
    "int16": ("smallint", [-(2**15), 2**15 - 1]),
    "int32": ("integer", [-(2**31), 2**31 - 1]),
    "int64": ("bigint", [-(2**63), 2**63 - 1]),
    "float32": ("real", [1.5, float("-inf"), float("inf"), -0.0]),
    "float64": ("double precision", [1e-310, float("inf"), 0.1, -0.0]),
    "decimal(4,2)": ("numeric(4,2)", [Decimal("0.07"), Decimal("-99.99"), Decimal("-0.01"), Decimal("0.00")]),
    "decimal(18,0)": ("numeric(18,0)", [Decimal(10**18 - 1), Decimal(-(10**18) + 1)]),
    "decimal(18,18)": ("numeric(18,18)", [Decimal("0." + "9" * 18), Decimal("-0." + "0" * 17 + "1")]),
    "decimal(19,2)": ("numeric(19,2)", [Decimal("9" * 17 + ".99"), Decimal("-0.01")]),
    "decimal(38,0)": ("numeric(38,0)", [Decimal(NINES), Decimal("-" + NINES)]),
    "decimal(38,10)": ("numeric(38,10)", [Decimal("9" * 28 + "." + "9" * 10), Decimal("0.0000000001")]),
    "decimal(38,38)": ("numeric(38,38)", [Decimal("0." + NINES), Decimal("-0." + "0" * 37 + "1")]),
    "string": ("text", ["", "a€ \U0001f600", "trailing  ", "line\nbreak\t\\N"]),
    "string(3)": ("varchar(3)", ["", "äöü", "\U0001f600\U0001f600\U0001f600"]),
    "string(5)": ("character(5)", ["ab   ", "     "]),
    "binary": ("bytea", [b"", b"\x00\xff\x00"]),
    "date": ("date", [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)]),
    "time(6)": ("time", [time(0), time(23, 59, 59, 999999)]),
    "time(0)": ("time(0)", [time(0), time(23, 59, 59)]),
    "timestamp(6)": ("timestamp", [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]),  # noqa: DTZ001
    "timestamp(3)": ("timestamp(3)", [datetime(1969, 12, 31, 23, 59, 59, 999000)]),  # noqa: DTZ001
    "timestamp_tz(6)": (
        "timestamptz",
        [datetime(2013, 3, 10, 7, 30, tzinfo=ZoneInfo("UTC")), datetime(1900, 1, 1, tzinfo=ZoneInfo("UTC"))],
    ),
    "uuid": ("uuid", [GUID.bytes, bytes(16), b"\xff" * 16]),
}


@pytest.mark.parametrize("logical", VALUES)
def test_values_arrive_exactly(stage: Stage, logical: str) -> None:
    engine_type, values = VALUES[logical]
    relation = stage.make(f"id bigserial, v {engine_type}")
    with stage.enrolled.connected() as admin:
        for value in [None, *values, None]:
            sent = UUID(bytes=value) if logical == "uuid" and isinstance(value, bytes) else value
            admin.execute(f"INSERT INTO {relation} (v) VALUES (%s)", [sent])
    found = stage.read(relation, [column("v", logical, nullable=True), column("id", "int64")]).sort_by("id")
    assert found.column("v").type == arrow_type(parse_logical_type(logical))
    assert list(map(repr, found.column("v").to_pylist())) == list(map(repr, [None, *values, None]))


def test_dates_and_timestamps_beyond_pythons_own(stage: Stage) -> None:
    relation = stage.make("id int, d date, t timestamp", "INSERT INTO {} VALUES (1, '4713-01-01 BC', '4713-01-01 BC'),"
                          " (2, '5874897-12-31', '294246-12-31')")  # fmt: skip
    found = stage.read(relation, [column("d", "date", nullable=True), column("t", "timestamp(6)", nullable=True)])
    assert found.column("d").cast(pa.int32()).to_pylist() == [-2440550, 2145042905]
    assert found.column("t").cast(pa.int64()).to_pylist()[1] > 0


@pytest.mark.parametrize(
    ("engine_type", "logical", "value", "reason"),
    [
        ("date", "date", "infinity", "date_out_of_range"),
        ("date", "date", "-infinity", "date_out_of_range"),
        ("timestamp", "timestamp(6)", "infinity", "timestamp_out_of_range"),
        ("timestamptz", "timestamp_tz(6)", "-infinity", "timestamp_out_of_range"),
        ("time", "time(6)", "24:00", "time_out_of_range"),
        ("numeric(10,2)", "decimal(10,2)", "NaN", "nan_or_infinity"),
        ("numeric(30,2)", "decimal(30,2)", "NaN", "nan_or_infinity"),
        ("numeric", "decimal(10,2)", "NaN", "nan_or_infinity"),
        ("numeric", "decimal(10,2)", "-Infinity", "nan_or_infinity"),
        ("numeric", "decimal(10,2)", "0.001", "decimal_scale_exceeded"),
        ("numeric", "decimal(10,2)", "123456789.00", "decimal_precision_exceeded"),
    ],
)
def test_what_has_no_exact_value_is_refused_by_name(
    stage: Stage, engine_type: str, logical: str, value: str, reason: str
) -> None:
    relation = stage.make(f"id int, v {engine_type}", f"INSERT INTO {{}} VALUES (7, NULL), (42, '{value}')")
    refused = stage.refused(relation, column("id", "int32", nullable=True), column("v", logical, nullable=True))
    assert refused.problem.reason == reason
    assert "'v'" in refused.problem.subject
    assert "id=42" in refused.problem.subject
    assert value.lower() in refused.problem.found.lower()


def test_numerics_without_a_precision_are_read_as_declared(stage: Stage) -> None:
    relation = stage.make("id int, v numeric", "INSERT INTO {} VALUES (1, 1.500), (2, -12345678.9), (3, NULL)")
    found = stage.read(relation, [column("v", "decimal(10,2)", nullable=True)])
    assert found.column("v").to_pylist() == [Decimal("1.50"), Decimal("-12345678.90"), None]


def test_a_wider_declaration_is_read_exactly(stage: Stage) -> None:
    relation = stage.make("id int, a int, n numeric(5,2)", "INSERT INTO {} VALUES (1, -7, -1.25)")
    wider = [column("a", "int64", nullable=True), column("n", "decimal(12,4)", nullable=True)]
    assert stage.read(relation, wider).to_pylist() == [{"a": -7, "n": Decimal("-1.2500")}]


@pytest.mark.parametrize(
    "engine_type",
    [
        "money",
        "interval",
        "jsonb",
        "text[]",
        "timetz",
        "numeric(45,2)",
        "numeric(5,-2)",
        '"char"',
        "inet",
        "xml",
        "oid",
    ],
)
def test_an_unsupported_type_is_refused_by_name(stage: Stage, engine_type: str) -> None:
    relation = stage.make(f"id int, v {engine_type}")
    refused = stage.refused(relation, column("v", "string", nullable=True))
    assert "'v'" in refused.problem.subject
    assert engine_type.strip('"').partition("(")[0][:4] in refused.problem.found


def test_a_domain_and_a_type_of_ones_own_are_unsupported(stage: Stage) -> None:
    stage.enrolled.execute("CREATE DOMAIN public.small AS int CHECK (VALUE < 10)")
    stage.enrolled.execute("CREATE TYPE public.mood AS ENUM ('ok')")
    relation = stage.make("id int, v small, m mood")
    assert "small" in stage.refused(relation, column("v", "int32", nullable=True)).problem.found
    assert "mood" in stage.refused(relation, column("m", "string", nullable=True)).problem.found


def test_a_nullable_source_of_a_not_null_column_is_refused(stage: Stage) -> None:
    relation = stage.make("id int")
    assert "nullable" in stage.refused(relation, column("id", "int32")).problem.found


def test_count_and_rows_are_of_one_instant(stage: Stage) -> None:
    relation = stage.table(3000)
    with stage.reader.snapshot(relation, COLUMNS, ("id",), WIDE) as snapshot:
        stream = snapshot.batches()
        first = next(stream)
        stage.change(relation)
        ids = [*first.column("id").to_pylist(), *(key for batch in stream for key in batch.column("id").to_pylist())]
    assert snapshot.rows == 3000
    assert sorted(ids) == list(range(1, 3001))


def test_the_definition_stands_still_while_it_is_read(stage: Stage) -> None:
    relation = stage.table(10)
    with stage.reader.snapshot(relation, COLUMNS, ("id",), WIDE), stage.enrolled.connected() as admin:
        admin.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            admin.execute(f"ALTER TABLE {relation} ADD COLUMN late int")


def test_a_login_that_could_write_is_refused(stage: Stage) -> None:
    relation = stage.table(1)
    stage.enrolled.execute(f"GRANT UPDATE ON {relation} TO warehouse_reader")
    assert stage.refused(relation, *COLUMNS).problem.reason == "source_login_could_write"


def test_rows_hidden_by_a_policy_are_an_error(stage: Stage) -> None:
    relation = stage.table(5)
    stage.enrolled.execute(f"ALTER TABLE {relation} ENABLE ROW LEVEL SECURITY")
    stage.enrolled.execute(f"CREATE POLICY part ON {relation} USING (id > 3)")
    with pytest.raises(DponeError) as raised:
        stage.read(relation, COLUMNS)
    assert isinstance(raised.value.failure, Failed)
    assert "row-level security" in raised.value.failure.problem.found


def test_a_view_is_read_like_a_table(stage: Stage) -> None:
    relation = stage.table(4)
    stage.enrolled.execute(f"CREATE VIEW public.seen AS SELECT id, name FROM {relation} WHERE id > 2")
    stage.enrolled.execute("GRANT SELECT ON public.seen TO warehouse_reader")
    nullable = (replace(COLUMNS[0], nullable=True), COLUMNS[1])
    assert stage.read(Relation("public", "seen"), nullable).num_rows == 2


def test_a_source_that_breaks_midway_fails(stage: Stage) -> None:
    """F18: never a shorter table."""
    relation = stage.make(
        "id bigint NOT NULL, name text", "INSERT INTO {} SELECT g, repeat('x', 500) FROM generate_series(1, 60000) AS g"
    )
    with CuttingProxy(stage.enrolled.endpoint, after_bytes=3_000_000) as proxy:
        reader = PostgresReader(proxy.endpoint, stage.enrolled.credential("warehouse_reader"))
        with pytest.raises(DponeError) as raised, reader.snapshot(relation, COLUMNS, ("id",), WIDE) as snapshot:
            for _ in snapshot.batches():
                pass
    assert isinstance(raised.value.failure, Failed)
    assert raised.value.failure.problem.reason == "source_broke"


def test_another_life_of_the_database_is_refused(stage: Stage) -> None:
    """By the facts that tell lives apart; further facts of an enrolled one are its catalog's business."""
    relation = stage.table(3)
    ((oid, system),) = stage.enrolled.execute(
        "SELECT d.oid::text, c.system_identifier::text FROM pg_database d, pg_control_system() c"
        " WHERE d.datname = current_database()"
    )
    facts = {"database_oid": str(oid), "system_identifier": str(system), "timeline": "00000001"}

    def rows(pinned: dict[str, str]) -> int:
        reader = PostgresReader(stage.enrolled.endpoint, stage.enrolled.credential("warehouse_reader"), pinned=pinned)
        with reader.snapshot(relation, COLUMNS, (), WIDE) as snapshot:
            return snapshot.rows

    assert rows(facts) == 3
    for other in ({"database_oid": "1"}, {"system_identifier": "1"}):
        with pytest.raises(DponeError) as refused:
            rows(facts | other)
        assert refused.value.failure.problem.reason == "incarnation_changed"
        assert next(iter(other)) in refused.value.failure.problem.found
    with pytest.raises(DponeError):
        rows({})
