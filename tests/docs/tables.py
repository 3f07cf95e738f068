"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a cell may hold any text of one paragraph."""
    lines = [_row(head), _row(["---"] * len(head))]
    return "\n".join([*lines, *(_row(row) for row in rows)])


def code(text: str) -> str:
    """Return text as code, nothing for nothing."""
    return f"`{text}`" if text else ""


def _row(cells: Sequence[str]) -> str:
    escaped = (" ".join(cell.split()).replace("|", r"\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
