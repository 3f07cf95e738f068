"""One answer in Arrow's stream format, whole or a failure.

A status of 200 proves nothing here: the server writes it before the query is done, and an exception that comes later is
text in the middle of the body or a connection that ends early. So the answer counts as whole only if Arrow's own
end-of-stream marker was read, nothing followed it, and the transport ended in order.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import IOBase, RawIOBase
from typing import Any, Final

import pyarrow as pa
from urllib3.exceptions import HTTPError

from dpone_provider.adapters.clickhouse.errors import AnswerLost

END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Arrow, "Encapsulated message format": a continuation marker and a length of zero."""
_EXCEPTION: Final = b"DB::Exception"
_TAIL_BYTES: Final = 4096
_BROKEN: Final = (pa.ArrowException, HTTPError, http.client.HTTPException, OSError, ValueError)


class _Remembering(RawIOBase):
    """Passes reads on and remembers the last bytes."""

    def __init__(self, source: IOBase) -> None:
        """Read from ``source``."""
        self._source: Any = source
        self.tail = b""

    def readable(self) -> bool:
        """Say yes."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Read exactly ``size`` bytes unless the answer ends before."""
        data: bytes = self._source.read(size if size >= 0 else None)
        self.tail = (self.tail + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        return data


def record_batches(answer: IOBase) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an answer.

    Raises:
        AnswerLost: the answer broke, held an exception of the server, or was not a whole stream.
    """
    source = _Remembering(answer)
    with _whole(source):
        reader = pa.ipc.open_stream(source)
        yield from reader
        if not source.tail.endswith(END_OF_STREAM):
            raise ValueError("no end-of-stream marker")
        if source.read(1):
            raise ValueError("bytes after the end-of-stream marker")


@contextmanager
def _whole(source: _Remembering) -> Iterator[None]:
    try:
        yield
    except _BROKEN as error:
        raise _verdict(source, error) from None


def _verdict(source: _Remembering, error: Exception) -> AnswerLost:
    # What was read so far is all there is when this breaks as well.
    with suppress(*_BROKEN):
        source.read(_TAIL_BYTES)
    if _EXCEPTION in source.tail:
        text = source.tail[source.tail.index(_EXCEPTION) :].decode(errors="replace")
        return AnswerLost(f"an exception of the server in the middle of the rows: {text.splitlines()[0][:400]}")
    return AnswerLost(f"an answer that is not whole: {type(error).__name__}")
