"""Archives: a tar reader that believes nothing, and a bundle writer whose bytes depend on the files alone."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, Never, Protocol

from dpone_provider.documents.directory import DEPLOYMENT_BOUNDS, TreeBounds
from dpone_provider.documents.regular_file import open_regular
from dpone_provider.documents.scalars import unsafe_path
from dpone_provider.domain.outcomes import DponeError, Refused, refuse

_NEXT: Final = "make the archive again from the directory that `dpone build` made"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_MAX_RATIO: Final = 200
"""Documents and SQL compress 5 to 20 times; more than this is made to hurt."""
_RATIO_FLOOR: Final = 4 * 1024**2
_STORED_BLOCK: Final = 65_535
_PADDING: Final = 1024**2


def read_archive(file: Path, bounds: TreeBounds = DEPLOYMENT_BOUNDS) -> dict[str, bytes] | Refused:
    """Return every file in a tar (plain or gzipped) by path, in order of path. Nothing is unpacked to disk.

    Refused: links, devices, sparse files, absolute paths, ``..``, names that ``unsafe_path`` refuses, a path twice,
    paths that differ only by case, more than ``bounds`` or a compression ratio beyond 200, a truncated or broken tar.
    """
    try:
        with open_regular(file) as raw:
            return _read(file, raw, bounds)
    except DponeError as error:
        if isinstance(error.failure, Refused):
            return error.failure
        raise
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        found = f"{type(error).__name__}: {str(error)[:100]}"
        return refuse("archive_malformed", str(file), found=found, allowed="a whole tar", next_command=_NEXT)
    except OSError as error:
        found = error.strerror or str(error)[:100]
        return refuse(
            "path_unreadable", str(file), found=found, allowed="a readable tar", next_command="check the path"
        )


def bundle(files: Mapping[str, bytes]) -> bytes:
    """Return ``files`` as a gzipped tar: order, times, owners and modes fixed.

    The gzip layer stores without compressing, so that the bytes do not depend on the version of a compressor either.
    """
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size, member.mode, member.mtime = len(data), 0o644, 0
            tar.addfile(member, io.BytesIO(data))
    return _stored_gzip(plain.getvalue())


def _stored_gzip(data: bytes) -> bytes:
    """Return ``data`` in the gzip format (RFC 1952) as stored blocks (RFC 1951, 3.2.4)."""
    parts = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"]
    starts = range(0, len(data), _STORED_BLOCK) or range(1)
    for start in starts:
        block = data[start : start + _STORED_BLOCK]
        is_last = start + _STORED_BLOCK >= len(data)
        parts += [struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block]
    parts.append(struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF))
    return b"".join(parts)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Bounded(io.RawIOBase):
    """The decompressed stream, ending with a refusal where it grows beyond what is allowed."""

    def __init__(self, inner: _Readable, file: Path, allowed: int) -> None:
        self._inner = inner
        self._file = file
        self._allowed = allowed

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._inner.read(min(size, self._allowed + 1) if size >= 0 else self._allowed + 1)
        self._allowed -= len(data)
        if self._allowed < 0:
            _refuse("archive_too_large", str(self._file), "more content than allowed", "less, and no bomb")
        return data


def _read(file: Path, raw: IO[bytes], bounds: TreeBounds) -> dict[str, bytes]:
    compressed = file.stat().st_size
    # Headers and padding of each member, and the padding of the whole.
    overhead = bounds.max_bytes + bounds.max_files * 4 * tarfile.BLOCKSIZE + _PADDING
    if raw.read(2) == _GZIP_MAGIC:
        raw.seek(0)
        allowed = min(overhead, max(_RATIO_FLOOR, compressed * _MAX_RATIO))
        stream = _Bounded(gzip.GzipFile(fileobj=raw), file, allowed)
    else:
        raw.seek(0)
        stream = _Bounded(raw, file, overhead)
    found: dict[str, bytes] = {}
    folded: dict[str, str] = {}
    size = count = 0
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            count += 1
            if count > bounds.max_files:
                _refuse("too_many_files", str(file), f"more than {bounds.max_files} members", "fewer")
            path = _path_of(file, member)
            if path is None:
                continue
            size += member.size
            if member.size > bounds.max_file_bytes or size > bounds.max_bytes:
                allowed_text = f"{bounds.max_file_bytes} bytes a file, {bounds.max_bytes} in all"
                _refuse("archive_too_large", f"{file}: {path}", f"{member.size} bytes", allowed_text)
            other = folded.setdefault(path.casefold(), path)
            if path in found or other != path:
                _refuse("archive_path_twice", f"{file}: {path}", f"{other} before it", "each path once, whatever case")
            opened = tar.extractfile(member)
            found[path] = opened.read() if opened is not None else b""
    if not found:
        _refuse("archive_malformed", str(file), "no file in it", "a deployment")
    return dict(sorted(found.items()))


def _path_of(file: Path, member: tarfile.TarInfo) -> str | None:
    """Return the path of a regular file, None for a directory."""
    name = member.name.removeprefix("./") if member.name not in (".", "./") else ""
    if member.isdir() and name == "":
        return None
    reason = unsafe_path(name)
    if reason is not None:
        _refuse("unsafe_path", f"{file}: {member.name!a}", reason, "relative paths that are safe on every system")
    if member.isdir():
        return None
    if not member.isreg() or member.issparse():
        kind = "a link" if member.issym() or member.islnk() else f"a member of type {member.type!r}"
        _refuse("not_a_regular_file", f"{file}: {name}", kind, "regular files and directories")
    return name


def _refuse(reason: str, subject: str, found: str, allowed: str) -> Never:
    raise DponeError(refuse(reason, subject, found=found, allowed=allowed, next_command=_NEXT))
