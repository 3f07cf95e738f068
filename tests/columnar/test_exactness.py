"""Incoming batches: the same values in canonical types, or a refusal that names column, row, value and limit."""

from __future__ import annotations

import datetime
import math
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.columnar.exactness import RowContract, exact_batch
from dpone_provider.columnar.offence import InexactValue, Rule, value_text
from dpone_provider.columnar.target_limits import (
    CLICKHOUSE,
    MSSQL,
    NANOSECONDS_PER_DAY,
    POSTGRES,
    TargetLimits,
    unsupported_columns,
)
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import parse_logical_type
from tests.columnar.arrow_values import raw_decimal, raw_text, raw_ticks

FLIGHTS = Relation("stage", "flights")
EPOCH = datetime.datetime.fromisoformat("1970-01-01")
GUID = uuid.UUID("00112233-4455-6677-8899-AABBCCDDEEFF")


def column(logical: str, name: str = "c", *, nullable: bool = True) -> Column:
    """One declared column."""
    return Column(name=name, type=parse_logical_type(logical), nullable=nullable)


def convert(array: pa.Array, logical: str, limits: TargetLimits = POSTGRES) -> pa.RecordBatch | InexactValue:
    """Convert one column named c."""
    contract = RowContract(relation=FLIGHTS, columns=(column(logical),), limits=limits)
    return exact_batch(pa.record_batch([array], names=["c"]), contract)


def converted(array: pa.Array, logical: str, limits: TargetLimits = POSTGRES) -> list[Any]:
    """The values after a conversion that must succeed, in the canonical type."""
    batch = convert(array, logical, limits)
    assert isinstance(batch, pa.RecordBatch), batch
    batch.validate(full=True)
    assert batch.schema == arrow_schema([column(logical)])
    values: list[Any] = batch.column(0).to_pylist()
    return values


def refused(array: pa.Array, logical: str, limits: TargetLimits = POSTGRES) -> InexactValue:
    """The refusal of a conversion that must not succeed."""
    outcome = convert(array, logical, limits)
    assert isinstance(outcome, InexactValue), outcome
    assert outcome.relation == FLIGHTS
    assert outcome.column == "c"
    return outcome


def opaque(type_name: str, storage: pa.Array) -> pa.Array:
    """A column as ADBC's PostgreSQL driver delivers types that Arrow does not have."""
    return pa.ExtensionArray.from_storage(pa.opaque(storage.type, type_name, "PostgreSQL"), storage)


EXACT: list[tuple[pa.Array, str, list[Any]]] = [
    (pa.array([True, None]), "boolean", [True, None]),
    (pa.array([0, 1, None], pa.uint8()), "boolean", [False, True, None]),
    (pa.array([-128, 127, None]), "int8", [-128, 127, None]),
    (pa.array([0, 255], pa.int64()), "uint8", [0, 255]),
    (pa.array([2**63 - 1], pa.uint64()), "int64", [2**63 - 1]),
    (pa.array([Decimal("5.00"), None]), "int32", [5, None]),
    (pa.array([0.5, None], pa.float64()), "float32", [0.5, None]),
    (pa.array([0.1], pa.float32()), "float64", [0.10000000149011612]),
    (pa.array([-0.0]), "float64", [-0.0]),
    (pa.array(["1.50", None, "-0", "0.07"]), "decimal(4,2)", [Decimal("1.50"), None, Decimal(0), Decimal("0.07")]),
    (pa.array(["0." + "0" * 60]), "decimal(38,10)", [Decimal(0)]),
    (pa.array(["1." + "0" * 60]), "decimal(38,10)", [Decimal(1)]),
    (pa.array(["1E+3"], pa.large_string()), "decimal(6,2)", [Decimal(1000)]),
    (pa.array([7, None]), "decimal(1,0)", [Decimal(7), None]),
    (pa.array([Decimal("1.5")], pa.decimal256(50, 11)), "decimal(38,10)", [Decimal("1.5")]),
    (pa.array(["9" * 38]), "decimal(38,0)", [Decimal("9" * 38)]),
    (pa.array(["-0." + "9" * 38]), "decimal(38,38)", [Decimal("-0." + "9" * 38)]),
    (pa.array(["", None, "ü😀"], pa.large_string()), "string(2)", ["", None, "ü😀"]),
    (pa.array([b"abc"]), "string", ["abc"]),
    (pa.array(["a", "b", "a"]).dictionary_encode(), "string(1)", ["a", "b", "a"]),
    (pa.array([b"", None, b"\x00\xff"]), "binary(2)", [b"", None, b"\x00\xff"]),
    (pa.array([b"ab"], pa.binary(2)), "binary", [b"ab"]),
    (pa.array([datetime.date(1, 1, 1), None]), "date", [datetime.date(1, 1, 1), None]),
    (pa.array([datetime.date(2013, 1, 1)], pa.date64()), "date", [datetime.date(2013, 1, 1)]),
    (pa.array([datetime.time(23, 59, 59, 999999), None]), "time(6)", [datetime.time(23, 59, 59, 999999), None]),
    (pa.array([datetime.time(1, 2, 3)], pa.time32("s")), "time(0)", [datetime.time(1, 2, 3)]),
    (raw_ticks(pa.timestamp("ns"), 10**9), "timestamp(0)", [EPOCH + datetime.timedelta(seconds=1)]),
    (raw_ticks(pa.timestamp("us"), -62_135_596_800_000_000, None), "timestamp(6)",
     [datetime.datetime.fromisoformat("0001-01-01"), None]),
    (pa.array([0], pa.timestamp("s", "Europe/Rome")), "timestamp_tz(6)",
     [EPOCH.replace(tzinfo=datetime.UTC)]),
    (pa.array([str(GUID), str(GUID).upper(), None]), "uuid", [GUID.bytes, GUID.bytes, None]),
    (pa.array([GUID.bytes], pa.uuid()), "uuid", [GUID.bytes]),
    (pa.array([GUID.bytes, None]), "uuid", [GUID.bytes, None]),
    (opaque("numeric", pa.array(["1.50", None])), "decimal(5,2)", [Decimal("1.50"), None]),
    (opaque("uuid", pa.array([GUID.bytes])), "uuid", [GUID.bytes]),
    (pa.array([3, 3, None]).dictionary_encode(), "int8", [3, 3, None]),
    (pa.nulls(2), "decimal(5,2)", [None, None]),
]  # fmt: skip


@pytest.mark.parametrize(("array", "logical", "expected"), EXACT)
def test_values_that_can_be_carried_are(array: pa.Array, logical: str, expected: list[Any]) -> None:
    assert converted(array, logical) == expected


@pytest.mark.parametrize(("array", "logical", "expected"), EXACT)
def test_a_slice_converts_as_the_whole(array: pa.Array, logical: str, expected: list[Any]) -> None:
    assert converted(array.slice(1), logical) == expected[1:]
    assert converted(array.slice(0, 0), logical) == []


INEXACT: list[tuple[pa.Array, str, Rule, int, str, str]] = [
    (pa.array([1, 2], pa.int8()), "boolean", Rule.BOOLEAN, 1, "2", "0 or 1"),
    (pa.array([None, -129]), "int8", Rule.INTEGER_RANGE, 1, "-129", "int8: -128 to 127"),
    (pa.array([2**31]), "int32", Rule.INTEGER_RANGE, 0, "2147483648", "int32: -2147483648 to 2147483647"),
    (pa.array([2**63], pa.uint64()), "int64", Rule.INTEGER_RANGE, 0, "9223372036854775808", "int64"),
    (pa.array([-1]), "uint8", Rule.INTEGER_RANGE, 0, "-1", "uint8: 0 to 255"),
    (pa.array([Decimal("5.0"), Decimal("5.1")]), "int32", Rule.NOT_INTEGRAL, 1, "5.1", "no fraction"),
    (pa.array([Decimal("128")]), "int8", Rule.INTEGER_RANGE, 0, "128", "int8"),
    (pa.array([0.5, 0.1]), "float32", Rule.FLOAT_PRECISION, 1, "0.1", "float32 holds exactly"),
    (pa.array([1e300]), "float32", Rule.FLOAT_PRECISION, 0, "1e+300", "float32 holds exactly"),
    # F16 and F9 of the field cases
    (pa.array([Decimal("123456789012.34")]), "decimal(10,2)", Rule.DECIMAL_PRECISION, 0, "789012.34", "10 digits"),
    (pa.array([Decimal("1.00000000005")]), "decimal(38,10)", Rule.DECIMAL_SCALE, 0, "1.00000000005", "10 of them"),
    (pa.array([Decimal(10**28)]), "decimal(38,10)", Rule.DECIMAL_PRECISION, 0, "1" + "0" * 28, "38 digits"),
    (pa.array(["1", "123456789012.34"]), "decimal(10,2)", Rule.DECIMAL_PRECISION, 1, "'123456789012.34'", "10 digits"),
    (pa.array(["1.00000000005"]), "decimal(38,10)", Rule.DECIMAL_SCALE, 0, "'1.00000000005'", "10 of them"),
    (pa.array(["1E-999999999"]), "decimal(38,10)", Rule.DECIMAL_SCALE, 0, "'1E-999999999'", "10 of them"),
    (pa.array(["1E+999999999"]), "decimal(38,10)", Rule.DECIMAL_PRECISION, 0, "'1E+999999999'", "38 digits"),
    (pa.array(["0." + "1" * 39]), "decimal(38,0)", Rule.DECIMAL_SCALE, 0, "'0.1111", "0 of them"),
    (pa.array([Decimal("0." + "0" * 70 + "1")], pa.decimal256(76, 75)), "decimal(38,0)", Rule.DECIMAL_SCALE, 0, "E-71",
     "0 of them"),
    (pa.array(["NaN"]), "decimal(38,10)", Rule.NOT_FINITE, 0, "'NaN'", "decimal(38,10)"),
    (pa.array(["-Infinity"]), "decimal(38,10)", Rule.NOT_FINITE, 0, "'-Infinity'", "decimal(38,10)"),
    (pa.array(["1_0"]), "decimal(38,10)", Rule.NOT_A_NUMBER, 0, "'1_0'", "decimal(38,10)"),
    (pa.array(["٣"]), "decimal(38,10)", Rule.NOT_A_NUMBER, 0, "'٣'", "decimal(38,10)"),
    (pa.array([""]), "decimal(38,10)", Rule.NOT_A_NUMBER, 0, "''", "decimal(38,10)"),
    (pa.array([100]), "decimal(4,2)", Rule.DECIMAL_PRECISION, 0, "100", "4 digits"),
    (raw_decimal(pa.decimal128(4, 2), 9999, 10000), "decimal(4,2)", Rule.DECIMAL_PRECISION, 1, "100.00", "4 digits"),
    (pa.array(["ok", "a\x00b"]), "string", Rule.NUL_CHARACTER, 1, r"'a\x00b'", "U+0000"),
    (pa.array(["abc", "ü😀x"]), "string(2)", Rule.STRING_LENGTH, 0, "3 characters: 'abc'", "at most 2 characters"),
    (raw_text(b"ok", b"\xed\xa0\x80"), "string", Rule.INVALID_UTF8, 1, "0xeda080", "surrogates"),
    (pa.array([b"ok", b"\xff"]), "string", Rule.INVALID_UTF8, 1, "0xff", "UTF-8"),
    (pa.array([b"ok", b"abc"]), "binary(2)", Rule.BINARY_LENGTH, 1, "3 bytes: 0x616263", "at most 2 bytes"),
    (raw_ticks(pa.date32(), 0, 2**31 - 1), "date", Rule.DATE_RANGE, 1, "2147483647", "PostgreSQL: "),
    (raw_ticks(pa.date64(), 0, 1), "date", Rule.ARROW_TYPE, 1, "1970-01-01", "whole days"),
    (raw_ticks(pa.time64("us"), None, 86_400_000_000), "time(6)", Rule.TIME_RANGE, 1, "86400000000", "before 24:00:00"),
    (raw_ticks(pa.time32("s"), -1), "time(6)", Rule.TIME_RANGE, 0, "-1", "before 24:00:00"),
    (raw_ticks(pa.time64("ns"), 1), "time(6)", Rule.FRACTIONAL_DIGITS, 0, "00:00:00.000000001", "at most 6"),
    (raw_ticks(pa.timestamp("us"), 1000, 1001), "timestamp(3)", Rule.FRACTIONAL_DIGITS, 1,
     "1970-01-01 00:00:00.001001", "at most 3"),
    (raw_ticks(pa.timestamp("us"), 2**62), "timestamp(9)", Rule.TIMESTAMP_RANGE, 0, "4611686018427387904",
     "timestamp[ns]"),
    (raw_ticks(pa.timestamp("us", "Nowhere/Land"), -(2**63)), "timestamp_tz(6)", Rule.TIMESTAMP_RANGE, 0,
     "-9223372036854775808", "PostgreSQL: day -2440588"),
    (pa.array([str(GUID)[:-1]]), "uuid", Rule.NOT_A_UUID, 0, "0011", "8-4-4-4-12"),
    (pa.array([GUID.bytes, b"short"]), "uuid", Rule.NOT_A_UUID, 1, "0x73686f7274", "16 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("array", "logical", "rule", "row", "value", "limit"), INEXACT)
def test_values_that_cannot_be_carried_are_refused(
    array: pa.Array, logical: str, rule: Rule, row: int, value: str, limit: str
) -> None:
    found = refused(array, logical)
    assert found.rule is rule
    assert found.row == f"row {row}"
    assert value in found.value
    assert limit in found.limit


@pytest.mark.parametrize(
    ("array", "logical"),
    [
        (pa.array([1.5]), "decimal(5,2)"),
        (pa.array([1.0]), "int32"),
        (pa.array([1]), "float64"),
        (pa.array([1.5]), "boolean"),
        (pa.array([True]), "int8"),
        (pa.array([1]), "string"),
        (pa.array(["a"]), "binary"),
        (pa.array(["2013-01-01"]), "date"),
        (pa.array([0], pa.timestamp("us")), "date"),
        (pa.array([0], pa.timestamp("us")), "timestamp_tz(6)"),
        (pa.array([0], pa.timestamp("us", "UTC")), "timestamp(6)"),
        (pa.array([0]), "timestamp(6)"),
        (pa.array([0]), "time(6)"),
        (pa.array([0]), "uuid"),
        (pa.array([[1]]), "string"),
    ],
)
def test_arrow_types_without_an_exact_conversion_are_refused_whole(array: pa.Array, logical: str) -> None:
    found = refused(array, logical)
    assert found.rule is Rule.ARROW_TYPE
    assert found.row == "every row"
    assert found.value == f"Arrow {array.type}"


def test_null_in_a_not_null_column() -> None:
    contract = RowContract(relation=FLIGHTS, columns=(column("int8", nullable=False),), limits=CLICKHOUSE)
    outcome = exact_batch(pa.record_batch([pa.array([1, None])], names=["c"]), contract, first_row=65_536)
    assert isinstance(outcome, InexactValue)
    assert (outcome.rule, outcome.row, outcome.value) == (Rule.NOT_NULL, "row 65537", "NULL")
    assert "NOT NULL" in outcome.limit


def test_a_row_is_named_by_its_key_columns() -> None:
    columns = (column("int64", "id", nullable=False), column("string", "code"), column("int8", "n"))
    contract = RowContract(relation=FLIGHTS, columns=columns, limits=POSTGRES, key_columns=("id", "code"))
    batch = pa.record_batch({"n": pa.array([1, 999]), "code": pa.array(["a", "b"]), "id": pa.array([10, 11])})
    outcome = exact_batch(batch, contract)
    assert isinstance(outcome, InexactValue)
    assert outcome.row == "key (id=11, code='b')"
    assert str(outcome.refusal().problem) == (
        "integer_out_of_range: stage.flights, column 'n', key (id=11, code='b'): found 999; allowed: "
        "int8: -128 to 127. Next: correct the value at the source, or declare a type that holds it, and run again"
    )


def test_a_row_is_named_whatever_its_key_holds() -> None:
    columns = (column("uuid", "id"), column("timestamp_tz(6)", "at"), column("string", "code"))
    key = ("id", "at", "code", "gone")
    contract = RowContract(relation=FLIGHTS, columns=columns, limits=POSTGRES, key_columns=key)
    batch = pa.record_batch(
        {
            "id": pa.array([None], pa.uuid()),
            "at": raw_ticks(pa.timestamp("us", "Nowhere/Land"), 0),
            "code": raw_text(b"a\xff"),
        }
    )
    outcome = exact_batch(batch, contract)
    assert isinstance(outcome, InexactValue)
    assert outcome.row == r"key (id=NULL, at=1970-01-01 00:00:00.000000Z, code='a\\xff')"
    assert value_text(pa.array([GUID.bytes], pa.uuid()), 0) == "0x" + GUID.hex


def test_columns_are_taken_by_name_and_come_out_in_declared_order() -> None:
    contract = RowContract(relation=FLIGHTS, columns=(column("int8", "a"), column("int8", "b")), limits=POSTGRES)
    outcome = exact_batch(pa.record_batch({"b": pa.array([2]), "a": pa.array([1])}), contract)
    assert isinstance(outcome, pa.RecordBatch)
    assert outcome.to_pylist() == [{"a": 1, "b": 2}]


@pytest.mark.parametrize(
    ("names", "different"), [(["a"], "b"), (["a", "b", "x"], "x"), (["a", "A"], "A, b"), (["a", "b", "b"], "twice")]
)
def test_a_missing_surplus_or_doubled_column_is_refused(names: list[str], different: str) -> None:
    contract = RowContract(relation=FLIGHTS, columns=(column("int8", "a"), column("int8", "b")), limits=POSTGRES)
    outcome = exact_batch(pa.record_batch([pa.array([1])] * len(names), names=names), contract)
    assert isinstance(outcome, InexactValue)
    assert outcome.rule is Rule.COLUMNS
    assert different in outcome.column


def test_each_engine_has_its_own_days() -> None:
    before_1900, after_2299 = datetime.date(1899, 12, 31), datetime.date(2300, 1, 1)
    for day in (before_1900, after_2299):
        found = refused(pa.array([day]), "date", CLICKHOUSE)
        assert (found.rule, found.value) == (Rule.DATE_RANGE, day.isoformat())
        assert found.limit == "ClickHouse: 1900-01-01 to 2299-12-31"
        assert converted(pa.array([day]), "date", MSSQL) == [day]
    for day in (datetime.date(1900, 1, 1), datetime.date(2299, 12, 31)):
        assert converted(pa.array([day]), "date", CLICKHOUSE) == [day]
    # PostgreSQL's own first and last day, both beyond Python's calendar.
    edges = raw_ticks(pa.date32(), -2_440_588, 2_145_042_905)
    assert isinstance(convert(edges, "date"), pa.RecordBatch)
    assert refused(raw_ticks(pa.date32(), 2_145_042_906), "date").rule is Rule.DATE_RANGE


def test_each_engine_has_its_own_instants() -> None:
    last = CLICKHOUSE.max_instant // 1000
    assert last == (120530 * NANOSECONDS_PER_DAY) // 1000 - 1
    assert isinstance(convert(raw_ticks(pa.timestamp("us"), last), "timestamp(6)", CLICKHOUSE), pa.RecordBatch)
    found = refused(raw_ticks(pa.timestamp("us"), last + 1), "timestamp(6)", CLICKHOUSE)
    assert (found.rule, found.value) == (Rule.TIMESTAMP_RANGE, "2300-01-01 00:00:00.000000")
    # The widest unit at the edge of what nanoseconds hold: 2262-04-11 23:47:16.
    edge = 2**63 // 10**9
    assert isinstance(convert(raw_ticks(pa.timestamp("s"), edge), "timestamp(9)", CLICKHOUSE), pa.RecordBatch)
    assert refused(raw_ticks(pa.timestamp("s"), edge + 1), "timestamp(9)", CLICKHOUSE).rule is Rule.TIMESTAMP_RANGE


@pytest.mark.parametrize("limits", [POSTGRES, CLICKHOUSE, MSSQL], ids=lambda limits: limits.engine)
def test_what_adbc_makes_of_infinity_lands_outside_every_engine(limits: TargetLimits) -> None:
    # PostgreSQL sends the extreme integers; the driver (1.13) adds the days and microseconds from 1970 to 2000.
    for wrapped in (-(2**31) + 10_957 - 1, -(2**31) + 10_957):
        assert refused(raw_ticks(pa.date32(), wrapped), "date", limits).rule is Rule.DATE_RANGE
    for wrapped in (-(2**63) + 946_684_800_000_000 - 1, -(2**63) + 946_684_800_000_000):
        ticks = raw_ticks(pa.timestamp("us"), wrapped)
        assert refused(ticks, "timestamp(6)", limits).rule is Rule.TIMESTAMP_RANGE


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_only_where_the_engine_has_them(value: float) -> None:
    assert str(converted(pa.array([value]), "float64", CLICKHOUSE)) == str([value])
    assert str(converted(pa.array([value]), "float32", POSTGRES)) == str([value])
    assert refused(pa.array([1.0, value]), "float64", MSSQL).rule is Rule.NOT_FINITE


def test_subnormal_floats_only_where_the_engine_has_them() -> None:
    assert converted(pa.array([5e-324]), "float64", POSTGRES) == [5e-324]
    assert refused(pa.array([0.0, None, 5e-324]), "float64", MSSQL).rule is Rule.SUBNORMAL
    assert refused(pa.array([2**-140]), "float32", MSSQL).rule is Rule.SUBNORMAL


def test_nul_characters_only_where_the_engine_has_them() -> None:
    assert converted(pa.array(["a\x00b"]), "string", CLICKHOUSE) == ["a\x00b"]
    assert refused(pa.array(["a\x00b"]), "string", MSSQL).rule is Rule.NUL_CHARACTER
    # A NUL outside the slice, or under a NULL, is nobody's value.
    assert converted(pa.array(["\x00", "b"]).slice(1), "string", POSTGRES) == ["b"]
    hidden = pa.array(["\x00", "b"])
    masked = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), *hidden.buffers()[1:]])
    assert converted(masked, "string", POSTGRES) == [None, "b"]


def test_string_lengths_in_the_units_of_the_engine() -> None:
    assert converted(pa.array(["😀😀"]), "string(3)", POSTGRES) == ["😀😀"]
    assert converted(pa.array(["😀ü"]), "string(3)", MSSQL) == ["😀ü"]
    found = refused(pa.array(["😀😀"]), "string(3)", MSSQL)
    assert (found.rule, found.limit) == (Rule.STRING_LENGTH, "at most 3 UTF-16 code units")


def test_a_long_value_is_cut_in_the_message() -> None:
    found = refused(pa.array(["x" * 5000]), "string(10)")
    assert found.value.startswith("5000 characters: 'xxx")
    assert len(found.value) < 150


def test_types_beyond_an_engine_are_known_before_any_data() -> None:
    columns = [column("timestamp(7)", "a"), column("time(9)", "b"), column("decimal(38,0)", "c"), column("date", "d")]
    assert [each.column for each in unsupported_columns(columns, POSTGRES)] == ["a", "b"]
    assert [each.column for each in unsupported_columns(columns, MSSQL)] == ["b"]
    assert unsupported_columns(columns, CLICKHOUSE) == ()
    narrow = replace(CLICKHOUSE, engine="Tiny", max_decimal_precision=18)
    assert [each.limit for each in unsupported_columns(columns, narrow)] == ["Tiny holds decimals of at most 18 digits"]
