"""The values that a bulk path must carry as they are, and what a server shows of each."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

NEAREST: Final = 1e-300
"""Floats below this are shown in bits: their decimal text differs between libraries."""
GUID: Final = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
BLANKS: Final = "a\u00e4\u20ac\U0001f600 "


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One value: the column that holds it, how it is told in SQL, in Arrow and in Python, and how it is shown."""

    name: str
    column: str
    """The column's type in SQL."""
    literal: str
    """What gives the value in SQL; ``?`` where no literal does, and then ``python`` is bound to it."""
    arrow: pa.DataType
    held: Any
    """The value as Arrow takes it; nanoseconds for instants and times."""
    python: Any
    """The value as pyodbc takes it."""
    shown: str = "c"
    """The expression by which the server shows it, exactly."""

    @property
    def array(self) -> pa.Array:
        """Return NULL and the value."""
        if pa.types.is_timestamp(self.arrow) or pa.types.is_time(self.arrow):
            return pa.array([None, self.held], pa.int64()).cast(self.arrow)
        return pa.array([None, self.held], self.arrow)

    @property
    def wanted(self) -> str:
        """Return how ``told`` tells the value."""
        return told(self.array, self)[1]


def told(array: pa.Array, value: Value) -> list[str]:
    """Return each element in one form, whatever type a reader gave it."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        unit = getattr(kind, "unit", "ns")
        scale = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
        width = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        return ["NULL" if each is None else f"{each * scale} ns" for each in array.cast(width).to_pylist()]
    return [said(each, value) for each in array.to_pylist()]


def said(each: object, value: Value) -> str:
    """Return one Python value in the same form."""
    match each:
        case None:
            return "NULL"
        case float():
            return f"{each!r}" if abs(each) > NEAREST else "bits " + struct.pack(">d", each).hex()
        case bytes() if value.column == "uniqueidentifier":
            return str(uuid.UUID(bytes=each))
        case uuid.UUID():
            return str(each)
        case str() if value.column == "uniqueidentifier":
            return each.lower()
        case bytes() | bytearray():
            return "0x" + bytes(each).hex()
        case Decimal():
            return f"{each:f}"
        case datetime():
            return f"{(each - datetime(1970, 1, 1)) // timedelta(microseconds=1) * 1000} ns"  # noqa: DTZ001
        case time():
            whole = (each.hour * 60 + each.minute) * 60 + each.second
            return f"{(whole * 10**6 + each.microsecond) * 1000} ns"
        case _:
            return repr(each)


def _value(name: str, column: str, literal: str, arrow: pa.DataType, held: Any, **more: Any) -> Value:
    parts = {"python": held} | more
    return Value(name=name, column=column, literal=literal, arrow=arrow, held=held, **parts)


def _decimal(text: str, precision: int, scale: int) -> Value:
    column = f"decimal({precision},{scale})"
    number = Decimal(text)
    shown = "CONVERT(varchar(50), c)"
    return _value(f"{column} {text}", column, text, pa.decimal128(precision, scale), number, shown=shown)


def _float(text: str) -> Value:
    return _value(f"float {text}", "float(53)", "?", pa.float64(), float(text))


def _text(name: str, column: str, text: str) -> Value:
    literal = "N'" + text.replace("\x00", "' + NCHAR(0) + N'") + "'"
    shown = "CONVERT(varchar(8), DATALENGTH(c)) + ' ' + CONVERT(varchar(90), CONVERT(varbinary(40), c), 2)"
    return _value(f"{column} {name}", column, literal, pa.string(), text, shown=shown)


def _bytes(name: str, column: str, held: bytes) -> Value:
    return _value(f"{column} {name}", column, f"CONVERT({column}, 0x{held.hex()})", pa.binary(), held)


def _instant(text: str, column: str, nanoseconds: int, python: object) -> Value:
    shown = "CONVERT(varchar(40), c, 126)"
    kind = pa.time64("ns") if column.startswith("time") else pa.timestamp("ns" if "7" in column else "us")
    held = nanoseconds if kind.unit == "ns" else nanoseconds // 1000
    literal = f"CONVERT({column}, '{text}')"
    return _value(f"{column} {text}", column, literal, kind, held, python=python, shown=shown)


def _moment(text: str) -> int:
    whole, _, fraction = text.partition(".")
    seconds = (datetime.fromisoformat(whole) - datetime(1970, 1, 1)) // timedelta(seconds=1)  # noqa: DTZ001
    return seconds * 10**9 + int(fraction.ljust(9, "0"))


def values() -> Sequence[Value]:
    """Return all of them."""
    fine = "2026-01-02T03:04:05.1234567"
    coarse = "9999-12-31T23:59:59.999999"
    shown = "LOWER(CONVERT(char(36), c))"
    return (
        _decimal("9" * 28 + "." + "9" * 10, 38, 10),
        _decimal("-0.0000000001", 38, 10),
        _decimal("0." + "9" * 38, 38, 38),
        _decimal("-99.99", 4, 2),
        _value("bigint, its least", "bigint", f"{-(2**63)}", pa.int64(), -(2**63)),
        _value("bit", "bit", "1", pa.bool_(), True),
        _value("tinyint 255", "tinyint", "255", pa.uint8(), 255),
        _float("5e-324"),
        _float("-0.0"),
        _float("1.7976931348623157e308"),
        _float("0.1"),
        _text("empty", "nvarchar(20)", ""),
        _text("surrogates, blank", "nvarchar(20)", BLANKS),
        _text("surrogates, blank", "nvarchar(max)", BLANKS),
        _text("NUL inside", "nvarchar(20)", "a\x00b"),
        _bytes("empty", "varbinary(20)", b""),
        _bytes("00 ff 00", "varbinary(20)", b"\x00\xff\x00"),
        _bytes("00 ff 00", "varbinary(max)", b"\x00\xff\x00"),
        _value("date 0001-01-01", "date", "CONVERT(date, '00010101', 112)", pa.date32(), date(1, 1, 1)),
        _instant(coarse, "datetime2(6)", _moment(coarse), datetime.fromisoformat(coarse)),
        _instant(fine, "datetime2(7)", _moment(fine), fine),
        _instant("23:59:59.9999999", "time(7)", 86_399_999_999_900, "23:59:59.9999999"),
        _value("uuid, 16 bytes", "uniqueidentifier", f"'{GUID}'", pa.binary(16), GUID.bytes, python=GUID, shown=shown),
        _value("uuid, text", "uniqueidentifier", f"'{GUID}'", pa.string(), str(GUID), python=str(GUID), shown=shown),
    )
