"""A verified parent deployment as the use cases see it, and what each of its workloads writes and reads where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.documents.binding_set import BindingSetV1
from dpone_provider.documents.connection_registry import Connection, ConnectionRegistryV1
from dpone_provider.documents.dag_spec import DagSpecV1, PlannedTask
from dpone_provider.documents.deployment import DeploymentV3
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.release import ReleaseV3
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.identity import Digest, Family, Relation
from dpone_provider.domain.outcomes import Refused, refuse, unwind

Pack = ExecutionPackV2 | TransferPackV1


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """Every document of one deployment, verified against ``deployment_id``; ``directory`` holds its files."""

    deployment_id: Digest
    deployment: DeploymentV3
    release: ReleaseV3
    bindings: BindingSetV1
    registry: ConnectionRegistryV1
    packs: Mapping[str, Pack]
    dags: Mapping[str, DagSpecV1]
    directory: Path

    @property
    def environment(self) -> str:
        """The environment that the deployment was built for."""
        return self.deployment.environment

    @property
    def family(self) -> Family:
        """The family of the environment."""
        return self.deployment.family

    def constituent_of(self, workload_id: str) -> str:
        """Return ``native`` or ``ordinary``."""
        return next(
            each.kind for each in self.release.constituents for pack in each.packs if pack.workload_id == workload_id
        )

    def task_of(self, workload_id: str) -> PlannedTask:
        """Return the plan of a workload: its one task."""
        return next(task for dag in self.dags.values() for task in dag.tasks if task.workload_id == workload_id)

    def connection(self, alias: str) -> Connection:
        """Return what an alias is bound to.

        Raises:
            DponeError: Refused ``alias_without_connection``.
        """
        reference = self.bindings.reference(alias)
        found = self.registry.connection(reference) if reference is not None else None
        if found is None:
            unwind(_unbound(alias, reference, self.environment))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What one workload writes and reads, by connection. ``source`` is None for dbt, which reads where it writes."""

    workload_id: str
    target: Connection
    writes: tuple[Relation, ...]
    source: Connection | None
    reads: tuple[Relation, ...]

    @property
    def read_from(self) -> Connection:
        """The connection of the relations that it reads."""
        return self.source or self.target


def footprint(parent: Parent, workload_id: str) -> Footprint:
    """Return what a workload writes and reads.

    Raises:
        DponeError: Refused when an alias is not bound.
    """
    pack = parent.packs[workload_id]
    match pack:
        case ExecutionPackV2():
            return Footprint(
                workload_id=workload_id,
                target=parent.connection(pack.connection),
                writes=tuple(sorted({one.written.relation for one in pack.writes})),
                source=None,
                reads=tuple(sorted({one.relation for one in pack.reads})),
            )
        case TransferPackV1():
            return Footprint(
                workload_id=workload_id,
                target=parent.connection(pack.target.connection),
                writes=(pack.target.relation,),
                source=parent.connection(pack.source.connection),
                reads=(pack.source.relation,),
            )


def footprints(parent: Parent) -> tuple[Footprint, ...]:
    """Return the footprint of every workload, in workload order."""
    return tuple(footprint(parent, workload_id) for workload_id in sorted(parent.packs))


def _unbound(alias: str, reference: str | None, environment: str) -> Refused:
    return refuse(
        "alias_without_connection",
        f"alias {alias} in environment {environment}",
        found="no binding" if reference is None else f"a binding to {reference}, which the registry does not hold",
        allowed="an alias bound to an entry of the connection registry",
        next_command="add it to the environment's bindings and connections, then `dpone build` again",
    )
