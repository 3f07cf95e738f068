"""``dpone compile``: a workspace into its two constituents, each independent of the other.

The only things asked of the outside are the definitions of source tables whose columns are not declared, once, and
dbt's own parser. What was seen is pinned in the packs; nothing is read again when they run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.application.compile_native import compile_projects
from dpone_provider.application.compile_ordinary import compile_transfers
from dpone_provider.application.compile_parts import NEXT, Compilation, CompiledConstituent, Pinned
from dpone_provider.application.listing import Files, entries_of
from dpone_provider.application.loading import load_constituents
from dpone_provider.application.ports.dbt import DbtCompiler
from dpone_provider.application.ports.workspace import WORKSPACE_FILE, SchemaReaders, WorkspaceFiles
from dpone_provider.application.refusing import accepted, refusing
from dpone_provider.documents.constituent import ConstituentV1
from dpone_provider.documents.reading import contradictions_refused
from dpone_provider.domain.outcomes import Refused, refuse, unwind

CONSTITUENT_FILE: Final = "constituent.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilePorts:
    """What compiling needs."""

    files: WorkspaceFiles
    dbt: DbtCompiler
    schemas: SchemaReaders


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledWorkspace:
    """Both constituents with their files, and which columns each transfer was pinned to and where they came from."""

    workspace: str
    environment_file: Path
    native: ConstituentV1
    ordinary: ConstituentV1
    files: Mapping[str, Files]
    pinned: tuple[Pinned, ...]


def compile_workspace(workspace: Path, environment: str, out: Path, ports: CompilePorts) -> CompiledWorkspace | Refused:
    """Compile the workspace at ``workspace`` and write ``out/native`` and ``out/ordinary``.

    ``environment`` names one of the workspace's environments: it says which engines and databases the aliases mean and
    where undeclared columns are read. Refused: nothing is written.
    """

    def work() -> CompiledWorkspace:
        compiled = compiled_workspace(workspace, environment, ports)
        for kind, files in compiled.files.items():
            accepted(ports.files.write(out / kind, files, CONSTITUENT_FILE))
        return compiled

    return refusing(work)


def compiled_workspace(workspace: Path, environment: str, ports: CompilePorts) -> CompiledWorkspace:
    """Return the compiled workspace without writing anything.

    Raises:
        DponeError: Refused.
    """
    document = accepted(ports.files.workspace(workspace))
    path = document.environments.get(environment)
    if path is None:
        unwind(
            refuse(
                "unknown_environment",
                f"{workspace / WORKSPACE_FILE}, environment {environment}",
                found="no such environment",
                allowed=", ".join(sorted(document.environments)) or "none: the workspace declares no environment",
                next_command="add it to the workspace's environments, or name another",
            )
        )
    compilation = Compilation(
        root=workspace,
        workspace=document,
        environment=accepted(ports.files.environment(workspace / path)),
        source_commit=ports.files.commit(workspace),
    )
    with contradictions_refused(compilation.where, NEXT):
        native = compile_projects(compilation, ports.files, ports.dbt)
        ordinary = compile_transfers(compilation, ports.schemas)
        documents = [_document(document.name, each) for each in (native, ordinary)]
    for each in (native, ordinary):
        load_constituents((each.constituent,), each.files, f"compiled {each.constituent.kind}")
    return CompiledWorkspace(
        workspace=document.name,
        environment_file=workspace / path,
        native=documents[0],
        ordinary=documents[1],
        files={
            made.constituent.kind: {**each.files, CONSTITUENT_FILE: made.canonical_bytes()}
            for made, each in zip(documents, (native, ordinary), strict=True)
        },
        pinned=(*native.pinned, *ordinary.pinned),
    )


def _document(workspace: str, compiled: CompiledConstituent) -> ConstituentV1:
    return ConstituentV1(workspace=workspace, constituent=compiled.constituent, files=entries_of(compiled.files))
