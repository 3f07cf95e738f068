"""A child's event pipe: JSON objects, one a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

MAX_LINE_BYTES = 1024 * 1024
CHUNK_BYTES = 65536


class MalformedEvent(Exception):
    """A line of the event pipe that is no JSON object, or too long; tells which line, not what was in it."""


def event_lines(descriptor: int) -> Iterator[Mapping[str, object]]:
    """Yield the objects that come through ``descriptor`` until its end. A child that was killed may leave half a last
    line, which is dropped.

    Raises:
        MalformedEvent: a whole line that is no JSON object, or a line of more than `MAX_LINE_BYTES`.
    """
    held, number = b"", 0
    while chunk := os.read(descriptor, CHUNK_BYTES):
        *whole, held = (held + chunk).split(b"\n")
        for line in whole:
            number += 1
            yield _event(line, number)
        if len(held) > MAX_LINE_BYTES:
            raise MalformedEvent(f"event {number + 1} is longer than {MAX_LINE_BYTES} bytes")


def _event(line: bytes, number: int) -> Mapping[str, object]:
    try:
        event = json.loads(line)
    except ValueError:
        raise MalformedEvent(f"event {number} is not JSON") from None
    if not isinstance(event, dict):
        raise MalformedEvent(f"event {number} is not a JSON object")
    return event
