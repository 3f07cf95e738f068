"""The port ``WorkspaceFiles`` on a real file system."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dpone_provider.adapters.workspace.commit import commit_of
from dpone_provider.adapters.workspace.output import write_directory
from dpone_provider.adapters.workspace.yaml_text import NEXT, read_yaml
from dpone_provider.application.ports.workspace import WORKSPACE_FILE, SourceTree
from dpone_provider.documents.archive import bundle
from dpone_provider.documents.canonical import canonical_digest
from dpone_provider.documents.directory import TreeBounds, read_directory
from dpone_provider.documents.environment import EnvironmentV1
from dpone_provider.documents.model import FileEntry
from dpone_provider.documents.reading import document_of
from dpone_provider.documents.workspace import WorkspaceV1
from dpone_provider.domain.outcomes import Refused, refuse

PROJECT_FILE: Final = "dbt_project.yml"
PROJECT_BOUNDS: Final = TreeBounds(max_files=20_000, max_file_bytes=64 * 1024**2, max_bytes=256 * 1024**2)
_WRITTEN_BY_DBT: Final = frozenset({"target", "logs"})
_NOT_SOURCE: Final = frozenset({"__pycache__", "node_modules", "profiles.yml"})


class DiskWorkspace:
    """Workspaces as directories."""

    def workspace(self, root: Path) -> WorkspaceV1 | Refused:
        """Read ``workspace.yaml``."""
        file = root / WORKSPACE_FILE
        value = read_yaml(file)
        return value if isinstance(value, Refused) else document_of(WorkspaceV1, value, str(file), NEXT)

    def environment(self, file: Path) -> EnvironmentV1 | Refused:
        """Read an environment file."""
        value = read_yaml(file)
        return value if isinstance(value, Refused) else document_of(EnvironmentV1, value, str(file), NEXT)

    def project(self, root: Path) -> SourceTree | Refused:
        """Read a dbt project."""
        files = read_directory(root, PROJECT_BOUNDS, not_source)
        if isinstance(files, Refused):
            return files
        if PROJECT_FILE not in files:
            allowed = f"a dbt project: a directory with {PROJECT_FILE}"
            return refuse("not_a_dbt_project", str(root), found="none", allowed=allowed, next_command=NEXT)
        entries = tuple(FileEntry.of(path, data) for path, data in files.items())
        digest = canonical_digest([entry.model_dump(mode="json") for entry in entries])
        return SourceTree(files=entries, digest=digest, bundle=bundle(files))

    def commit(self, root: Path) -> str | None:
        """Ask git."""
        return commit_of(root)

    def read(self, directory: Path) -> Mapping[str, bytes] | Refused:
        """Read a directory."""
        return read_directory(directory)

    def write(self, directory: Path, files: Mapping[str, bytes], marker: str) -> Refused | None:
        """Write a directory."""
        return write_directory(directory, files, marker)


def not_source(path: str) -> bool:
    """Tell what of a project is no source: what dbt and Python write, hidden names, profiles (secrets)."""
    name = path.rpartition("/")[2]
    hidden = name.startswith(".") and name != ".dbtignore"  # which decides what dbt reads
    return path in _WRITTEN_BY_DBT or name in _NOT_SOURCE or hidden
