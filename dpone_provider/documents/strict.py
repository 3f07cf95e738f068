"""Reading JSON strictly: one meaning per text, bounded in bytes, depth and number of values, errors with a JSON path.

``parse`` is for documents of ours. ``parse_foreign`` is for JSON that another program wrote and that we only look
things up in (dbt's manifest): it may hold floats, big integers and any Unicode, but no duplicate keys either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dpone_provider.documents.canonical import MAX_INTEGER, Path, defects, json_path
from dpone_provider.domain.outcomes import Refused, refuse

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

RESTORE: Final = "restore the file from where it was built, or build it again"
_LONGEST: Final = len(str(-MAX_INTEGER))
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
    value = _decode(data, where, bounds, _Strict())
    if isinstance(value, Refused) or (data.isascii() and b"\\u" not in data):
        return value  # numbers were looked at one by one; ASCII text has one form
    for defect in defects(value):
        return _refusal("not_canonical_value", where, defect.path, defect.found, defect.allowed)
    return value


def parse_foreign(data: bytes, where: str, bounds: Bounds = FOREIGN_BOUNDS) -> Json | Refused:
    """Return the value of ``data`` written by another program."""
    return _decode(data, where, bounds, _Foreign())


class _Foreign:
    """What the decoder asks for each object and number; remembers whether it met anything that has no value."""

    met = False

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Mark:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return self.mark("duplicate_key", f"the key {twice[:60]!a} twice", "each key once")

    def number(self, text: str) -> float | _Mark:
        return float(text)

    def integer(self, text: str) -> int | _Mark:
        return int(text)

    def constant(self, text: str) -> _Mark:
        return self.mark("not_canonical_value", text, "an integer; JSON has no such number")

    def mark(self, reason: str, found: str, allowed: str) -> _Mark:
        self.met = True
        return _Mark(reason, found, allowed)


class _Strict(_Foreign):
    """The same for documents of ours: no floats, no big integers."""

    def number(self, text: str) -> _Mark:
        return self.mark("not_canonical_value", f"the number {text[:40]}", "an integer; write fractions as text")

    def integer(self, text: str) -> int | _Mark:
        # Longer ones are out of bounds whatever they are, and cost quadratic time to convert.
        if len(text) <= _LONGEST and abs(value := int(text)) <= MAX_INTEGER:
            return value
        return self.mark("not_canonical_value", "an integer beyond 53 bits", "text for bigger ones")


def _decode(data: bytes, where: str, bounds: Bounds, asked: _Foreign) -> Json | Refused:
    text = _text(data, where, bounds)
    if isinstance(text, Refused):
        return text
    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=asked.object,
            parse_float=asked.number,
            parse_int=asked.integer,
            parse_constant=asked.constant,
        )
    except json.JSONDecodeError as error:
        place = f"{error.msg} at line {error.lineno}, column {error.colno}"
        return _refusal("not_json", where, (), place, "one JSON value and nothing after it")
    except ValueError as error:  # an integer of thousands of digits, from another program
        return _refusal("not_json", where, (), str(error)[:120], "numbers of ordinary length")
    if not asked.met and len(data) <= 2 * bounds.max_values:  # a value takes two bytes, with what parts it
        return value
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
    if text.count("[") + text.count("{") <= bounds.max_depth:
        return text
    return _too_nested(text, where, bounds) or text


def _too_nested(text: str, where: str, bounds: Bounds) -> Refused | None:
    """Refuse brackets that are too deep or too many, as soon as that is known: each costs memory when it is decoded."""
    depth = opened = 0
    for token in _BRACKETS.finditer(text):
        bracket = token[0]
        if bracket in ("[", "{"):
            depth += 1
            opened += 1
            if depth > bounds.max_depth:
                return _refusal("document_too_deep", where, (), "more levels", f"at most {bounds.max_depth}")
            if opened > bounds.max_values:
                return _refusal("too_many_values", where, (), f"more than {bounds.max_values} values", "fewer")
        elif bracket in ("]", "}"):
            depth -= 1
    return None


def _values(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _values(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _values(inner, (*path, index))


def _refusal(reason: str, where: str, path: Path, found: str, allowed: str) -> Refused:
    return refuse(reason, f"{where} at {json_path(path)}", found=found, allowed=allowed, next_command=RESTORE)
