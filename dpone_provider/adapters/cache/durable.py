"""Writing so that a crash, or a lost power supply, leaves the old or the new: fsync of files and of directories."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

LEFTOVER = ".dpone-"
"""What names of files and directories under way begin with; whoever holds the lock may remove them."""


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(directory: Path) -> None:
    """Make a directory and its missing parents, durably."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    sync_directory(directory.parent)


def write_file(file: Path, data: bytes, mode: int) -> None:
    """Write a new file and its content durably; its name becomes durable with the directory."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(data)
        opened.flush()
        os.fsync(descriptor)


def replace_file(file: Path, data: bytes) -> None:
    """Replace a file atomically and durably."""
    under_way = file.with_name(f"{LEFTOVER}{os.getpid()}-{file.name}")
    under_way.unlink(missing_ok=True)
    write_file(under_way, data, 0o644)
    under_way.replace(file)
    sync_directory(file.parent)


def append_line(file: Path, line: bytes) -> None:
    """Append a line durably. A last line that a crash cut off is ended first, so that it spoils no other."""
    existed = file.exists()
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+b", buffering=0) as opened:
        size = opened.seek(0, os.SEEK_END)
        cut_off = False
        if size:
            opened.seek(size - 1)
            cut_off = opened.read(1) != b"\n"
        opened.write((b"\n" if cut_off else b"") + line + b"\n")
        os.fsync(descriptor)
    if not existed:
        sync_directory(file.parent)


def remove_tree(directory: Path) -> None:
    """Remove a directory that may be read-only."""
    for parent, names, _ in os.walk(directory):
        os.chmod(parent, 0o700)
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(directory)
