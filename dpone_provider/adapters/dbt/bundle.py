"""Unpacking a project's bundle. Its digest was verified, and still nothing of it is written outside its directory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dpone_provider.documents.archive import read_archive
from dpone_provider.documents.directory import TreeBounds
from dpone_provider.domain.outcomes import Refused, refuse

BOUNDS: Final = TreeBounds(max_files=20_000, max_file_bytes=64 * 1024**2, max_bytes=256 * 1024**2)
PROJECT_FILE: Final = "dbt_project.yml"


def unpack(bundle: Path, directory: Path) -> Refused | None:
    """Write the files of ``project.tar.gz`` into ``directory``, which must not exist (mode 0700, files 0600).

    Refused, with nothing written: whatever `read_archive` refuses (links, devices, paths that leave the directory, too
    much of anything), and no ``dbt_project.yml`` at its top.
    """
    files = read_archive(bundle, BOUNDS)
    if isinstance(files, Refused):
        return files
    if PROJECT_FILE not in files:
        return refuse(
            "dbt_bundle_unfit",
            f"project bundle {bundle}",
            found=f"no {PROJECT_FILE} at its top",
            allowed="a gzipped tar of one dbt project",
            next_command="compile the workspace again, then build and promote what comes of it",
        )
    directory.mkdir(mode=0o700)
    for path, content in files.items():
        target = directory / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target.touch(mode=0o600, exist_ok=False)
        target.write_bytes(content)
    return None
