from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.schema.declared_types import logical_of

POSTGRES, MSSQL = EngineKind.POSTGRES, EngineKind.MSSQL


@pytest.mark.parametrize(
    ("engine", "text", "logical"),
    [
        (POSTGRES, "integer", "int32"),
        (POSTGRES, "INT4", "int32"),
        (POSTGRES, "smallint", "int16"),
        (POSTGRES, "bigint", "int64"),
        (POSTGRES, "numeric(12, 2)", "decimal(12,2)"),
        (POSTGRES, "decimal(5)", "decimal(5,0)"),
        (POSTGRES, "double  precision", "float64"),
        (POSTGRES, "text", "string"),
        (POSTGRES, "varchar", "string"),
        (POSTGRES, "character varying (7)", "string(7)"),
        (POSTGRES, "timestamp", "timestamp(6)"),
        (POSTGRES, "timestamp(3) without time zone", "timestamp(3)"),
        (POSTGRES, "timestamp with time zone", "timestamp_tz(6)"),
        (POSTGRES, "timestamptz(0)", "timestamp_tz(0)"),
        (POSTGRES, "time", "time(6)"),
        (POSTGRES, "bytea", "binary"),
        (POSTGRES, "uuid", "uuid"),
        (POSTGRES, "bool", "boolean"),
        (MSSQL, "bit", "boolean"),
        (MSSQL, "tinyint", "uint8"),
        (MSSQL, "decimal", "decimal(18,0)"),
        (MSSQL, "float", "float64"),
        (MSSQL, "float(24)", "float32"),
        (MSSQL, "nvarchar(max)", "string"),
        (MSSQL, "varchar(10)", "string(10)"),
        (MSSQL, "datetime2", "timestamp(7)"),
        (MSSQL, "datetimeoffset(0)", "timestamp_tz(0)"),
        (MSSQL, "uniqueidentifier", "uuid"),
    ],
)
def test_types_as_people_write_them(engine: EngineKind, text: str, logical: str) -> None:
    assert str(logical_of(engine, text)) == logical


@pytest.mark.parametrize(
    ("engine", "text"),
    [
        (POSTGRES, "numeric"),
        (POSTGRES, "numeric(39,0)"),
        (POSTGRES, "numeric(5,6)"),
        (POSTGRES, "numeric(max)"),
        (POSTGRES, "money"),
        (POSTGRES, "char(3)"),
        (POSTGRES, "text(4)"),
        (POSTGRES, "varchar(max)"),
        (POSTGRES, "varchar(0)"),
        (POSTGRES, "timestamp(7)"),
        (POSTGRES, "timetz"),
        (POSTGRES, "integer[]"),
        (POSTGRES, "point"),
        (POSTGRES, ""),
        (MSSQL, "varchar"),
        (MSSQL, "nvarchar"),
        (MSSQL, "float(54)"),
        (MSSQL, "float(max)"),
        (MSSQL, "datetime2(8)"),
        (MSSQL, "int(4)"),
        (MSSQL, "decimal(1,2,3)"),
        (MSSQL, "sql_variant"),
        (EngineKind.CLICKHOUSE, "Int32"),
    ],
)
def test_types_that_have_no_logical_type(engine: EngineKind, text: str) -> None:
    assert logical_of(engine, text) is None


@given(st.sampled_from(list(EngineKind)), st.text(alphabet="abdeimnrtv (),0129maxé", max_size=30))
def test_any_text_gives_a_type_or_none(engine: EngineKind, text: str) -> None:
    logical_of(engine, text)
