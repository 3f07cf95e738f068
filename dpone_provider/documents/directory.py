"""Reading a directory of documents into memory: regular files only, names safe anywhere, bounded in every way."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Never

from dpone_provider.documents.scalars import unsafe_path
from dpone_provider.domain.outcomes import DponeError, Refused, refuse

_NEXT: Final = "remove what does not belong there, or copy the directory again from where it was made"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeBounds:
    """What one directory or archive may hold."""

    max_files: int
    max_file_bytes: int
    max_bytes: int


DEPLOYMENT_BOUNDS: Final = TreeBounds(max_files=100_000, max_file_bytes=256 * 1024**2, max_bytes=1024**3)


def nothing(path: str) -> bool:
    """Leave nothing out."""
    return False


def read_directory(
    root: Path, bounds: TreeBounds = DEPLOYMENT_BOUNDS, left_out: Callable[[str], bool] = nothing
) -> dict[str, bytes] | Refused:
    """Return every file under ``root`` by relative path, in order of path.

    What ``left_out`` says of a relative path holds for what is beneath it, too. Refused: a link, a device, a socket, a
    name that ``unsafe_path`` refuses, more than ``bounds`` allow, or what the system does not let us read.
    """
    found: dict[str, bytes] = {}
    size = 0
    try:
        for path in _files(root, "", left_out):
            if len(found) >= bounds.max_files:
                _refuse("too_many_files", f"{root}", f"more than {bounds.max_files} files", "fewer")
            data = _content(root / path, min(bounds.max_file_bytes, bounds.max_bytes - size))
            size += len(data)
            found[path] = data
    except DponeError as error:
        if isinstance(error.failure, Refused):
            return error.failure
        raise
    except OSError as error:
        return refuse(
            "path_unreadable",
            f"{error.filename or root}",
            found=error.strerror or type(error).__name__,
            allowed="a directory of readable files",
            next_command="check that it exists and who may read it",
        )
    return dict(sorted(found.items()))


def _files(root: Path, below: str, left_out: Callable[[str], bool]) -> Iterator[str]:
    """Yield the relative path of every regular file; directories are walked in order of name."""
    with os.scandir(root / below) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        path = f"{below}/{entry.name}" if below else entry.name
        if left_out(path):
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        reason = unsafe_path(path)
        if reason is not None:
            _refuse("unsafe_path", f"{root}: {path!a}", reason, "a relative path that is safe on every system")
        if stat.S_ISDIR(mode):
            yield from _files(root, path, left_out)
        elif stat.S_ISREG(mode):
            yield path
        else:
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "a device, pipe or socket"
            _refuse("not_a_regular_file", f"{root}: {path}", kind, "regular files and directories")


def _content(file: Path, allowed: int) -> bytes:
    # The entry may have been replaced since it was listed: it is opened without following, and looked at again.
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            _refuse("not_a_regular_file", f"{file}", "a device, pipe or socket", "regular files and directories")
        data = opened.read(allowed + 1)
    if len(data) > allowed:
        _refuse("file_too_large", f"{file}", f"more than {allowed} bytes", "less, here and in all")
    return data


def _refuse(reason: str, subject: str, found: str, allowed: str) -> Never:
    raise DponeError(refuse(reason, subject, found=found, allowed=allowed, next_command=_NEXT))
