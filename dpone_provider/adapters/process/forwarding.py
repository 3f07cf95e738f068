"""A child's own output, brought to the log: masked, line by line, bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from dpone_provider.adapters.process.masking import Mask

LINE_BYTES = 8192
"""What is kept of one line; the rest is counted."""
TOTAL_BYTES = 16 * 1024 * 1024
"""What is kept of one stream; later lines are counted."""
CHUNK_BYTES = 65536


def forward(descriptor: int, mask: Mask, log: Callable[[str], None]) -> None:
    """Read ``descriptor`` to its end and give each masked line to ``log``.

    Reading never stops before the end, whatever the child prints: a full pipe would stop the child.
    """
    kept = 0
    lines = dropped = 0
    for line in bounded_lines(descriptor, mask):
        kept += len(line)
        if kept <= TOTAL_BYTES:
            log(readable(line))
        else:
            lines, dropped = lines + 1, dropped + len(line)
    if lines:
        log(f"[{lines} more lines, {dropped} bytes, not shown: the limit is {TOTAL_BYTES} bytes]")


def bounded_lines(descriptor: int, mask: Mask) -> Iterator[bytes]:
    """Yield masked lines without their ends, each cut to `LINE_BYTES`.

    A line is masked before it is cut, and of a line that is cut before its end was seen, the last bytes that may be the
    beginning of a secret are not shown.
    """
    held, cut = b"", 0
    room = LINE_BYTES + mask.longest
    while chunk := os.read(descriptor, CHUNK_BYTES):
        for number, piece in enumerate(chunk.split(b"\n")):
            if number:
                yield _shown(held, cut, mask)
                held, cut = b"", 0
            taken = piece[: room - len(held)]
            held, cut = held + taken, cut + len(piece) - len(taken)
    if held:
        yield _shown(held, cut, mask)


def _shown(line: bytes, cut: int, mask: Mask) -> bytes:
    masked = mask.apply(line)
    if cut:
        masked = masked[: len(masked) - mask.longest]
    lost = cut + max(0, len(masked) - LINE_BYTES)
    return masked[:LINE_BYTES] + (b" [%d bytes more]" % lost if lost else b"")


def readable(line: bytes) -> str:
    """Return the line as text in which nothing can steer a terminal or forge another line."""
    text = line.rstrip(b"\r").decode(errors="replace")
    return "".join(letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in text)
