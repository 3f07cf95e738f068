"""What a dbt workload does, derived from the manifest and the adapter's rules: never taken from a pack on trust."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dpone_provider.documents.dbt_manifest import DbtManifest, ManifestNode
from dpone_provider.documents.execution_pack import ExpectedNode, WrittenText
from dpone_provider.documents.model import RelationText
from dpone_provider.domain.cells import Asked, Feature, Job, JobKind
from dpone_provider.domain.footprint import WrittenRelation, written_by_dbt
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import refuse, unwind

ADAPTERS: Final = MappingProxyType({"postgres": EngineKind.POSTGRES, "sqlserver": EngineKind.MSSQL})
"""dbt's name of each adapter that is modelled."""
_NEXT: Final = "change the dbt project or the selection, then compile again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """The nodes that a run must report, what each may write, and what the workload reads beyond what it writes."""

    nodes: tuple[ExpectedNode, ...]
    written: tuple[tuple[str, WrittenRelation], ...]
    reads: tuple[RelationText, ...]

    @property
    def writes(self) -> tuple[WrittenText, ...]:
        """Every relation that the workload may write, as a pack has it."""
        return tuple(WrittenText.of(one) for one in sorted({written for _, written in self.written}))


def derive(
    manifest: DbtManifest, node_ids: Iterable[str], engine: EngineKind, database: str, workload_id: str
) -> Derived:
    """Return what running exactly ``node_ids`` does in ``database``.

    Raises:
        DponeError: Refused when a node is unknown, nothing would be written, or a node is of another database.
    """
    nodes = [_known(manifest, node_id, workload_id) for node_id in sorted(set(node_ids))]
    for each in nodes:
        _require_database(each, database, workload_id)
    written = tuple((each.node.node_id, one) for each in nodes for one in written_by_dbt(engine, each.node))
    if not written:
        found, allowed = "no model, seed or snapshot", "at least one relation to write"
        unwind(refuse("nothing_selected", f"workload {workload_id}", found=found, allowed=allowed, next_command=_NEXT))
    own = {one.relation for _, one in written}
    reads = {relation for each in nodes for relation in each.node.reads} - own
    return Derived(
        nodes=tuple(_expected(each) for each in nodes),
        written=written,
        reads=tuple(RelationText.of(relation) for relation in sorted(reads)),
    )


def execution_job(manifest: DbtManifest, node_ids: Iterable[str], workload_id: str) -> Job:
    """Return the workload as the support matrix sees it, with every effect that no footprint shows."""
    found = [(effect, "the project") for effect in manifest.effects]
    for node_id in sorted(set(node_ids)):
        node = manifest.nodes.get(node_id)
        found += [(effect, node_id) for effect in (node.effects if node else ())]
    asked = tuple(
        Asked(Feature.CUSTOM_HOOK if "hook" in effect else Feature.UNMODELLED_EFFECT, f"{effect} of {whose}")
        for effect, whose in found
    )
    return Job(workload_id=workload_id, kind=JobKind.DBT, asked=asked)


def _known(manifest: DbtManifest, node_id: str, workload_id: str) -> ManifestNode:
    node = manifest.nodes.get(node_id)
    if node is None:
        unwind(
            refuse(
                "node_not_in_manifest",
                f"workload {workload_id}",
                found=node_id,
                allowed="models, seeds, snapshots and tests of the project's manifest",
                next_command=_NEXT,
            )
        )
    return node


def _require_database(node: ManifestNode, database: str, workload_id: str) -> None:
    others = sorted(node.databases - {database})
    if others:
        unwind(
            refuse(
                "other_database",
                f"node {node.node.node_id} of workload {workload_id}",
                found=f"database {', '.join(others)}",
                allowed=f"database {database}, the one that the workload's connection is bound to",
                next_command=_NEXT,
            )
        )


def _expected(each: ManifestNode) -> ExpectedNode:
    node = each.node
    return ExpectedNode(
        id=node.node_id,
        resource_type=node.resource_type,
        materialized=node.materialized,
        relation=RelationText.of(node.relation) if node.relation is not None else None,
        rebuilt_whole=node.rebuilt_whole,
        as_columnstore=each.as_columnstore,
    )
