"""Writing a directory whole: a reader sees the old one or the new one, never a part, and nothing foreign is lost."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dpone_provider.domain.outcomes import Refused, refuse


def write_directory(directory: Path, files: Mapping[str, bytes], marker: str) -> Refused | None:
    """Write ``files`` as all of ``directory``; what stands there must be absent, empty or hold ``marker``.

    The new directory is made beside and moved into place; an interruption leaves at most a hidden directory beside.
    """
    target = Path(os.path.realpath(directory))
    try:
        refused = _foreign(target, marker)
        if refused is not None:
            return refused
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _fill(made / "new", files)
            if target.exists():
                target.rename(made / "old")
            (made / "new").rename(target)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        return refuse(
            "output_not_writable",
            str(error.filename or target),
            found=error.strerror or type(error).__name__,
            allowed="a directory that we may write, on a disk with room",
            next_command="choose another --out, or correct who may write it",
        )
    return None


def _foreign(target: Path, marker: str) -> Refused | None:
    if not target.exists() or (target / marker).is_file():
        return None
    if target.is_dir() and not any(target.iterdir()):
        return None
    return refuse(
        "output_not_ours",
        str(target),
        found=f"something without {marker}",
        allowed=f"nothing, an empty directory, or an earlier output (with {marker})",
        next_command="choose another --out, or move it away",
    )


def _fill(directory: Path, files: Mapping[str, bytes]) -> None:
    directory.mkdir(mode=0o755)
    for path, data in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
