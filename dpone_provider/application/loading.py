"""Loading a release or a deployment from its files: every document read, every claim checked against every other.

Nothing here asks a network or a database. What a dbt workload writes and reads is derived again from the manifest; a
pack that says anything else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Never

from dpone_provider.application.derivation import ADAPTERS, Derived, derive, execution_job
from dpone_provider.application.listing import Files, document_in, require_listed
from dpone_provider.application.parent import Pack
from dpone_provider.application.plans import require_plans
from dpone_provider.application.refusing import accepted
from dpone_provider.documents.constituent import Constituent, PackEntry
from dpone_provider.documents.dag_spec import DagSpecV1
from dpone_provider.documents.dbt_manifest import DbtManifest, read_manifest
from dpone_provider.documents.deployment import RELEASE_FILE
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.reading import contradictions_refused
from dpone_provider.documents.release import ReleaseV3
from dpone_provider.documents.transfer_pack import GeneratedOrigin, TransferPackV1
from dpone_provider.domain.cells import cell_for
from dpone_provider.domain.identity import Family, digest_of
from dpone_provider.domain.outcomes import refuse, unwind

BUNDLE_FILE: Final = "project.tar.gz"
MANIFEST_FILE: Final = "manifest.json"
_NEXT: Final = "compile and compose the workspace again"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedConstituents:
    """The packs and DAGs of some constituents, each checked; ``derived`` and ``manifests`` are those of dbt workloads.

    Keys are workload ids, DAG ids, and project names.
    """

    packs: Mapping[str, Pack]
    dags: Mapping[str, DagSpecV1]
    derived: Mapping[str, Derived]
    manifests: Mapping[str, DbtManifest]


def load_constituents(constituents: tuple[Constituent, ...], files: Files, where: str) -> LoadedConstituents:
    """Return everything that the constituents name, checked.

    Raises:
        DponeError: Refused with the first thing that is missing, different, or in contradiction with another.
    """
    packs: dict[str, Pack] = {}
    manifests: dict[str, DbtManifest] = {}
    derived: dict[str, Derived] = {}
    used: set[str] = set()
    for entry in (pack for each in constituents for pack in each.packs):
        pack = _pack(entry, files, where)
        packs[entry.workload_id] = pack
        used.add(entry.file)
        if isinstance(pack, ExecutionPackV2):
            used |= _load_project(pack, entry, files, manifests, where)
            derived[pack.id] = _require_derived(pack, manifests[pack.project], where)
    for pack in packs.values():
        if isinstance(pack, TransferPackV1) and isinstance(pack.origin, GeneratedOrigin):
            _require_origin(pack, pack.origin, packs, where)
    dags = {
        entry.dag_id: _dag(entry.dag_id, entry.file, each.kind, files, where)
        for each in constituents
        for entry in each.dags
    }
    used |= {entry.file for each in constituents for entry in each.dags}
    _require_used(files, used, where)
    _require_safe_names(files, where)
    require_plans(constituents, packs, dags, where)
    return LoadedConstituents(packs=packs, dags=dags, derived=derived, manifests=manifests)


def load_release(files: Files, where: str) -> tuple[ReleaseV3, LoadedConstituents]:
    """Return the release in ``files`` (``release.json`` and every file that it lists) with everything it names.

    Raises:
        DponeError: Refused, as ``load_constituents``.
    """
    release = document_in(ReleaseV3, files, RELEASE_FILE, where)
    rest = {path: data for path, data in files.items() if path != RELEASE_FILE}
    require_listed(rest, release.files, where)
    return release, load_constituents(release.constituents, rest, where)


def _pack(entry: PackEntry, files: Files, where: str) -> Pack:
    subject = f"{where}: {entry.file}"
    pack: Pack
    if entry.kind == "execution":
        pack = document_in(ExecutionPackV2, files, entry.file, where)
    else:
        pack = document_in(TransferPackV1, files, entry.file, where)
        if pack.state != entry.state:
            _contradiction("state_declaration_differs", subject, pack.state, entry.state)
    if pack.id != entry.workload_id or pack.digest != entry.digest:
        _contradiction("pack_not_as_listed", subject, f"{pack.id} {pack.digest}", f"{entry.workload_id} {entry.digest}")
    return pack


def _load_project(
    pack: ExecutionPackV2, entry: PackEntry, files: Files, manifests: dict[str, DbtManifest], where: str
) -> set[str]:
    directory = str(PurePosixPath(entry.file).parent.parent)
    if directory != f"native/{pack.project}":
        _contradiction("pack_not_as_listed", f"{where}: {entry.file}", entry.file, f"native/{pack.project}/workloads/")
    paths = {f"{directory}/{BUNDLE_FILE}": pack.bundle_digest, f"{directory}/{MANIFEST_FILE}": pack.manifest_digest}
    for path, digest in paths.items():
        found = digest_of(files[path]) if path in files else "nothing"
        if found != digest:
            _contradiction("project_not_as_compiled", f"{where}: {path} for {pack.id}", found, digest)
    if pack.project not in manifests:
        path = f"{directory}/{MANIFEST_FILE}"
        manifests[pack.project] = accepted(read_manifest(files[path], f"{where}: {path}"))
    return set(paths)


def _require_derived(pack: ExecutionPackV2, manifest: DbtManifest, where: str) -> Derived:
    """Require that the pack says exactly what manifest and adapter rules say of its nodes."""
    subject = f"{where}: pack of {pack.id}"
    if (manifest.project_name, ADAPTERS.get(manifest.adapter_type)) != (pack.project, pack.adapter.kind):
        found = f"project {pack.project} for {pack.adapter.kind}"
        _contradiction("project_not_as_compiled", subject, found, f"{manifest.project_name}, {manifest.adapter_type}")
    node_ids = tuple(node.id for node in pack.nodes)
    with contradictions_refused(subject, _NEXT):
        derived = derive(manifest, node_ids, pack.adapter.kind, pack.database or "", pack.id)
    # Effects are the manifest's; the family decides elsewhere whether the cell itself is allowed.
    accepted(cell_for(execution_job(manifest, node_ids, pack.id), None, pack.adapter.kind, Family.NONPRODUCTION))
    listed = {f"writes {one.schema_name}.{one.name} as {one.role}" for one in pack.writes}
    listed |= {f"reads {one.schema_name}.{one.name}" for one in pack.reads}
    rules = {f"writes {one.schema_name}.{one.name} as {one.role}" for one in derived.writes}
    rules |= {f"reads {one.schema_name}.{one.name}" for one in derived.reads}
    if listed != rules:
        found = f"beyond the rules: {sorted(listed - rules)}; left out: {sorted(rules - listed)}"
        _contradiction("footprint_differs", subject, found, "exactly what manifest and adapter rules give")
    if pack.nodes != derived.nodes:
        _contradiction("footprint_differs", subject, "nodes described otherwise", "the manifest's description")
    return derived


def _require_origin(pack: TransferPackV1, origin: GeneratedOrigin, packs: Mapping[str, Pack], where: str) -> None:
    """Require that a generated transfer reads what its dbt workload builds, where it builds it."""
    subject = f"{where}: pack of {pack.id}"
    parent = packs.get(origin.workload_id)
    if not isinstance(parent, ExecutionPackV2) or parent.project != origin.project:
        _contradiction("generated_without_origin", subject, origin.workload_id, "a dbt workload of the same release")
    node = next((each for each in parent.nodes if each.id == origin.model_id), None)
    if node is None or node.relation is None:
        _contradiction("generated_without_origin", subject, origin.model_id, f"a model that {parent.id} builds")
    source = (pack.source.connection, pack.source.kind, pack.source.relation)
    built = (parent.connection, parent.adapter.kind, node.relation.relation)
    if source != built:
        _contradiction("generated_without_origin", subject, source, built)


def _dag(dag_id: str, file: str, kind: str, files: Files, where: str) -> DagSpecV1:
    dag = document_in(DagSpecV1, files, file, where)
    if (dag.dag_id, dag.constituent) != (dag_id, kind):
        _contradiction("dag_not_as_listed", f"{where}: {file}", f"{dag.dag_id}, {dag.constituent}", f"{dag_id}, {kind}")
    return dag


def _require_used(files: Files, used: set[str], where: str) -> None:
    for path in sorted(files.keys() - used):
        _contradiction("file_without_use", f"{where}: {path}", "a file that no pack and no DAG needs", "none such")


def _require_safe_names(files: Files, where: str) -> None:
    folded: dict[str, str] = {}
    for path in sorted(files):
        other = folded.setdefault(path.casefold(), path)
        if other != path:
            _contradiction("paths_unsafe_together", f"{where}: {path}", other, "paths that differ by more than case")


def _contradiction(reason: str, subject: str, found: object, allowed: object) -> Never:
    unwind(refuse(reason, subject, found=found, allowed=allowed, next_command=_NEXT))
