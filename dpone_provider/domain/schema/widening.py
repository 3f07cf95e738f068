"""How one logical type fits into another: which changes keep every value, and which do not."""

from __future__ import annotations

import math
import operator
from enum import StrEnum, unique
from typing import assert_never

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


@unique
class Fit(StrEnum):
    """How a new type relates to an old one."""

    SAME = "same"
    WIDER = "wider"
    NARROWER = "narrower"
    OTHER = "other"


def fit(old: LogicalType, new: LogicalType) -> Fit:
    """How ``new`` relates to ``old``. Wider: every value of ``old``, unchanged, and of the same kind.

    Types of one kind of which the new one does not hold all of the old one are narrower, also where neither holds the
    other (``decimal(5,0)`` and ``decimal(5,2)``, ``int8`` and ``uint8``). Types of different kinds are other, even
    where one could hold the other (``int32`` and ``decimal(10,0)``): readers would get something else than before.
    """
    if type(old) is not type(new):
        return Fit.OTHER
    before, now = _room(old), _room(new)
    if before == now:
        return Fit.SAME
    return Fit.WIDER if all(map(operator.ge, now, before)) else Fit.NARROWER


def _room(logical: LogicalType) -> tuple[float, ...]:
    """How much a type holds, in numbers of which each must be at least as big for a wider type of the kind."""
    match logical:
        case Boolean() | Date() | Uuid():
            return ()
        case Integer():
            return (logical.maximum, -logical.minimum)
        case Float(bits=bits):
            return (bits,)
        case Decimal(precision=precision, scale=scale):
            return (precision - scale, scale)
        case String(max_length=length) | Binary(max_length=length):
            return (math.inf if length is None else length,)
        case Time(precision=precision) | Timestamp(precision=precision) | TimestampTz(precision=precision):
            return (precision,)
        case _:
            assert_never(logical)
