"""PostgreSQL's types and the logical types, both ways.

Round trip: what ``sql_type`` gives is observed as the same logical type again. What PostgreSQL would not give back
(``LOSSY``: int8, uint8, binary(n), more than six fractional digits, over-long strings) is refused by the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, assert_never

from dpone_provider.adapters.postgres.names import MAX_NAME_BYTES
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

ENGINE: Final = "PostgreSQL"
"""What messages call it."""
UNBOUNDED_NUMERIC: Final = "numeric"
"""Holds up to 131,072 digits: it needs a declared precision, and every value is then compared with that."""
MAX_VARCHAR: Final = 10_485_760
"""Documentation of character types: the largest n of varchar(n)."""
_MAX_FRACTION: Final = 6
_PADDED: Final = re.compile(r"character\(([0-9]+)\)")
_FLOATS: Final = {32: "real", 64: "double precision"}
_INTEGERS: Final = {16: "smallint", 32: "integer", 64: "bigint"}


def logical_type(engine_type: str) -> LogicalType | None:
    """Return the logical type of a built-in type as ``format_type`` writes it, or None outside of the closed set.

    ``character(n)`` is read as string(n), its padding kept; nothing of ours is ever created with it.
    """
    padded = _PADDED.fullmatch(engine_type)
    if padded:
        return String(int(padded[1]))
    return logical_of(EngineKind.POSTGRES, engine_type)


def sql_type(logical: LogicalType) -> str | None:
    """Return the type in which a column of ``logical`` is created, or None if PostgreSQL would not give it back."""
    match logical:
        case Boolean():
            return "boolean"
        case Integer(bits=bits, signed=signed):
            return _INTEGERS.get(bits) if signed else None
        case Float(bits=bits):
            return _FLOATS[bits]
        case Decimal(precision=precision, scale=scale):
            return f"numeric({precision},{scale})"
        case String(max_length=None):
            return "text"
        case String(max_length=length):
            return f"character varying({length})" if length is not None and length <= MAX_VARCHAR else None
        case Binary(max_length=length):
            return "bytea" if length is None else None
        case Date():
            return "date"
        case Time(precision=digits):
            return f"time({digits}) without time zone" if digits <= _MAX_FRACTION else None
        case Timestamp(precision=digits):
            return f"timestamp({digits}) without time zone" if digits <= _MAX_FRACTION else None
        case TimestampTz(precision=digits):
            return f"timestamp({digits}) with time zone" if digits <= _MAX_FRACTION else None
        case Uuid():
            return "uuid"
        case _:
            assert_never(logical)


def keeps_values(engine_type: str) -> bool:
    """Whether a column of a supported type stores values as they are sent: ``character(n)`` pads them."""
    return not _PADDED.fullmatch(engine_type)


def engine_facts(columns: Iterable[Column]) -> EngineFacts:
    """Return what the rules need to know of PostgreSQL for a table of these columns. Names are compared by bytes."""
    return EngineFacts(
        engine=ENGINE,
        max_name_length=MAX_NAME_BYTES,
        name_unit=NameUnit.BYTES,
        lossy_types=lossy_types(columns, sql_type, _instead),
    )


def _instead(logical: LogicalType) -> str:
    match logical:
        case Integer():
            return "smallint (int16)"
        case Binary():
            return "bytea, of any length (binary)"
        case String():
            return "text, of any length (string)"
        case _:
            return f"at most {_MAX_FRACTION} fractional digits"
