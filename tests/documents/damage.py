"""Ways to damage a document: its values, its bytes, and what no document may hold put in the place of a value."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Callable
from typing import Any

Path = tuple[Any, ...]
Damage = Callable[[bytes, list[Path], random.Random], bytes]
_HERE = "@@here@@"

STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    2**53,
    1.5,
    "",
    "x" * 5000,
    "é",
    "e\u0301",
    "\x00",
    [],
    {},
    [[]],
    {"a": 1},
    "../x",
]
"""Values of every kind that JSON has, few of which fit anywhere."""

HOSTILE: list[str] = [
    "[" * 24 + "]" * 24,
    "[" * 25 + "]" * 25,
    '{"a":' * 1_000 + "1" + "}" * 1_000,
    "[" * 50_000,
    "9" * 17,
    "9" * 5_000,
    "-" + "9" * 100_000,
    "1e999",
    "1" + "0" * 400 + ".5",
    "NaN",
    "-Infinity",
    '"\\ud800"',
    '"\\udfff\\ud800"',
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\ufeff"',
    '{"a":1,"a":1}',
    '{"a":{"b":1,"b":2}}',
    '{"\\u0061":1,"a":2}',
    '"' + "\\\\" * 10_000 + '"',
    "[" + "0," * 10_000 + "0]",
    "'a'",
    "01",
    "",
]
"""JSON text, or nearly: deep, huge, doubled, half a character, no character, no JSON."""


def leaves(value: Any, path: Path = ()) -> list[Path]:
    """Return every path in a value, the root's excepted."""
    keys = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[Path] = []
    for key, inner in keys:
        found.append((*path, key))
        found += leaves(inner, (*path, key))
    return found


def replaced(parent: Any, key: Any, dice: random.Random) -> None:
    """Put something strange in a value's place."""
    parent[key] = _strange(dice)


def removed(parent: Any, key: Any, dice: random.Random) -> None:
    """Take a value away."""
    del parent[key]


def added(parent: Any, key: Any, dice: random.Random) -> None:
    """Add a field or an element."""
    if isinstance(parent, dict):
        parent["unknown"] = _strange(dice)
    else:
        parent.insert(key, _strange(dice))


def doubled(parent: Any, key: Any, dice: random.Random) -> None:
    """Have a value twice, a field under another name."""
    if isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    else:
        parent[f"{key}_"] = parent[key]


def of_values(change: Callable[[Any, Any, random.Random], None]) -> Damage:
    """Return the damage that changes one or two places of the value so."""

    def damage(plain: bytes, paths: list[Path], dice: random.Random) -> bytes:
        value = json.loads(plain)
        for path in dice.sample(paths, dice.choice((1, 1, 1, 2))):
            with contextlib.suppress(LookupError, TypeError, AttributeError):  # an earlier one took the place away
                change(_parent(value, path), path[-1], dice)
        return json.dumps(value).encode()

    return damage


def of_bytes(plain: bytes, paths: list[Path], dice: random.Random) -> bytes:
    """Change, take out, put in or double some bytes."""
    data = bytearray(plain)
    for _ in range(dice.choice((1, 2, 5))):
        at = dice.randrange(len(data)) if data else 0
        match dice.randrange(4):
            case 0:
                data[at : at + 1] = bytes([dice.randrange(256)])
            case 1:
                del data[at : at + dice.choice((1, 3, 50))]
            case 2:
                data[at:at] = dice.choice((b'"', b"{", b"]", b",", b"\xff", b"\x00", b"0", b'"a":1,', b"\xef\xbb\xbf"))
            case _:
                data[at:at] = data[at : at + 40]
    return bytes(data)


def of_text(plain: bytes, paths: list[Path], dice: random.Random) -> bytes:
    """Put hostile text in a value's or a key's place, or before or after the whole."""
    hostile = dice.choice(HOSTILE).encode()
    match dice.randrange(8):
        case 0:
            return dice.choice((b"\xef\xbb\xbf" + plain, plain + hostile, hostile + plain, plain[:-1], plain + b"\x00"))
        case 1:
            return plain.replace(b"{", b'{"schema":' + (hostile or b"1") + b",", 1)
        case _:
            value, path = json.loads(plain), dice.choice(paths)
            _parent(value, path)[path[-1]] = _HERE
            return json.dumps(value).encode().replace(f'"{_HERE}"'.encode(), hostile)


def huge(plain: bytes, paths: list[Path], dice: random.Random) -> list[bytes]:
    """Return texts of 10 MB and more: a value that is one, a key that is one, and as much of brackets and escapes."""
    value, path = json.loads(plain), dice.choice(paths)
    _parent(value, path)[path[-1]] = _HERE
    text, here = json.dumps(value).encode(), f'"{_HERE}"'.encode()
    ten = 10 * 1024**2
    return [
        text.replace(here, b'"' + b"x" * ten + b'"'),
        text.replace(here, b'"' + b"\\ud800" * (ten // 6) + b'"'),
        text.replace(here, b'{"' + b"k" * ten + b'":1}'),
        text.replace(here, b"[" * ten),
        text.replace(here, b"[" + b"[]," * (ten // 3) + b"0]"),
        text.replace(here, b"9" * ten),
        text.replace(here, b'"' + b"x" * 2 * ten + b'"'),
    ]


def _strange(dice: random.Random) -> Any:
    return copy.deepcopy(dice.choice(STRANGE))


def _parent(value: Any, path: Path) -> Any:
    for step in path[:-1]:
        value = value[step]
    return value
