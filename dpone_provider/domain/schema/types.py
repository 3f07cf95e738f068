"""The closed set of logical types and their one text form.

A logical type says what values a column may hold, independent of any engine. Engine adapters map both ways and own the
tighter limits of their engine (SQL Server stops at seven fractional digits, PostgreSQL at six).

Text form (exactly one spelling per type, so that documents that mention types stay canonical)::

    boolean  int8 int16 int32 int64 uint8  float32 float64  decimal(p,s)
    string string(n)  binary binary(n)  date  time(p) timestamp(p) timestamp_tz(p)  uuid
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from dpone_provider.domain.schema.errors import InvalidSchemaValue

MAX_DECIMAL_PRECISION: Final = 38
"""Digits of the widest decimal; what every supported engine can hold (SQL Server's own limit)."""

MAX_FRACTIONAL_DIGITS: Final = 9
"""Finest time unit, nanoseconds; the limit of Arrow and of ClickHouse's DateTime64."""

_NAMES: Final = (
    "boolean, int8, int16, int32, int64, uint8, float32, float64, decimal(p,s), string, string(n), binary, binary(n), "
    "date, time(p), timestamp(p), timestamp_tz(p), uuid"
)


def _require(holds: bool, *, subject: str, found: object, allowed: str) -> None:
    if not holds:
        raise InvalidSchemaValue(subject=subject, found=str(found), allowed=allowed)


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    def __str__(self) -> str:
        return "boolean"


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number of ``bits`` bits: 8, 16, 32 or 64 signed, or 8 unsigned (SQL Server's tinyint).

    Raises:
        InvalidSchemaValue: for any other combination.
    """

    bits: int
    signed: bool = True

    def __post_init__(self) -> None:
        widths = (8, 16, 32, 64) if self.signed else (8,)
        _require(
            self.bits in widths, subject="integer type", found=str(self), allowed="int8, int16, int32, int64, uint8"
        )

    @property
    def minimum(self) -> int:
        """Smallest value that fits."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        """Largest value that fits."""
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    def __str__(self) -> str:
        return f"{'' if self.signed else 'u'}int{self.bits}"


@dataclass(frozen=True, slots=True)
class Float:
    """An IEEE 754 binary number of 32 or 64 bits.

    Raises:
        InvalidSchemaValue: for any other width.
    """

    bits: int

    def __post_init__(self) -> None:
        _require(self.bits in (32, 64), subject="float type", found=str(self), allowed="float32, float64")

    def __str__(self) -> str:
        return f"float{self.bits}"


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal number with ``precision`` digits in all, ``scale`` of them after the point.

    Raises:
        InvalidSchemaValue: unless ``1 <= precision <= 38`` and ``0 <= scale <= precision``.
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        holds = 1 <= self.precision <= MAX_DECIMAL_PRECISION and 0 <= self.scale <= self.precision
        _require(
            holds, subject="decimal type", found=str(self), allowed="decimal(p,s) with p from 1 to 38 and s from 0 to p"
        )

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class String:
    """Text of at most ``max_length`` characters (Unicode code points), or of any length.

    An engine that counts in other units (SQL Server's nvarchar counts UTF-16 code units) says so in its limits.

    Raises:
        InvalidSchemaValue: for a length below 1.
    """

    max_length: int | None = None

    def __post_init__(self) -> None:
        holds = self.max_length is None or self.max_length >= 1
        _require(holds, subject="string type", found=str(self), allowed="string, or string(n) with n at least 1")

    def __str__(self) -> str:
        return "string" if self.max_length is None else f"string({self.max_length})"


@dataclass(frozen=True, slots=True)
class Binary:
    """At most ``max_length`` bytes, or any number.

    Raises:
        InvalidSchemaValue: for a length below 1.
    """

    max_length: int | None = None

    def __post_init__(self) -> None:
        holds = self.max_length is None or self.max_length >= 1
        _require(holds, subject="binary type", found=str(self), allowed="binary, or binary(n) with n at least 1")

    def __str__(self) -> str:
        return "binary" if self.max_length is None else f"binary({self.max_length})"


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the proleptic Gregorian calendar."""

    def __str__(self) -> str:
        return "date"


def _require_fraction(precision: int, type_text: str) -> None:
    holds = 0 <= precision <= MAX_FRACTIONAL_DIGITS
    _require(holds, subject="time type", found=type_text, allowed="0 to 9 fractional digits of a second")


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day from 00:00 up to, and without, 24:00, with ``precision`` fractional digits of a second.

    Raises:
        InvalidSchemaValue: unless ``0 <= precision <= 9``.
    """

    precision: int

    def __post_init__(self) -> None:
        _require_fraction(self.precision, str(self))

    def __str__(self) -> str:
        return f"time({self.precision})"


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A date and time of day without a zone, with ``precision`` fractional digits of a second.

    Raises:
        InvalidSchemaValue: unless ``0 <= precision <= 9``.
    """

    precision: int

    def __post_init__(self) -> None:
        _require_fraction(self.precision, str(self))

    def __str__(self) -> str:
        return f"timestamp({self.precision})"


@dataclass(frozen=True, slots=True)
class TimestampTz:
    """An instant, with ``precision`` fractional digits of a second. The zone it was written in is not kept.

    Raises:
        InvalidSchemaValue: unless ``0 <= precision <= 9``.
    """

    precision: int

    def __post_init__(self) -> None:
        _require_fraction(self.precision, str(self))

    def __str__(self) -> str:
        return f"timestamp_tz({self.precision})"


@dataclass(frozen=True, slots=True)
class Uuid:
    """A universally unique identifier, compared and ordered as its RFC 4122 bytes."""

    def __str__(self) -> str:
        return "uuid"


LogicalType: TypeAlias = (
    Boolean | Integer | Float | Decimal | String | Binary | Date | Time | Timestamp | TimestampTz | Uuid
)
"""Every logical type; a ``match`` over it ends in ``assert_never``."""

_EVERY_UNPARAMETERISED: Final[tuple[LogicalType, ...]] = (
    Boolean(),
    Integer(8),
    Integer(16),
    Integer(32),
    Integer(64),
    Integer(8, signed=False),
    Float(32),
    Float(64),
    String(),
    Binary(),
    Date(),
    Uuid(),
)
_UNPARAMETERISED: Final = {str(each): each for each in _EVERY_UNPARAMETERISED}

_WITH_ONE_NUMBER: Final[dict[str, type[String | Binary | Time | Timestamp | TimestampTz]]] = {
    "string": String,
    "binary": Binary,
    "time": Time,
    "timestamp": Timestamp,
    "timestamp_tz": TimestampTz,
}

# [0-9] and no leading zero: \d would accept other scripts' digits, and each type has one spelling only.
_NUMBER: Final = r"(0|[1-9][0-9]{0,9})"
_ONE_NUMBER: Final = re.compile(rf"(string|binary|time|timestamp|timestamp_tz)\({_NUMBER}\)")
_DECIMAL: Final = re.compile(rf"decimal\({_NUMBER},{_NUMBER}\)")


def parse_logical_type(text: str) -> LogicalType:
    """Read a type's canonical text; ``str`` is the exact inverse.

    Raises:
        InvalidSchemaValue: for a name outside the set, another spelling (capitals, blanks, leading zeros) or parameters
            out of range.
    """
    if text in _UNPARAMETERISED:
        return _UNPARAMETERISED[text]
    if found := _ONE_NUMBER.fullmatch(text):
        return _WITH_ONE_NUMBER[found[1]](int(found[2]))
    if found := _DECIMAL.fullmatch(text):
        return Decimal(int(found[1]), int(found[2]))
    raise InvalidSchemaValue(
        subject="logical type", found=repr(text), allowed=f"one of {_NAMES}, in this spelling (no capitals, no blanks)"
    )
