"""The pointer of each environment: read without a lock, moved by compare-and-swap, every move journaled."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from dpone_provider.adapters.cache.durable import append_line, replace_file
from dpone_provider.adapters.cache.layout import Layout
from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.documents.reading import read
from dpone_provider.domain.outcomes import Refused, refuse

_FOLLOW: Final = (
    "run cache-sync of the deployment that the ledger shows as ACTIVE (`dpone status`); it mends the pointer"
)
_JOURNAL_TAIL: Final = 1024 * 1024


def read_pointer(layout: Layout, environment: str) -> CurrentPointerV1 | Refused | None:
    """Return the pointer, or None when there is none."""
    file = layout.pointer(environment)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        found = error.strerror or type(error).__name__
        return refuse("pointer_unreadable", str(file), found=found, allowed="a readable file", next_command=_FOLLOW)
    pointer = read(CurrentPointerV1, data, str(file), _FOLLOW)
    if isinstance(pointer, Refused):
        return pointer
    if pointer.environment != environment or pointer.canonical_bytes() != data:
        found, allowed = f"a pointer of environment {pointer.environment}", f"the canonical one of {environment}"
        return refuse("pointer_unreadable", str(file), found=found, allowed=allowed, next_command=_FOLLOW)
    return pointer


def swap(
    layout: Layout, standing: CurrentPointerV1 | None, new: CurrentPointerV1, reached: Callable[[str], None]
) -> Refused | None:
    """Move the pointer under the caller's lock; see ``DeploymentCache.swap_pointer``."""
    found = read_pointer(layout, new.environment)
    if isinstance(found, Refused):
        # A broken pointer is no pointer: what the ledger holds decides, and this is how it is mended.
        found = None
    if found == new:
        _journal_what_is_missing(layout, new)
        return None
    refused = _moved(layout, standing, found, new.environment) or _not_higher(layout, found, new)
    if refused is not None:
        return refused
    if found is not None:
        _journal_what_is_missing(layout, found)
    reached("pointer: before replacing")
    replace_file(layout.pointer(new.environment), new.canonical_bytes())
    reached("pointer: replaced, not yet journaled")
    append_line(layout.journal, _line(new, found))
    reached("pointer: journaled")
    return None


def _moved(
    layout: Layout, standing: CurrentPointerV1 | None, found: CurrentPointerV1 | None, environment: str
) -> Refused | None:
    if found == standing:
        return None
    return refuse(
        "pointer_moved",
        str(layout.pointer(environment)),
        found=_named(found),
        allowed=f"{_named(standing)}, as it was read before",
        next_command="run the same command again; it goes on from what stands now",
    )


def _not_higher(layout: Layout, found: CurrentPointerV1 | None, new: CurrentPointerV1) -> Refused | None:
    if found is None or new.generation > found.generation:
        return None
    return refuse(
        "generation_not_higher",
        str(layout.pointer(new.environment)),
        found=f"generation {new.generation} after {_named(found)}",
        allowed=f"a generation above {found.generation}",
        next_command="dpone status; then promote what should be current",
    )


def _named(pointer: CurrentPointerV1 | None) -> str:
    return f"generation {pointer.generation} of occurrence {pointer.occurrence_id}" if pointer else "no pointer"


def _line(new: CurrentPointerV1, old: CurrentPointerV1 | None) -> bytes:
    return canonical_bytes(
        {"from": old.digest if old else None, "to": new.digest, "pointer": new.model_dump(mode="json")}
    )


def _journal_what_is_missing(layout: Layout, standing: CurrentPointerV1) -> None:
    """Add the line of a pointer whose own writer crashed between replacing and journaling."""
    last = None
    for line in _journal_lines(layout):
        pointer = line.get("pointer")
        if isinstance(pointer, dict) and pointer.get("environment") == standing.environment:
            last = line.get("to")
    if last != standing.digest:
        entry = {"from": last if isinstance(last, str) else None, "to": standing.digest}
        append_line(
            layout.journal,
            canonical_bytes({**entry, "pointer": standing.model_dump(mode="json"), "journaled_late": True}),
        )


def _journal_lines(layout: Layout) -> list[dict[str, object]]:
    try:
        with layout.journal.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(max(0, size - _JOURNAL_TAIL))
            data = opened.read()
    except FileNotFoundError:
        return []
    lines: list[dict[str, object]] = []
    for raw in data.splitlines():
        try:
            line = json.loads(raw)
        except ValueError:
            continue  # a line that a crash or the tail's beginning cut off
        if isinstance(line, dict):
            lines.append(line)
    return lines
