"""SQL type texts as people write them in a dbt project, to logical types: by the rules of the engine that holds them.

Sources: PostgreSQL 18, chapter 8 (aliases and defaults); Transact-SQL reference, "Data types". A type outside the
closed set has no logical type; nothing is guessed (``numeric`` without a precision has none).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.schema.errors import InvalidSchemaValue
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

_Arguments = tuple[int | None, ...]
_Maker = Callable[[_Arguments], LogicalType]
_TYPE: Final = re.compile(
    r"(?P<head>[a-z][a-z0-9_ ]*?) ?(?:\( ?(?P<args>[0-9]+(?: ?, ?[0-9]+)?|max) ?\))?(?P<tail>(?: [a-z]+)*)"
)


def logical_of(engine: EngineKind, text: str) -> LogicalType | None:
    """Return the logical type of a SQL type text (any case, any blanks), or None where there is none."""
    match = _TYPE.fullmatch(" ".join(text.lower().split()))
    if match is None:
        return None
    maker = _MAKERS.get(engine, _NONE).get((match["head"] + match["tail"]).strip())
    if maker is None:
        return None
    given = match["args"] or ""
    arguments = tuple(None if each == "max" else int(each) for each in given.split(",") if each)
    try:
        return maker(arguments)
    except (InvalidSchemaValue, TypeError, ValueError):
        return None


def _fixed(made: LogicalType) -> _Maker:
    def make(arguments: _Arguments) -> LogicalType:
        if arguments:
            raise TypeError("the type takes no length")
        return made

    return make


def _fraction(kind: type[Time | Timestamp | TimestampTz], default: int, maximum: int) -> _Maker:
    def make(arguments: _Arguments) -> LogicalType:
        (precision,) = arguments or (default,)
        if precision is None or precision > maximum:
            raise TypeError("more digits than the engine has")
        return kind(precision)

    return make


def _sized(kind: type[String | Binary]) -> _Maker:
    """Make a type of some length; written bare, it is of any length."""

    def make(arguments: _Arguments) -> LogicalType:
        if arguments == (None,):
            raise TypeError("max is SQL Server's word")
        return kind(*arguments)

    return make


def _explicitly_sized(kind: type[String | Binary]) -> _Maker:
    """Make a type of some length or ``max``; SQL Server's bare spelling means 1 here and 30 there, so it has none."""

    def make(arguments: _Arguments) -> LogicalType:
        (length,) = arguments
        return kind(length)

    return make


def _decimal(default: tuple[int, int] | None) -> _Maker:
    def make(arguments: _Arguments) -> LogicalType:
        given = arguments or default
        if given is None:
            raise TypeError("a precision is needed")
        return Decimal(*(each or 0 for each in (*given, 0)[:2]))

    return make


def _mssql_float(arguments: _Arguments) -> LogicalType:
    (digits,) = arguments or (53,)
    if digits is None or not 1 <= digits <= 53:
        raise TypeError("float takes 1 to 53 binary digits")
    return Float(32) if digits <= 24 else Float(64)


def _named(*groups: tuple[str, _Maker]) -> Mapping[str, _Maker]:
    return MappingProxyType({name: maker for names, maker in groups for name in names.split("|")})


_NONE: Final[Mapping[str, _Maker]] = MappingProxyType({})
_MAKERS: Final = MappingProxyType(
    {
        EngineKind.POSTGRES: _named(
            ("boolean|bool", _fixed(Boolean())),
            ("smallint|int2", _fixed(Integer(16))),
            ("integer|int|int4", _fixed(Integer(32))),
            ("bigint|int8", _fixed(Integer(64))),
            ("real|float4", _fixed(Float(32))),
            ("double precision|float8", _fixed(Float(64))),
            ("numeric|decimal", _decimal(None)),
            ("text", _fixed(String())),
            ("character varying|varchar", _sized(String)),
            ("bytea", _fixed(Binary())),
            ("date", _fixed(Date())),
            ("time|time without time zone", _fraction(Time, 6, 6)),
            ("timestamp|timestamp without time zone", _fraction(Timestamp, 6, 6)),
            ("timestamptz|timestamp with time zone", _fraction(TimestampTz, 6, 6)),
            ("uuid", _fixed(Uuid())),
        ),
        EngineKind.MSSQL: _named(
            ("bit", _fixed(Boolean())),
            ("tinyint", _fixed(Integer(8, signed=False))),
            ("smallint", _fixed(Integer(16))),
            ("int|integer", _fixed(Integer(32))),
            ("bigint", _fixed(Integer(64))),
            ("real", _fixed(Float(32))),
            ("float", _mssql_float),
            ("decimal|numeric|dec", _decimal((18, 0))),
            ("varchar|nvarchar", _explicitly_sized(String)),
            ("varbinary", _explicitly_sized(Binary)),
            ("date", _fixed(Date())),
            ("time", _fraction(Time, 7, 7)),
            ("datetime2", _fraction(Timestamp, 7, 7)),
            ("datetimeoffset", _fraction(TimestampTz, 7, 7)),
            ("uniqueidentifier", _fixed(Uuid())),
        ),
    }
)
