"""Text, bytes and UUIDs into their canonical Arrow type, or the first one that has none.

Lengths are exact in the unit that the engine counts; the check walks characters only when bytes alone cannot decide.
"""

from __future__ import annotations

import uuid
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from dpone_provider.columnar.arrow_types import UUID_BYTES, is_bytes, is_text
from dpone_provider.columnar.buffers import text_bytes
from dpone_provider.columnar.exact_numbers import wrong_arrow_type
from dpone_provider.columnar.offence import Offence, Rule, value_text
from dpone_provider.columnar.target_limits import LengthUnit, TargetLimits
from dpone_provider.domain.schema.types import Binary, String, Uuid

_ASTRAL: Final = r"[\x{10000}-\x{10FFFF}]"
_UUID_TEXT: Final = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def exact_string(array: pa.Array, logical: String, limits: TargetLimits) -> pa.Array | Offence:
    """From text, or from bytes that are UTF-8; without NUL where the engine has none; within the declared length."""
    if not (is_text(array.type) or is_bytes(array.type)):
        return wrong_arrow_type(array, f"Arrow string or binary for {logical}")
    try:
        text = array.cast(pa.string())
        text.validate(full=True)  # a cast between text types does not look at the bytes
    except pa.ArrowInvalid:
        return _first_invalid_utf8(array)
    if not limits.allows_nul and not text_bytes(text).all():
        row = pc.index(pc.match_substring(text, "\x00"), True).as_py()
        if row >= 0:
            limit = f"{limits.engine}: text without U+0000"
            return Offence(rule=Rule.NUL_CHARACTER, row=row, value=value_text(text, row), limit=limit)
    return text if logical.max_length is None else _within_length(text, logical.max_length, limits)


def _first_invalid_utf8(array: pa.Array) -> Offence:
    as_bytes = array.cast(pa.large_binary())
    row = next(row for row, each in enumerate(as_bytes.to_pylist()) if each is not None and not _is_utf8(each))
    limit = "valid UTF-8, which has no unpaired surrogates"
    return Offence(rule=Rule.INVALID_UTF8, row=row, value=value_text(as_bytes, row), limit=limit)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _within_length(text: pa.Array, maximum: int, limits: TargetLimits) -> pa.Array | Offence:
    # Neither characters nor UTF-16 units are ever more than the bytes of UTF-8.
    if (pc.max(pc.binary_length(text)).as_py() or 0) <= maximum:
        return text
    lengths = pc.utf8_length(text)
    if limits.string_unit is LengthUnit.UTF16_UNITS:
        lengths = pc.add(lengths, pc.count_substring_regex(text, _ASTRAL))
    row = pc.index(pc.greater(lengths, maximum), True).as_py()
    if row < 0:
        return text
    value = f"{lengths[row].as_py()} {limits.string_unit}: {value_text(text, row)}"
    return Offence(rule=Rule.STRING_LENGTH, row=row, value=value, limit=f"at most {maximum} {limits.string_unit}")


def exact_binary(array: pa.Array, logical: Binary) -> pa.Array | Offence:
    """From bytes, within the declared length."""
    if not is_bytes(array.type):
        return wrong_arrow_type(array, f"Arrow binary for {logical}")
    found = array.cast(pa.binary())
    lengths = pc.binary_length(found)
    if logical.max_length is None or (pc.max(lengths).as_py() or 0) <= logical.max_length:
        return found
    row = pc.index(pc.greater(lengths, logical.max_length), True).as_py()
    value = f"{lengths[row].as_py()} bytes: {value_text(found, row)}"
    return Offence(rule=Rule.BINARY_LENGTH, row=row, value=value, limit=f"at most {logical.max_length} bytes")


def exact_uuid(array: pa.Array, logical: Uuid) -> pa.Array | Offence:
    """From 16 bytes in RFC 4122 order, or from the text form in either case.

    The bytes' order cannot be told from the bytes: a reader of SQL Server, whose uniqueidentifier swaps the first three
    fields, must deliver text or reorder.
    """
    if is_text(array.type):
        return _uuid_from_text(array)
    if not is_bytes(array.type):
        return wrong_arrow_type(array, f"Arrow fixed_size_binary[16], binary or string for {logical}")
    row = pc.index(pc.not_equal(pc.binary_length(array), UUID_BYTES), True).as_py()
    if row >= 0:
        return Offence(rule=Rule.NOT_A_UUID, row=row, value=value_text(array, row), limit="16 bytes")
    return array.cast(pa.binary()).cast(pa.binary(UUID_BYTES))


def _uuid_from_text(text: pa.Array) -> pa.Array | Offence:
    text = text.cast(pa.string())
    row = pc.index(pc.match_substring_regex(text, _UUID_TEXT), False).as_py()
    if row >= 0:
        limit = "8-4-4-4-12 hexadecimal digits"
        return Offence(rule=Rule.NOT_A_UUID, row=row, value=value_text(text, row), limit=limit)
    values = [None if each is None else uuid.UUID(each).bytes for each in text.to_pylist()]
    return pa.array(values, pa.binary(UUID_BYTES))
