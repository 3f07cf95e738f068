"""A document of every schema: the small ones made by hand, the others by compiling a workspace."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from dpone_provider.application.release import Released, release_workspace
from dpone_provider.documents.model import Document
from dpone_provider.documents.registry import read_document
from tests.application.workspaces import Workspace
from tests.documents.examples import small_documents


@cache
def released() -> Released:
    """The sample workspace of the tests, released."""
    with tempfile.TemporaryDirectory() as directory:
        workspace = Workspace(Path(directory) / "workspace")
        done = release_workspace(workspace.root, "synthetic", Path(directory) / "out", workspace.ports())
    assert isinstance(done, Released), done
    return done


def every_document() -> tuple[Document, ...]:
    """One document of each schema."""
    done = released()
    from_files = [read_document(data, path) for path, data in done.built.files.items() if _is_document(path)]
    documents = [*small_documents(), done.compiled.native, *(each for each in from_files if isinstance(each, Document))]
    return tuple({each.schema_id: each for each in documents}.values())


def _is_document(path: str) -> bool:
    return path.endswith(".json") and not path.endswith("manifest.json")
