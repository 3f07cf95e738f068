"""A workspace on disk, and what compiling one needs from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpone_provider.application.ports.tables import SchemaReader
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.documents.environment import EnvironmentV1
from dpone_provider.documents.model import FileEntry
from dpone_provider.documents.workspace import WorkspaceV1
from dpone_provider.domain.identity import Digest
from dpone_provider.domain.outcomes import Refused

WORKSPACE_FILE = "workspace.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """The source files of one project: what each is, the digest over all, and a bundle of them.

    ``bundle`` is a gzipped tar whose bytes depend on the files alone, whenever and wherever it is made.
    """

    files: tuple[FileEntry, ...]
    digest: Digest
    bundle: bytes


class WorkspaceFiles(Protocol):
    """The only hand on the file system that compiling, composing and building have. Total.

    Everything read is bounded in size and number; links, devices and names that no archive may hold are refused.
    """

    def workspace(self, root: Path) -> WorkspaceV1 | Refused:
        """Read ``workspace.yaml`` of a workspace: safe YAML, no duplicate keys, no unknown fields."""

    def environment(self, file: Path) -> EnvironmentV1 | Refused:
        """Read an environment file."""

    def project(self, root: Path) -> SourceTree | Refused:
        """Read a dbt project; what dbt writes itself, hidden files and profiles are left out."""

    def commit(self, root: Path) -> str | None:
        """Return the git commit whose files these are, or None: no git, no repository, or files that differ from it."""

    def read(self, directory: Path) -> Mapping[str, bytes] | Refused:
        """Read every file of a directory, by relative path."""

    def write(self, directory: Path, files: Mapping[str, bytes], marker: str) -> Refused | None:
        """Write a directory: wholly or not at all, and over nothing but an earlier one that holds ``marker``."""


class SchemaReaders(Protocol):
    """Makes readers of table definitions through a binding's read-only credentials. Total: what cannot be reached
    shows as Unreadable for each table."""

    def schema_reader(self, connection: Connection) -> SchemaReader:
        """Return the reader of the connection's database."""
