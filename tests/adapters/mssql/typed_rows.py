"""Rows of a result in SQL Server's own types, as [MS-TDS] has them on the wire: what a source's rows look like.

Sections 2.2.7.4 (COLMETADATA), 2.2.7.19 (ROW), 2.2.5.4 and 2.2.5.5 (types and how their values are written).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

COLLATION = bytes.fromhex("0904d00034")
"""Latin1_General_CI_AS: code page 1252."""
_SIZED = re.compile(r"(n?varchar|n?char|varbinary)\((\d+|max)\)")
_INTEGERS = {"tinyint": 1, "smallint": 2, "int": 4, "bigint": 8}
_FLOATS = {"real": ("f", 4), "float": ("d", 8)}
_TOKENS = {"varchar": 0xA7, "char": 0xAF, "nvarchar": 0xE7, "nchar": 0xEF, "varbinary": 0xA5}


@dataclass(frozen=True)
class Typed:
    """A column of a result: its name, and its type as people write it."""

    name: str
    type: str

    def declared(self) -> bytes:
        """Return its part of COLMETADATA: nullable."""
        label = self.name.encode("utf-16-le")
        return struct.pack("<IH", 0, 9) + self._type_info() + bytes([len(label) // 2]) + label

    def written(self, value: object) -> bytes:
        """Return a value's part of ROW."""
        if self.type in _INTEGERS or self.type == "bit":
            size = _INTEGERS.get(self.type, 1)
            return _short(None if value is None else int(value).to_bytes(size, "little", signed=size > 1))  # type: ignore[call-overload]
        if self.type in _FLOATS:
            return _short(None if value is None else struct.pack(f"<{_FLOATS[self.type][0]}", value))
        kind, length = self._sized()
        data = None if value is None else _data(kind, value)
        if length == "max":
            return _in_chunks(data)
        return b"\xff\xff" if data is None else struct.pack("<H", len(data)) + data

    def _sized(self) -> tuple[str, str]:
        found = _SIZED.fullmatch(self.type)
        assert found is not None, f"no result of the tests' server has a column of {self.type}"
        return found[1], found[2]

    def _type_info(self) -> bytes:
        if self.type == "bit":
            return b"\x68\x01"
        if self.type in _INTEGERS:
            return bytes([0x26, _INTEGERS[self.type]])
        if self.type in _FLOATS:
            return bytes([0x6D, _FLOATS[self.type][1]])
        kind, length = self._sized()
        size = 0xFFFF if length == "max" else int(length) * (2 if kind.startswith("n") else 1)
        return bytes([_TOKENS[kind]]) + struct.pack("<H", size) + (b"" if kind == "varbinary" else COLLATION)


def metadata(columns: Sequence[Typed]) -> bytes:
    """Return COLMETADATA."""
    return b"\x81" + struct.pack("<H", len(columns)) + b"".join(one.declared() for one in columns)


def rows(columns: Sequence[Typed], values: Iterable[Sequence[object]]) -> bytes:
    """Return a ROW for each."""
    return b"".join(
        b"\xd1" + b"".join(column.written(value) for column, value in zip(columns, row, strict=True)) for row in values
    )


def done(count: int) -> bytes:
    """Return the end of a result of a SELECT, after which another token follows."""
    return b"\xfd" + struct.pack("<HHQ", 0x0011, 0xC1, count)


def _short(data: bytes | None) -> bytes:
    return b"\x00" if data is None else bytes([len(data)]) + data


def _in_chunks(data: bytes | None) -> bytes:
    if data is None:
        return b"\xff" * 8
    chunk = struct.pack("<I", len(data)) + data if data else b""
    return struct.pack("<Q", len(data)) + chunk + b"\x00" * 4


def _data(kind: str, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-16-le" if kind.startswith("n") else "cp1252", "surrogatepass")
