"""Dates, times and timestamps into their canonical Arrow type, or the first one that has none.

A driver may have wrapped a value before Arrow exists, and a wrapped value that lands in the engine's range cannot be
told from an honest one; a reader whose driver can do that must guard it in the query (``isfinite(column)``). What
ADBC's PostgreSQL driver makes of ``infinity`` and ``-infinity`` (it adds the 30 years between the two epochs and
overflows) lands before the first day of every engine here, and 24:00 arrives as 86,400 seconds: all are refused here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpone_provider.columnar.arrow_types import arrow_type
from dpone_provider.columnar.buffers import fixed_values, validity
from dpone_provider.columnar.exact_numbers import wrong_arrow_type
from dpone_provider.columnar.offence import Offence, Rule, value_text
from dpone_provider.columnar.target_limits import NANOSECONDS_PER_DAY, TargetLimits
from dpone_provider.domain.schema.types import Date, Time, Timestamp, TimestampTz

_NANOSECONDS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_INT64: Final = (-(2**63), 2**63 - 1)
_EPOCH: Final = date(1970, 1, 1)


def exact_date(array: pa.Array, logical: Date, limits: TargetLimits) -> pa.Array | Offence:
    """From dates within the engine's range; a date64 must stand at midnight."""
    if not pa.types.is_date(array.type):
        return wrong_arrow_type(array, f"Arrow date for {logical}")
    try:
        days = array.cast(pa.date32())
    except pa.ArrowInvalid:
        row = _first_row(array.cast(pa.int64()), lambda each: each % 86_400_000 != 0)
        return Offence(rule=Rule.ARROW_TYPE, row=row, value=value_text(array, row), limit="whole days")
    extremes = pc.min_max(days.cast(pa.int32())).as_py()
    if extremes["min"] is None or (extremes["min"] >= limits.min_day and extremes["max"] <= limits.max_day):
        return days
    row = _first_row(days.cast(pa.int32()), lambda each: not limits.min_day <= each <= limits.max_day)
    limit = f"{limits.engine}: {day_text(limits.min_day)} to {day_text(limits.max_day)}"
    return Offence(rule=Rule.DATE_RANGE, row=row, value=value_text(array, row), limit=limit)


def exact_time(array: pa.Array, logical: Time, limits: TargetLimits) -> pa.Array | Offence:
    """From times of day below 24:00, with no more fractional digits than declared."""
    if not pa.types.is_time(array.type):
        return wrong_arrow_type(array, f"Arrow time for {logical}")
    # An out-of-range time has no cast of its own, so the ticks are what is compared.
    ticks = array.cast(pa.int32() if pa.types.is_time32(array.type) else pa.int64()).cast(pa.int64())
    bounds = (0, NANOSECONDS_PER_DAY - 1)
    return _exact_ticks(
        array, ticks, logical, bounds, Rule.TIME_RANGE, "00:00:00 to before 24:00:00", limits.max_fractional_digits
    )


def exact_timestamp(array: pa.Array, logical: Timestamp | TimestampTz, limits: TargetLimits) -> pa.Array | Offence:
    """From timestamps within the engine's range, with no more fractional digits than declared.

    ``timestamp`` must arrive without a zone and ``timestamp_tz`` with one (any: Arrow's value is the instant).
    """
    has_zone = pa.types.is_timestamp(array.type) and array.type.tz is not None
    if not pa.types.is_timestamp(array.type) or has_zone is not isinstance(logical, TimestampTz):
        zone = "with a zone" if isinstance(logical, TimestampTz) else "without a zone"
        return wrong_arrow_type(array, f"Arrow timestamp {zone} for {logical}")
    bounds = (limits.min_instant, limits.max_instant)
    lowest, highest = (day_text(each // NANOSECONDS_PER_DAY) for each in bounds)
    limit = f"{limits.engine}: {lowest} to {highest}, and {arrow_type(logical)}"
    return _exact_ticks(
        array, array.cast(pa.int64()), logical, bounds, Rule.TIMESTAMP_RANGE, limit, limits.max_fractional_digits
    )


def _exact_ticks(
    array: pa.Array,
    ticks: pa.Array,
    logical: Time | Timestamp | TimestampTz,
    bounds: tuple[int, int],
    range_rule: Rule,
    range_limit: str,
    engine_digits: int,
) -> pa.Array | Offence:
    """Rescale ``ticks`` to the canonical unit; ``bounds`` are inclusive nanoseconds."""
    canonical = arrow_type(logical)
    digits = min(logical.precision, engine_digits)
    from_ns, to_ns = _NANOSECONDS[array.type.unit], _NANOSECONDS[canonical.unit]
    step = 10 ** (9 - digits)  # nanoseconds of the last digit that is kept
    lowest = max(-(-bounds[0] // from_ns), -(-_INT64[0] * to_ns // from_ns), _INT64[0])
    highest = min(bounds[1] // from_ns, _INT64[1] * to_ns // from_ns, _INT64[1])
    values, valid = fixed_values(ticks, np.int64), validity(ticks)
    outside = valid & ((values < lowest) | (values > highest))
    too_fine = valid & (values % max(step // from_ns, 1) != 0)
    for rule, wrong, limit in (
        (range_rule, outside, range_limit),
        (Rule.FRACTIONAL_DIGITS, too_fine, f"at most {digits} fractional digits of a second"),
    ):
        rows = np.flatnonzero(wrong)
        if rows.size:
            row = int(rows[0])
            return Offence(rule=rule, row=row, value=value_text(array, row), limit=limit)
    scaled = values * (from_ns // to_ns) if from_ns >= to_ns else values // (to_ns // from_ns)
    return pa.array(scaled, pa.int64(), mask=~valid).cast(canonical)


def _first_row(numbers: pa.Array, wrong: Callable[[int], bool]) -> int:
    return next(row for row, each in enumerate(numbers.to_pylist()) if each is not None and wrong(each))


def day_text(day: int) -> str:
    """A day counted from 1970-01-01 as a date, or as a count where Python has no such date."""
    try:
        return (_EPOCH + timedelta(days=day)).isoformat()
    except OverflowError:
        return f"day {day} from 1970-01-01"
