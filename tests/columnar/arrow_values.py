"""Arrow arrays that no constructor would build: what a careless driver may hand over."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def raw_text(*values: bytes, kind: pa.DataType | None = None) -> pa.Array:
    """A string array over any bytes, valid UTF-8 or not."""
    as_binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(kind or pa.string(), len(values), as_binary.buffers())


def raw_ticks(kind: pa.DataType, *values: int | None) -> pa.Array:
    """An array of a date, time or timestamp type over any ticks, in range or not."""
    width = np.int32 if kind.bit_width == 32 else np.int64
    ticks = np.array([0 if each is None else each for each in values], width)
    valid = pa.array([each is not None for each in values])
    return pa.Array.from_buffers(kind, len(values), [valid.buffers()[1], pa.py_buffer(ticks)])


def raw_decimal(kind: pa.DataType, *unscaled: int) -> pa.Array:
    """A decimal128 array over any 128-bit integers, within the type's precision or not."""
    data = b"".join(each.to_bytes(16, "little", signed=True) for each in unscaled)
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(data)])
