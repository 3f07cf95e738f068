"""The worker's line to its controller: events go out on a pipe of their own, answers come in on standard input."""

from __future__ import annotations

import json
import os
import selectors
from collections.abc import Mapping
from typing import BinaryIO

from dpone_provider.application.ports.time import Deadline

EVENTS_FD = "DPONE_EVENTS_FD"
_MAX_ANSWER = 4096


class PipeChannel:
    """A channel over two inherited pipes. A controller that is gone reads as "not let go"."""

    def __init__(self, events: BinaryIO, answers: int) -> None:
        """Write events to ``events``; read answers from the file descriptor ``answers``."""
        self._events = events
        self._answers = answers

    def say(self, event: Mapping[str, object]) -> None:
        """Send one event as one line of JSON."""
        self._events.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")
        self._events.flush()

    def wait_to_be_let_go(self, deadline: Deadline) -> bool:
        """Wait for ``{"dispatch": true}``; anything else, the end of the pipe or the deadline is a no."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            line = b""
            while not line.endswith(b"\n") and len(line) < _MAX_ANSWER:
                if not selector.select(deadline.remaining()):
                    return False
                part = os.read(self._answers, 1)
                if not part:
                    return False
                line += part
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            return False
        return isinstance(answer, dict) and answer.get("dispatch") is True


def read_line(descriptor: int, limit: int) -> str:
    """Read one line of at most ``limit`` bytes, byte by byte past the first block, leaving nothing buffered.

    Raises:
        ValueError: no line ends within the limit.
    """
    data = bytearray()
    while not data.endswith(b"\n"):
        part = os.read(descriptor, 1)
        if not part or len(data) > limit:
            raise ValueError("standard input held no complete line")
        data += part
    return data.decode()
