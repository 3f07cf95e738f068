"""Lists of files: what a document says that a directory holds, against what it does hold, to the byte."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from dpone_provider.application.refusing import accepted
from dpone_provider.documents.model import Document, FileEntry
from dpone_provider.documents.reading import read
from dpone_provider.domain.identity import digest_of
from dpone_provider.domain.outcomes import refuse, unwind

Files = Mapping[str, bytes]
"""A directory in memory: content by relative path."""
AnyDocument = TypeVar("AnyDocument", bound=Document)

_NEXT: Final = "copy the whole directory again from where it was built, or build it again"


def checksums(files: Files) -> bytes:
    """Return ``files.sha256`` for ``files``: one line ``<64 hex>  <size>  <path>`` each, in order of path."""
    lines = (
        f"{digest_of(data).removeprefix('sha256:')}  {len(data)}  {path}\n" for path, data in sorted(files.items())
    )
    return "".join(lines).encode()


def entries_of(files: Files) -> tuple[FileEntry, ...]:
    """Return the entries that describe ``files``, in order of path."""
    return tuple(FileEntry.of(path, data) for path, data in sorted(files.items()))


def require_listed(files: Files, listed: Iterable[FileEntry], where: str) -> None:
    """Require that ``files`` are exactly those listed, with their sizes and digests.

    Raises:
        DponeError: Refused ``file_missing``, ``file_unlisted``, ``file_size_differs`` or ``file_changed``.
    """
    expected = {entry.path: entry for entry in listed}
    for path in sorted(expected.keys() - files.keys()):
        unwind(refuse("file_missing", f"{where}: {path}", found="nothing", allowed="the file", next_command=_NEXT))
    for path in sorted(files.keys() - expected.keys()):
        unwind(
            refuse(
                "file_unlisted",
                f"{where}: {path}",
                found="a file that nothing lists",
                allowed="exactly the files that the deployment lists",
                next_command=_NEXT,
            )
        )
    for path, entry in sorted(expected.items()):
        _require_same(f"{where}: {path}", files[path], entry)


def document_in(model: type[AnyDocument], files: Files, path: str, where: str) -> AnyDocument:
    """Return the document at ``path``, whose bytes must be its canonical form.

    Raises:
        DponeError: Refused ``file_missing``, ``not_canonical`` or whatever reading it gives.
    """
    subject = f"{where}: {path}"
    data = files.get(path)
    if data is None:
        unwind(refuse("file_missing", subject, found="nothing", allowed="the file", next_command=_NEXT))
    document = accepted(read(model, data, subject))
    if document.canonical_bytes() != data:
        unwind(
            refuse(
                "not_canonical",
                subject,
                found="another spelling of the document",
                allowed="its canonical form (sorted keys, no blanks, every optional field)",
                next_command=_NEXT,
            )
        )
    return document


def _require_same(subject: str, data: bytes, entry: FileEntry) -> None:
    if len(data) != entry.size:
        found, allowed = f"{len(data)} bytes", f"{entry.size} bytes"
        unwind(refuse("file_size_differs", subject, found=found, allowed=allowed, next_command=_NEXT))
    if digest_of(data) != entry.digest:
        unwind(refuse("file_changed", subject, found=digest_of(data), allowed=entry.digest, next_command=_NEXT))
