"""``dpone compose``: the two constituents of a workspace into one parent release, independent of environments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from dpone_provider.application.binding import require_no_collision_by_alias
from dpone_provider.application.compile import CONSTITUENT_FILE
from dpone_provider.application.listing import Files, checksums, document_in, entries_of, require_listed
from dpone_provider.application.loading import load_release
from dpone_provider.application.ports.workspace import WorkspaceFiles
from dpone_provider.application.refusing import accepted, refusing
from dpone_provider.documents.constituent import ConstituentKind, ConstituentV1
from dpone_provider.documents.deployment import CHECKSUM_FILE, RELEASE_FILE
from dpone_provider.documents.reading import contradictions_refused
from dpone_provider.documents.release import ReleaseV3
from dpone_provider.domain.identity import Digest
from dpone_provider.domain.outcomes import Refused, refuse, unwind

KINDS: Final[tuple[ConstituentKind, ...]] = get_args(ConstituentKind)
_NEXT: Final = "correct the workspace, then compile and compose again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedRelease:
    """A release with all its files, ``files.sha256`` included; ``release_id`` is its digest."""

    release_id: Digest
    release: ReleaseV3
    files: Files


def compose(compiled: Path, out: Path, files: WorkspaceFiles) -> ComposedRelease | Refused:
    """Compose the constituents in ``compiled/native`` and ``compiled/ordinary`` into the release directory ``out``.

    Refused: a constituent is missing, changed or contradicts itself, a pack's state declaration differs from its
    source's, two workloads write one relation. Nothing is written then.
    """

    def work() -> ComposedRelease:
        composed = composed_release({kind: accepted(files.read(compiled / kind)) for kind in KINDS}, str(compiled))
        accepted(files.write(out, composed.files, RELEASE_FILE))
        return composed

    return refusing(work)


def composed_release(compiled: dict[ConstituentKind, Files], where: str) -> ComposedRelease:
    """Return the release of two compiled constituents; ``where`` names their directory in messages.

    Raises:
        DponeError: Refused, as ``compose``.
    """
    documents = [_constituent(kind, files, f"{where}/{kind}") for kind, files in sorted(compiled.items())]
    names = {document.workspace for document in documents}
    if len(names) != 1:
        found = f"workspaces {' and '.join(sorted(names))}"
        unwind(refuse("constituents_differ", where, found=found, allowed="one workspace", next_command=_NEXT))
    content: dict[str, bytes] = {}
    for each in compiled.values():
        content |= {path: data for path, data in each.items() if path != CONSTITUENT_FILE}
    _require_distinct_dags(documents, where)
    with contradictions_refused(where, _NEXT):
        release = ReleaseV3(
            name=documents[0].workspace,
            constituents=tuple(document.constituent for document in documents),
            files=entries_of(content),
        )
    content[RELEASE_FILE] = release.canonical_bytes()
    _, loaded = load_release(content, where)
    require_no_collision_by_alias(loaded)
    content[CHECKSUM_FILE] = checksums(content)
    return ComposedRelease(release_id=release.digest, release=release, files=content)


def _constituent(kind: ConstituentKind, files: Files, where: str) -> ConstituentV1:
    document = document_in(ConstituentV1, files, CONSTITUENT_FILE, where)
    require_listed({path: data for path, data in files.items() if path != CONSTITUENT_FILE}, document.files, where)
    if document.constituent.kind != kind:
        found, allowed = f"the {document.constituent.kind} constituent", f"the {kind} one"
        unwind(refuse("constituents_differ", where, found=found, allowed=allowed, next_command=_NEXT))
    return document


def _require_distinct_dags(documents: list[ConstituentV1], where: str) -> None:
    native, ordinary = ({dag.dag_id for dag in document.constituent.dags} for document in documents)
    for dag_id in sorted(native & ordinary):
        unwind(
            refuse(
                "dag_id_twice",
                f"{where}, DAG {dag_id}",
                found="a transfer and a dbt project of one name",
                allowed="transfers and dbt projects with distinct names",
                next_command=_NEXT,
            )
        )
