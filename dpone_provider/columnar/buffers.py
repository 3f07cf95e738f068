"""Arrow arrays as numpy views, without the conversions that Arrow's own ``to_numpy`` does for NULLs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def fixed_values(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of a fixed-width array, one item each, as a read-only view; undefined where NULL.

    ``dtype`` must be as wide as one value of the array. A boolean array has no such view: use ``truth_values``.
    """
    if len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, count=array.offset + len(array))[array.offset :]


def truth_values(array: pa.Array) -> npt.NDArray[np.uint8]:
    """A boolean array's values as one byte each, 0 where NULL."""
    result: npt.NDArray[np.uint8] = fixed_values(pc.fill_null(array, False).cast(pa.uint8()), np.uint8)
    return result


def validity(array: pa.Array) -> npt.NDArray[np.bool_]:
    """True where the array has a value."""
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return truth_values(array.is_valid()).view(np.bool_)


def text_bytes(text: pa.Array) -> npt.NDArray[np.uint8]:
    """All bytes of a ``string`` or ``binary`` array's values, end to end, as a view; those under a NULL included."""
    data = text.buffers()[2]
    if len(text) == 0 or data is None:
        return np.empty(0, np.uint8)
    first, last = _offsets(text)[[0, -1]]
    return np.frombuffer(data, np.uint8)[first:last]


def _offsets(text: pa.Array) -> npt.NDArray[np.int32]:
    """The ``len + 1`` offsets of a non-empty ``string`` or ``binary`` array as a view."""
    return np.frombuffer(text.buffers()[1], np.int32)[text.offset : text.offset + len(text) + 1]
