"""A value that cannot be carried exactly: what it is, and where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa

from dpone_provider.columnar.arrow_types import is_text
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused, refuse

_SHOWN_CHARACTERS: Final = 100


class Rule(StrEnum):
    """Which exactness rule a value broke; the value is a stable code."""

    COLUMNS = "columns_differ"
    ARROW_TYPE = "arrow_type_not_convertible"
    NOT_NULL = "null_in_not_null_column"
    BOOLEAN = "not_a_boolean"
    INTEGER_RANGE = "integer_out_of_range"
    NOT_INTEGRAL = "fraction_in_integer_column"
    NOT_A_NUMBER = "not_a_number"
    NOT_FINITE = "nan_or_infinity"
    SUBNORMAL = "subnormal_float"
    FLOAT_PRECISION = "float_precision_lost"
    DECIMAL_PRECISION = "decimal_precision_exceeded"
    DECIMAL_SCALE = "decimal_scale_exceeded"
    INVALID_UTF8 = "invalid_utf8"
    NUL_CHARACTER = "nul_character"
    STRING_LENGTH = "string_too_long"
    BINARY_LENGTH = "binary_too_long"
    NOT_A_UUID = "not_a_uuid"
    DATE_RANGE = "date_out_of_range"
    TIME_RANGE = "time_out_of_range"
    TIMESTAMP_RANGE = "timestamp_out_of_range"
    FRACTIONAL_DIGITS = "fractional_digits_exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
    """One column's first offending value. ``row`` counts within the batch; ``None`` is the column as a whole."""

    rule: Rule
    row: int | None
    value: str
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InexactValue:
    """A typed refusal: this value of this row cannot be stored as declared, so nothing is stored.

    Attributes:
        row: the key columns' values, or the ordinal of the row in the stream, counted from 0.
        value: the value as text, cut after 100 characters.
        limit: what would have been accepted.
    """

    relation: Relation
    column: str
    row: str
    rule: Rule
    value: str
    limit: str

    def refusal(self) -> Refused:
        """The same as an outcome."""
        return refuse(
            self.rule.value,
            f"{self.relation}, column {self.column!r}, {self.row}",
            found=self.value,
            allowed=self.limit,
            next_command="correct the value at the source, or declare a type that holds it, and run again",
        )


def value_text(array: pa.Array, row: int) -> str:
    """A value as text for a message: never raises, whatever the bytes are, and never shows more than 100 characters."""
    text = _value_text(array.slice(row, 1))
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _value_text(single: pa.Array) -> str:
    if single.null_count == 1:
        return "NULL"
    kind = single.type
    if isinstance(kind, pa.BaseExtensionType):
        return _value_text(single.storage)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # In UTC, as Arrow would otherwise look the zone up in a database that need not be there.
        return str(single.cast(pa.timestamp(kind.unit)).cast(pa.string())[0].as_py()) + "Z"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_decimal(kind):
        return str(single.cast(pa.string())[0].as_py())
    if is_text(kind):
        as_bytes: bytes = single.cast(pa.large_binary())[0].as_py()
        return repr(as_bytes.decode("utf-8", "backslashreplace"))
    found = single[0].as_py()
    return f"0x{found.hex()}" if isinstance(found, bytes) else repr(found)


def row_text(batch: pa.RecordBatch, row: int, key_columns: Sequence[str], ordinal: int) -> str:
    """How a message names a row: by its key columns if the batch has them, else by its ordinal in the stream."""
    present = [name for name in key_columns if name in batch.schema.names]
    if not present:
        return f"row {ordinal}"
    return "key (" + ", ".join(f"{name}={value_text(batch.column(name), row)}" for name in present) + ")"


def asked_row_text(key_columns: Sequence[str], values: Sequence[object]) -> str:
    """How a message names a row that a server was asked for: by its key, if one was declared."""
    named = ", ".join(f"{name}={value}" for name, value in zip(key_columns, values, strict=True))
    return f"key ({named})" if named else "a row of a table without a declared key"
