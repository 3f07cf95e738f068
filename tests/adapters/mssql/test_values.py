"""Values on their way: what is selected, what is staged as text, and what is refused."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import date
from decimal import Decimal as Number
from pathlib import Path

import pyarrow as pa
import pytest

from dpone_provider.adapters.mssql import ddl
from dpone_provider.adapters.mssql.column_reads import column_read
from dpone_provider.adapters.mssql.definitions import EngineColumn
from dpone_provider.adapters.mssql.names import Fragment
from dpone_provider.adapters.mssql.reader import select_rows
from dpone_provider.adapters.mssql.replaced_text import units_of
from dpone_provider.adapters.mssql.staged_values import staged_batch, staged_schema, staged_type
from dpone_provider.adapters.mssql.target import RULES
from dpone_provider.adapters.mssql.types import keeps_values, logical_type, sql_type
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.schema.tables import Absent, Column, Table
from dpone_provider.domain.schema.types import parse_logical_type
from tests.adapters.ledger.tsql import refusals

CREATED = {
    "boolean": "bit",
    "uint8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "real",
    "float64": "float",
    "decimal(38,10)": "decimal(38,10)",
    "decimal(4,2)": "decimal(4,2)",
    "string": "nvarchar(max)",
    "string(4000)": "nvarchar(4000)",
    "binary": "varbinary(max)",
    "binary(8000)": "varbinary(8000)",
    "date": "date",
    "time(7)": "time(7)",
    "timestamp(3)": "datetime2(3)",
    "timestamp(7)": "datetime2(7)",
    "timestamp_tz(6)": "datetimeoffset(6)",
    "uuid": "uniqueidentifier",
}
REFUSED = ("int8", "string(4001)", "binary(8001)", "time(9)", "timestamp(9)", "timestamp_tz(8)")
READ = {
    "char(3)": "string(3)",
    "nchar(3)": "string(3)",
    "varchar(max)": "string",
    "varchar(10)": "string(10)",
    "numeric(10,2)": "decimal(10,2)",
    "money": "decimal(19,4)",
    "smallmoney": "decimal(10,4)",
    "datetime": "timestamp(3)",
    "smalldatetime": "timestamp(0)",
}
UNREAD = ("xml", "sql_variant", "geography", "hierarchyid", "timestamp", "text", "ntext", "image", "json", "vector")


def column(name: str, logical: str, *, nullable: bool = True) -> Column:
    """Return a column of a type in its text form."""
    return Column(name=name, type=parse_logical_type(logical), nullable=nullable)


def standing(name: str, engine_type: str) -> EngineColumn:
    """Return a column as the catalog shows it."""
    return EngineColumn(
        name=name,
        engine_type=engine_type,
        logical=logical_type(engine_type),
        nullable=True,
        comment="",
        computed=False,
        collation=None,
    )


@pytest.mark.parametrize(("logical", "engine_type"), CREATED.items())
def test_what_is_created_is_observed_as_the_same(logical: str, engine_type: str) -> None:
    assert sql_type(parse_logical_type(logical)) == engine_type
    assert logical_type(engine_type) == parse_logical_type(logical)
    assert keeps_values(engine_type)


@pytest.mark.parametrize("logical", REFUSED)
def test_what_would_not_come_back_is_refused(logical: str) -> None:
    assert sql_type(parse_logical_type(logical)) is None
    table = Table(schema="s", name="t", columns=(column("c", logical),))
    with pytest.raises(DponeError, match="lossy_type"):
        ddl.staging_table(table, Relation("s", "staged"))


@pytest.mark.parametrize("logical", ["string", "binary"])
def test_a_key_of_any_length_is_refused_before_the_server_does(logical: str) -> None:
    keyed = replace(column("word", logical), nullable=False)
    table = Table(schema="s", name="t", columns=(keyed,), primary_key=("word",))
    with pytest.raises(DponeError, match="key_column_type"):
        RULES.actions(table, Absent(table.relation))
    bounded = replace(table, columns=(replace(keyed, type=parse_logical_type(f"{logical}(400)")),))
    assert RULES.actions(bounded, Absent(table.relation))


@pytest.mark.parametrize(("engine_type", "logical"), READ.items())
def test_older_types_are_read_and_never_written(engine_type: str, logical: str) -> None:
    assert logical_type(engine_type) == parse_logical_type(logical)
    assert keeps_values(engine_type) is engine_type.startswith("numeric")


@pytest.mark.parametrize("engine_type", UNREAD)
def test_a_type_outside_of_the_set_has_no_logical_type(engine_type: str) -> None:
    assert logical_type(engine_type) is None


def test_microsofts_parser_reads_every_selected_column_and_every_staging_table(tmp_path: Path) -> None:
    statements = {}
    types = {engine_type: logical for logical, engine_type in CREATED.items()} | READ
    for engine_type, logical in types.items():
        read = column_read(column("a]b", logical), standing("a]b", engine_type))
        statements[f"read {engine_type}"] = select_rows(Relation("s", "t"), [read])
        statements[f"units of {engine_type}"] = units_of(Relation("s", "t"), read, ("a]b", "c"))
        if read.guard is not None:
            statements[f"guard {engine_type}"] = f"SELECT 1 FROM t WHERE {read.guard.condition}"
        staged = column_read(column("a]b", logical), standing("a]b", staged_type(read.column.type) or ""), staged=True)
        statements[f"staged {engine_type}"] = select_rows(Relation("s", "t"), [staged], name="rows_kept")
        table = Table(schema="s", name="t", columns=(column("a]b", logical),))
        statements[f"create {engine_type}"] = ddl.staging_table(table, Relation("s", "d"))
    assert refusals(statements, tmp_path) == {}


@pytest.mark.parametrize(
    ("logical", "arrived", "meant"),
    [
        ("decimal(18,4)", [-1, 10**18 - 1, None], [Number("-0.0001"), Number("99999999999999.9999"), None]),
        ("decimal(18,0)", [-(10**18) + 1], [Number(-(10**18) + 1)]),
        ("date", [-719162, 2932896, None], [date(1, 1, 1), date(9999, 12, 31), None]),
    ],
)
def test_integers_are_what_they_stand_for(logical: str, arrived: list[int], meant: list[object]) -> None:
    read = column_read(column("c", logical), standing("c", CREATED.get(logical, "decimal(18,4)")))
    values = read.values(pa.array(arrived, pa.int64()))
    assert values.to_pylist() == meant
    assert values.validate(full=True) is None


@pytest.mark.parametrize(
    ("logical", "ticks", "unit"),
    [("timestamp(7)", 100, "ns"), ("timestamp(6)", -1, "us"), ("time(7)", 863999999999900, "ns")],
)
def test_instants_keep_every_tick(logical: str, ticks: int, unit: str) -> None:
    read = column_read(column("c", logical), standing("c", sql_type(parse_logical_type(logical)) or ""))
    values = read.values(pa.array([ticks, None], pa.int64()))
    assert values.type.unit == unit
    assert values.cast(pa.int64()).to_pylist() == [ticks, None]


def test_a_longer_decimal_comes_as_text_and_a_fine_instant_is_guarded() -> None:
    long = column_read(column("c", "decimal(38,10)"), standing("c", "decimal(38,10)"))
    assert long.selected == "CONVERT(varchar(41), CONVERT(decimal(38,10), [c]))"
    fine = column_read(column("c", "timestamp(7)"), standing("c", "datetime2(7)"))
    assert fine.guard is not None
    assert "1677-09-22" in fine.guard.condition
    assert column_read(column("c", "timestamp(6)"), standing("c", "datetime2(6)")).guard is None


def test_text_of_a_code_page_is_turned_into_unicode_by_the_server() -> None:
    assert column_read(column("c", "string(10)"), standing("c", "varchar(10)")).selected == "CONVERT(nvarchar(10), [c])"
    assert column_read(column("c", "string"), standing("c", "varchar(8000)")).selected == "CONVERT(nvarchar(max), [c])"
    assert column_read(column("c", "string(3)"), standing("c", "nvarchar(3)")).selected == Fragment("[c]")


def test_what_a_bulk_load_may_change_is_staged_as_its_text() -> None:
    guid = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    columns = (
        column("id", "uuid"),
        column("at", "timestamp(7)"),
        column("of", "time(7)"),
        column("zoned", "timestamp_tz(6)"),
        column("coarse", "timestamp(6)"),
        column("number", "int64"),
    )
    schema = arrow_schema(columns)
    rows = [
        pa.array([guid.bytes, None], schema.field(0).type),
        pa.array([-100, None], pa.int64()).cast(schema.field(1).type),
        pa.array([863999999999900, None], pa.int64()).cast(schema.field(2).type),
        pa.array([-62135596800000000 + 1, None], pa.int64()).cast(schema.field(3).type),
        pa.array([7, None], pa.int64()).cast(schema.field(4).type),
        pa.array([1, None], pa.int64()),
    ]
    batch = pa.record_batch(rows, schema=schema)
    staged = staged_batch(batch, columns)
    assert staged.schema == staged_schema(schema, columns)
    first, second = (list(row.values()) for row in staged.select([0, 1, 2, 3, 5]).to_pylist())
    assert first == [
        str(guid),
        "1969-12-31T23:59:59.9999999",
        "23:59:59.9999999",
        "0001-01-01T00:00:00.0000010Z",
        1,
    ]
    assert second == [None] * 5
    assert staged.column("coarse").equals(batch.column("coarse"))
    assert [staged_type(one.type) for one in columns] == ["varchar(40)"] * 4 + ["datetime2(6)", "bigint"]
