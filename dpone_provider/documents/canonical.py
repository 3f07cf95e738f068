"""The one canonical JSON form.

UTF-8, keys sorted by code point (the same order as their UTF-8 bytes), no insignificant space, non-ASCII characters as
themselves, control characters escaped as Python's ``json`` does. What has more than one spelling, or is read
differently by different readers, does not exist: no floats, no integers beyond ±(2^53 − 1) (RFC 7493), no strings
outside Unicode normal form C, no lone surrogates. Bigger or fractional numbers are written as text.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dpone_provider.domain.identity import Digest, digest_of

MAX_INTEGER: Final = 2**53 - 1
"""Largest magnitude that every JSON reader keeps exact (RFC 7493, 2.2)."""

Path = tuple[str | int, ...]
"""Keys and indexes from the root to a value."""

_JSON_PATH_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@dataclass(frozen=True, slots=True)
class Defect:
    """One reason why a value has no canonical form: where, what was found, what is allowed."""

    path: Path
    found: str
    allowed: str


class NotCanonical(ValueError):
    """A value without canonical form was to be written: a fault of the program, as input is checked on reading."""

    def __init__(self, defect: Defect) -> None:
        """Carry the first ``defect``."""
        super().__init__(f"at {json_path(defect.path)}: found {defect.found}; allowed: {defect.allowed}")
        self.defect = defect


LONGEST_KEY: Final = 80
"""Characters of a key in a message: somebody else may have written it, ten million of them."""


def json_path(path: Path) -> str:
    """Return ``$.a[0]["b c"]`` for a path; of a longer key only its beginning, as a person reads it."""
    text = "$"
    for whole in path:
        step = f"{whole[:LONGEST_KEY]}…" if isinstance(whole, str) and len(whole) > LONGEST_KEY else whole
        plain = isinstance(step, str) and step != "" and set(step) <= _JSON_PATH_PLAIN
        text += f".{step}" if plain else f"[{json.dumps(step)}]"
    return text


def defects(value: object, path: Path = ()) -> Iterator[Defect]:
    """Yield every reason why ``value`` has no canonical form, in document order."""
    match value:
        case None | bool():
            return
        case int():
            yield from _integer_defects(value, path)
        case str():
            yield from _string_defects(value, path)
        case Mapping():
            for key, inner in value.items():
                yield from _key_defects(key, path)
                yield from defects(inner, (*path, str(key)))
        case Sequence() if not isinstance(value, (bytes, bytearray)):
            for index, inner in enumerate(value):
                yield from defects(inner, (*path, index))
        case _:
            yield Defect(path, f"a {type(value).__name__}", "an object, array, string, integer, boolean or null")


def canonical_bytes(value: object) -> bytes:
    """Return the canonical form of ``value``: mappings with text keys, sequences, strings, integers, booleans, None.

    Raises:
        NotCanonical: something in it has no canonical form.
    """
    for defect in defects(value):
        raise NotCanonical(defect)
    return _written(value).encode()


def canonical_bytes_of_model(value: object) -> bytes:
    """Return the canonical form of what a model gave: it holds no floats and no big integers by its own types.

    Raises:
        NotCanonical: a text in it is not in normal form C.
    """
    text = _written(value)
    return text.encode() if text.isascii() else canonical_bytes(value)


def canonical_digest(value: object) -> Digest:
    """Return the digest over the canonical form of ``value``."""
    return digest_of(canonical_bytes(value))


_WRITER: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=dict
)


def _written(value: object) -> str:
    return _WRITER.encode(value)


def _integer_defects(value: int, path: Path) -> Iterator[Defect]:
    if abs(value) > MAX_INTEGER:
        yield Defect(path, "an integer beyond 53 bits", f"-{MAX_INTEGER} to {MAX_INTEGER}; write bigger ones as text")


def _string_defects(value: str, path: Path) -> Iterator[Defect]:
    if not value.isascii():
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield Defect(path, f"a lone surrogate in {value[:60]!a}", "Unicode text")
        elif not unicodedata.is_normalized("NFC", value):
            yield Defect(path, ascii(value[:60]), f"its NFC form {unicodedata.normalize('NFC', value[:60])!a}")


def _key_defects(key: object, path: Path) -> Iterator[Defect]:
    if isinstance(key, str):
        yield from _string_defects(key, (*path, key))
    else:
        yield Defect(path, f"the key {key!r}", "text as key")
