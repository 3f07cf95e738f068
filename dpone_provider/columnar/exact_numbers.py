"""Numbers into their canonical Arrow type: the same value, or the first one that has none.

Every function first decides for the whole column with vectorised kernels; only when that fails does it walk the values
to find the first offender. Each returns the converted array or an ``Offence``.
"""

from __future__ import annotations

import decimal
import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpone_provider.columnar.arrow_types import arrow_type, is_text
from dpone_provider.columnar.buffers import fixed_values, text_bytes, validity
from dpone_provider.columnar.offence import Offence, Rule, value_text
from dpone_provider.columnar.target_limits import TargetLimits
from dpone_provider.domain.schema.types import MAX_DECIMAL_PRECISION, Boolean, Decimal, Float, Integer

_DECIMAL_TEXT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SAFE_TEXT_LENGTH: Final = MAX_DECIMAL_PRECISION + 1
_WIDEST: Final = pa.decimal128(38, 0)


def wrong_arrow_type(array: pa.Array, allowed: str) -> Offence:
    """The column arrives as an Arrow type from which no exact conversion is defined."""
    return Offence(rule=Rule.ARROW_TYPE, row=None, value=f"Arrow {array.type}", limit=allowed)


def exact_boolean(array: pa.Array, logical: Boolean) -> pa.Array | Offence:
    """From booleans, or from integers that are all 0 or 1."""
    if pa.types.is_boolean(array.type):
        return array
    if not pa.types.is_integer(array.type):
        return wrong_arrow_type(array, f"Arrow bool or integer for {logical}")
    outside = _first_outside(array, 0, 1)
    if outside is not None:
        return Offence(rule=Rule.BOOLEAN, row=outside, value=value_text(array, outside), limit="0 or 1")
    return array.cast(pa.bool_())


def exact_integer(array: pa.Array, logical: Integer) -> pa.Array | Offence:
    """From integers of any width, or from decimals without a fraction, within the range of ``logical``."""
    if pa.types.is_decimal(array.type):
        return _integer_from_decimal(array, logical)
    if not pa.types.is_integer(array.type):
        return wrong_arrow_type(array, f"Arrow integer or decimal for {logical}")
    outside = _first_outside(array, logical.minimum, logical.maximum)
    if outside is not None:
        return _beyond_integer(array, outside, logical)
    return array.cast(arrow_type(logical))


def _beyond_integer(array: pa.Array, row: int, logical: Integer) -> Offence:
    limit = f"{logical}: {logical.minimum} to {logical.maximum}"
    return Offence(rule=Rule.INTEGER_RANGE, row=row, value=value_text(array, row), limit=limit)


def _first_outside(array: pa.Array, minimum: int, maximum: int) -> int | None:
    extremes = pc.min_max(array).as_py()
    if extremes["min"] is None or (extremes["min"] >= minimum and extremes["max"] <= maximum):
        return None
    return next(
        row for row, each in enumerate(array.to_pylist()) if each is not None and not minimum <= each <= maximum
    )


def _integer_from_decimal(array: pa.Array, logical: Integer) -> pa.Array | Offence:
    for row, each in enumerate(array.to_pylist()):
        if each is None:
            continue
        if each != each.to_integral_value():
            return Offence(
                rule=Rule.NOT_INTEGRAL, row=row, value=value_text(array, row), limit=f"{logical}: no fraction"
            )
        if not logical.minimum <= each <= logical.maximum:
            return _beyond_integer(array, row, logical)
    return array.cast(arrow_type(logical))


def exact_float(array: pa.Array, logical: Float, limits: TargetLimits) -> pa.Array | Offence:
    """From floats; into float32 only what float32 holds. NaN, infinities and subnormals as the limits say."""
    if not pa.types.is_floating(array.type):
        return wrong_arrow_type(array, f"Arrow float for {logical}")
    wide = fixed_values(array.cast(pa.float64()), np.float64)
    valid = validity(array)
    finite = np.isfinite(wide)
    smallest = np.finfo(np.float32 if logical.bits == 32 else np.float64).smallest_normal
    with np.errstate(over="ignore", invalid="ignore"):
        changed = finite & (wide.astype(np.float32).astype(np.float64) != wide) & (logical.bits == 32)
    subnormal = (wide != 0) & (np.abs(wide) < smallest)
    for rule, wrong, allowed, limit in (
        (Rule.NOT_FINITE, ~finite, limits.allows_nan, f"{limits.engine}: finite numbers only"),
        (Rule.FLOAT_PRECISION, changed, False, "a value that float32 holds exactly"),
        (Rule.SUBNORMAL, subnormal, limits.allows_subnormal, f"{limits.engine}: 0, or at least {smallest}"),
    ):
        rows = np.flatnonzero(wrong & valid)
        if rows.size and not allowed:
            row = int(rows[0])
            return Offence(rule=rule, row=row, value=value_text(array, row), limit=limit)
    return array.cast(arrow_type(logical), safe=False)


def exact_decimal(array: pa.Array, logical: Decimal) -> pa.Array | Offence:
    """From decimals, integers, or text as PostgreSQL writes NUMERIC, within precision and scale; never from floats."""
    kind = array.type
    if not (pa.types.is_decimal(kind) or pa.types.is_integer(kind) or is_text(kind)):
        return wrong_arrow_type(array, f"Arrow decimal, integer or text for {logical}")
    if not _arrow_can_cast(array, logical):
        return _decimal_by_value(array, logical)
    try:
        whole = array.cast(_WIDEST) if pa.types.is_integer(kind) else array
        converted = whole.cast(arrow_type(logical))
        converted.validate(full=True)  # a cast to the same type checks nothing, and drivers may hand over any bits
        return converted
    except pa.ArrowInvalid:
        return _decimal_by_value(array, logical)


def _arrow_can_cast(array: pa.Array, logical: Decimal) -> bool:
    """Whether Arrow's own cast to a decimal can be trusted with these values.

    Rescaling by more than 38 digits reads past its table of powers: pyarrow 26 turns a text of 39 fractional digits
    into 0 without a word, and ends the process on ``1E-999999999``. Text of at most 39 characters without an exponent
    has at most 38 fractional digits.
    """
    if pa.types.is_decimal(array.type):
        return bool(abs(array.type.scale - logical.scale) <= MAX_DECIMAL_PRECISION)
    if not is_text(array.type):
        return True
    if (pc.max(pc.binary_length(array)).as_py() or 0) > _SAFE_TEXT_LENGTH:
        return False
    letters = text_bytes(array.cast(pa.string())) | 0x20
    return not bool((letters == ord("e")).any())


def _decimal_by_value(array: pa.Array, logical: Decimal) -> pa.Array | Offence:
    found: list[decimal.Decimal | None] = []
    for row, each in enumerate(array.to_pylist()):
        exact = None if each is None else _exact_decimal(each, logical)
        if isinstance(exact, Rule):
            limit = f"{logical}: {logical.precision} digits, {logical.scale} of them after the point"
            return Offence(rule=exact, row=row, value=value_text(array, row), limit=limit)
        found.append(exact)
    return pa.array(found, arrow_type(logical))


def _exact_decimal(found: str | int | decimal.Decimal, logical: Decimal) -> decimal.Decimal | Rule:
    """The value at the declared scale, or the rule that it breaks."""
    if isinstance(found, str) and found.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return Rule.NOT_FINITE
    if isinstance(found, str) and not _DECIMAL_TEXT.fullmatch(found):
        return Rule.NOT_A_NUMBER
    value = decimal.Decimal(found)
    if value == 0:
        return decimal.Decimal(0)
    if value.adjusted() >= logical.precision - logical.scale:
        return Rule.DECIMAL_PRECISION
    sign, digits, exponent = value.as_tuple()
    surplus = -int(exponent) - logical.scale
    if surplus > 0 and any(digits[-surplus:]):
        return Rule.DECIMAL_SCALE
    kept = digits[: len(digits) - max(surplus, 0)]
    return decimal.Decimal((sign, kept, int(exponent) + max(surplus, 0)))
