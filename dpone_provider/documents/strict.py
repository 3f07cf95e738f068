"""Reading JSON strictly: one meaning per text, bounded in bytes, depth and number of values, errors with a JSON path.

``parse`` is for documents of ours. ``parse_foreign`` is for JSON that another program wrote and that we only look
things up in (dbt's manifest): it may hold floats, big integers and any Unicode, but no duplicate keys either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dpone_provider.documents.canonical import Path, defects, json_path
from dpone_provider.domain.outcomes import Refused, refuse

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

RESTORE: Final = "restore the file from where it was built, or build it again"
_BOM: Final = b"\xef\xbb\xbf"
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one text may cost: bytes, nesting, and values in all (keys not counted)."""

    max_bytes: int
    max_depth: int
    max_values: int


DOCUMENT_BOUNDS: Final = Bounds(max_bytes=16 * 1024**2, max_depth=24, max_values=1_000_000)
FOREIGN_BOUNDS: Final = Bounds(max_bytes=256 * 1024**2, max_depth=64, max_values=10_000_000)


@dataclass(frozen=True, slots=True)
class _Mark:
    """Stands where the decoder met something that has no value, until its path is known."""

    reason: str
    found: str
    allowed: str


def parse(data: bytes, where: str, bounds: Bounds = DOCUMENT_BOUNDS) -> Json | Refused:
    """Return the value of ``data``, every part of which has a canonical form. ``where`` names the file in messages."""
    value = _decode(data, where, bounds, _refused_float, _bounded_integer)
    if isinstance(value, Refused):
        return value
    for defect in defects(value):
        return _refusal("not_canonical_value", where, defect.path, defect.found, defect.allowed)
    return value


def parse_foreign(data: bytes, where: str, bounds: Bounds = FOREIGN_BOUNDS) -> Json | Refused:
    """Return the value of ``data`` written by another program."""
    return _decode(data, where, bounds, float, int)


def _decode(
    data: bytes, where: str, bounds: Bounds, to_float: Callable[[str], Any], to_integer: Callable[[str], Any]
) -> Json | Refused:
    text = _text(data, where, bounds)
    if isinstance(text, Refused):
        return text
    try:
        value: Json = json.loads(
            text, object_pairs_hook=_object, parse_float=to_float, parse_int=to_integer, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        place = f"{error.msg} at line {error.lineno}, column {error.colno}"
        return _refusal("not_json", where, (), place, "one JSON value and nothing after it")
    except ValueError as error:  # an integer of thousands of digits, from another program
        return _refusal("not_json", where, (), str(error)[:120], "numbers of ordinary length")
    for count, (path, inner) in enumerate(_values(value, ())):
        if count >= bounds.max_values:
            return _refusal("too_many_values", where, path, f"more than {bounds.max_values} values", "fewer")
        if isinstance(inner, _Mark):
            return _refusal(inner.reason, where, path, inner.found, inner.allowed)
    return value


def _text(data: bytes, where: str, bounds: Bounds) -> str | Refused:
    if len(data) > bounds.max_bytes:
        return _refusal("document_too_large", where, (), f"{len(data)} bytes", f"at most {bounds.max_bytes}")
    if data.startswith(_BOM):
        return _refusal("byte_order_mark", where, (), "a byte order mark", "UTF-8 without one")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return _refusal("not_utf8", where, (), f"byte {data[error.start]:#04x} at offset {error.start}", "UTF-8")
    deepest = depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket, 0)
        deepest = max(deepest, depth)
    if deepest > bounds.max_depth:
        return _refusal("document_too_deep", where, (), f"{deepest} levels", f"at most {bounds.max_depth}")
    return text


def _values(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _values(inner, (*path, index))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Mark:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            break
        seen.add(key)
    return _Mark("duplicate_key", f"the key {key[:60]!a} twice", "each key once")


def _refused_float(text: str) -> _Mark:
    return _Mark("not_canonical_value", f"the number {text[:40]}", "an integer; write fractions as text")


def _bounded_integer(text: str) -> int | _Mark:
    # Longer ones are out of bounds whatever they are, and cost quadratic time to convert.
    return int(text) if len(text) <= 20 else _Mark("not_canonical_value", "an integer beyond 53 bits", "text")


def _constant(text: str) -> _Mark:
    return _Mark("not_canonical_value", text, "an integer; JSON has no such number")


def _refusal(reason: str, where: str, path: Path, found: str, allowed: str) -> Refused:
    return refuse(reason, f"{where} at {json_path(path)}", found=found, allowed=allowed, next_command=RESTORE)
