"""Secrets masked out of what a child prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from dpone_provider.domain.secret import Secret

MASK = b"***"


class Mask:
    """Replaces every given secret, also percent-encoded, JSON-escaped or written by Python's ``repr``."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        """Prepare one pattern over all spellings, longest first."""
        spellings = {spelling.encode() for secret in secrets for spelling in _spellings(secret.reveal())}
        ordered = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        self._pattern = re.compile(b"|".join(map(re.escape, ordered))) if ordered else None
        self.longest = len(ordered[0]) if ordered else 0

    def apply(self, data: bytes) -> bytes:
        """Return ``data`` with every whole secret in it replaced."""
        return self._pattern.sub(MASK, data) if self._pattern else data


def _spellings(text: str) -> Iterator[str]:
    yield text
    yield quote(text, safe="")
    yield quote_plus(text)
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    # Output is forwarded line by line.
    yield from (line for line in text.splitlines() if line)
