"""Reading a file that only its owner may read."""

from __future__ import annotations

import os
import stat

MAX_BYTES = 8192


class PrivateFileProblem(Exception):
    """Why a file cannot be used as a secret; the text holds nothing of its content."""


def read_private_file(path: str) -> str:
    """Return the file's text without the line end at its end.

    The checks are made on the open file, so that it cannot be exchanged between check and reading. Symbolic links are
    followed: mounted secrets are links in Kubernetes.

    Raises:
        PrivateFileProblem: it cannot be read, is not a regular file, belongs to somebody else, others may read or
            write it, is too large, empty or not UTF-8.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise PrivateFileProblem(f"a file that cannot be opened ({error.strerror})") from None
    try:
        _require_private(os.fstat(descriptor))
        data = os.read(descriptor, MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise PrivateFileProblem(f"a file of more than {MAX_BYTES} bytes")
    return _text(data)


def _require_private(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise PrivateFileProblem("something that is not a regular file")
    if found.st_uid not in (os.geteuid(), 0):
        raise PrivateFileProblem(f"a file owned by uid {found.st_uid}")
    if found.st_mode & 0o077:
        raise PrivateFileProblem(f"mode {stat.S_IMODE(found.st_mode):04o}: others than the owner have rights on it")


def _text(data: bytes) -> str:
    try:
        text = data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise PrivateFileProblem("a file that is not UTF-8") from None
    if not text:
        raise PrivateFileProblem("an empty file")
    return text
