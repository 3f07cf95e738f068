"""SQL Server's types and the logical types, both ways.

Round trip: what ``sql_type`` gives is observed as the same logical type again. What SQL Server would not give back
(``LOSSY``: int8, more than seven fractional digits, over-long strings and binaries) is refused by the rules. Some types
are read and never created: ``READ_ONLY``. Source: Transact-SQL reference, "Data types".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, assert_never

from dpone_provider.adapters.mssql.names import MAX_NAME_UNITS
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.schema.declared_types import logical_of
from dpone_provider.domain.schema.rules import EngineFacts, NameUnit, lossy_types
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import (
    Binary,
    Boolean,
    Date,
    Decimal,
    Float,
    Integer,
    LogicalType,
    String,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
)

ENGINE: Final = "SQL Server"
"""What messages call it."""
MAX_NVARCHAR: Final = 4000
"""The largest n of nvarchar(n), in byte pairs."""
MAX_VARBINARY: Final = 8000
MAX_COMMENT_UNITS: Final = 3750
"""An extended property has at most 7,500 bytes. Source: ``sp_addextendedproperty``."""
_MAX_FRACTION: Final = 7
_PADDED: Final = re.compile(r"n?char\(([0-9]+)\)")
_KEPT: Final = re.compile(
    r"(bit|tinyint|smallint|int|bigint|real|float|date|uniqueidentifier)|"
    r"(decimal|numeric|nvarchar|varbinary|time|datetime2|datetimeoffset)\(.+\)"
)
READ_ONLY: Final[Mapping[str, LogicalType]] = MappingProxyType(
    {
        # Four fractional digits, exactly; the range is less than that of the decimal.
        "money": Decimal(19, 4),
        "smallmoney": Decimal(10, 4),
        # Stored in three-hundredths of a second, and given in milliseconds that end in 0, 3 or 7.
        "datetime": Timestamp(3),
        "smalldatetime": Timestamp(0),
    }
)
"""Types that older tables have: their values are read exactly; nothing of ours is created with them, since values that
are sent would be rounded."""
_KEYLESS: Final = f"{ENGINE} makes no key of a type of any length"
"""nvarchar(max) and varbinary(max): error 1919."""
_FLOATS: Final = {32: "real", 64: "float"}
_INTEGERS: Final = {16: "smallint", 32: "int", 64: "bigint"}


def logical_type(engine_type: str) -> LogicalType | None:
    """Return the logical type of a built-in type as the catalog statement writes it, or None outside of the closed set.

    ``char(n)`` and ``nchar(n)`` are read as string(n), their padding kept.
    """
    padded = _PADDED.fullmatch(engine_type)
    if padded:
        return String(int(padded[1]))
    return READ_ONLY.get(engine_type) or logical_of(EngineKind.MSSQL, engine_type)


def sql_type(logical: LogicalType) -> str | None:
    """Return the type in which a column of ``logical`` is created, or None if SQL Server would not give it back."""
    match logical:
        case Boolean():
            return "bit"
        case Integer(bits=8, signed=signed):
            return None if signed else "tinyint"
        case Integer(bits=bits, signed=signed):
            return _INTEGERS.get(bits) if signed else None
        case Float(bits=bits):
            return _FLOATS[bits]
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case String(max_length=length):
            return _sized("nvarchar", length, MAX_NVARCHAR)
        case Binary(max_length=length):
            return _sized("varbinary", length, MAX_VARBINARY)
        case Date():
            return "date"
        case Time(precision=digits):
            return f"time({digits})" if digits <= _MAX_FRACTION else None
        case Timestamp(precision=digits):
            return f"datetime2({digits})" if digits <= _MAX_FRACTION else None
        case TimestampTz(precision=digits):
            return f"datetimeoffset({digits})" if digits <= _MAX_FRACTION else None
        case Uuid():
            return "uniqueidentifier"
        case _:
            assert_never(logical)


def _sized(name: str, length: int | None, maximum: int) -> str | None:
    if length is None:
        return f"{name}(max)"
    return f"{name}({length})" if length <= maximum else None


def keeps_values(engine_type: str) -> bool:
    """Whether a column of a supported type stores values as they are sent.

    ``char`` and ``nchar`` pad them, ``varchar`` has the characters of one code page only and turns others into question
    marks, the types of ``READ_ONLY`` round.
    """
    return _KEPT.fullmatch(engine_type) is not None


def engine_facts(columns: Iterable[Column]) -> EngineFacts:
    """Return what the rules need to know of SQL Server for a table of these columns."""
    return EngineFacts(
        engine=ENGINE,
        max_name_length=MAX_NAME_UNITS,
        name_unit=NameUnit.UTF16_UNITS,
        lossy_types=lossy_types(columns, sql_type, _instead),
        keyless_types=((String(), _KEYLESS), (Binary(), _KEYLESS)),
        max_comment_units=MAX_COMMENT_UNITS,
    )


def _instead(logical: LogicalType) -> str:
    match logical:
        case Integer():
            return "smallint (int16)"
        case Binary():
            return "varbinary(max), of any length (binary)"
        case String():
            return "nvarchar(max), of any length (string)"
        case _:
            return f"at most {_MAX_FRACTION} fractional digits"
