"""Unpacking a project's bundle. Its digest was verified, and still nothing of it is written outside its directory."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path, PurePosixPath

from dpone_provider.domain.outcomes import Refused, refuse

MAX_FILES = 20_000
MAX_BYTES = 512 * 1024 * 1024
PROJECT_FILE = "dbt_project.yml"


class _Unfit(Exception):
    """What is wrong with an archive."""


def unpack(bundle: Path, directory: Path) -> Refused | None:
    """Write the files of ``project.tar.gz`` into ``directory``, which must not exist (mode 0700, files 0600).

    Refused, with nothing usable left: not a gzipped tar, a link, device or other special entry, a path that is absolute
    or leaves the directory, a name twice, too many files or bytes, no ``dbt_project.yml`` at its top.
    """
    try:
        directory.mkdir(mode=0o700)
        with tarfile.open(bundle, "r:gz") as archive:
            _write_all(archive, directory)
        if not (directory / PROJECT_FILE).is_file():
            raise _Unfit(f"no {PROJECT_FILE} at its top")
    except _Unfit as problem:
        return _refusal(bundle, str(problem))
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        return _refusal(bundle, f"{type(error).__name__} while it was unpacked")
    return None


def _write_all(archive: tarfile.TarFile, directory: Path) -> None:
    files = total = 0
    for member in archive:
        path = _path(member)
        if member.isdir():
            continue
        files, total = files + 1, total + member.size
        if files > MAX_FILES or total > MAX_BYTES:
            raise _Unfit(f"more than {MAX_FILES} files or {MAX_BYTES} bytes")
        _write(archive, member, directory / path)


def _path(member: tarfile.TarInfo) -> PurePosixPath:
    path = PurePosixPath(member.name)
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise _Unfit(f"an entry that is neither file nor directory: {member.name[:200]!r}")
    if path.is_absolute() or ".." in path.parts or not member.name.isprintable() or "\\" in member.name:
        raise _Unfit(f"an entry outside the project: {member.name[:200]!r}")
    return path


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = archive.extractfile(member)
    if content is None:
        raise _Unfit(f"an entry without content: {member.name[:200]!r}")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with content, target.open("xb") as file:
            while chunk := content.read(1024 * 1024):
                file.write(chunk)
    except FileExistsError:
        raise _Unfit(f"a name that stands in it twice: {member.name[:200]!r}") from None
    target.chmod(0o600)


def _refusal(bundle: Path, found: str) -> Refused:
    return refuse(
        "dbt_bundle_unfit",
        f"project bundle {bundle.name}",
        found=found,
        allowed="a gzipped tar of regular files inside the project",
        next_command="compile the workspace again, and build and promote what comes of it",
    )
