"""What both halves of a compilation share: the inputs, the outcome, and making packs of what people wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.application.binding import lookup
from dpone_provider.application.dag_plans import Planned
from dpone_provider.application.listing import Files
from dpone_provider.application.ports.workspace import WORKSPACE_FILE
from dpone_provider.application.refusing import accepted
from dpone_provider.documents.constituent import Constituent, ConstituentKind, DagEntry, PackEntry
from dpone_provider.documents.dag_spec import DagSpecV1
from dpone_provider.documents.environment import EnvironmentConnection, EnvironmentV1
from dpone_provider.documents.reading import built
from dpone_provider.documents.transfer_pack import WAYS_OF, ColumnText, TransferPackV1
from dpone_provider.documents.workspace import OrdinaryTransfer, Publish, TransferTarget, WorkspaceV1
from dpone_provider.domain.cells import Asked, Feature, Job, cell_for
from dpone_provider.domain.identity import Digest, EngineKind
from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.domain.schema.types import Binary

NEXT: Final = "correct the workspace, then compile again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """The inputs: a workspace and one environment of it. ``source_commit`` is that of the workspace's files, if any."""

    root: Path
    workspace: WorkspaceV1
    environment: EnvironmentV1
    source_commit: str | None

    def connection(self, alias: str) -> EnvironmentConnection:
        """Return what an alias means.

        Raises:
            DponeError: Refused ``alias_without_connection`` or ``another_family``.
        """
        return lookup(self.environment, alias)[1]

    @property
    def where(self) -> str:
        """The workspace file, for messages."""
        return str(self.root / WORKSPACE_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The columns that a transfer was pinned to; ``came_from`` tells in words where they came from."""

    workload_id: str
    columns: tuple[ColumnText, ...]
    key: tuple[str, ...]
    came_from: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledConstituent:
    """One constituent with every file of it, and what its transfers were pinned to."""

    constituent: Constituent
    files: Files
    pinned: tuple[Pinned, ...]


def constituent(
    kind: ConstituentKind,
    compilation: Compilation,
    tree_digest: Digest,
    planned: Sequence[Planned],
    dags: Iterable[DagSpecV1],
    files: Mapping[str, bytes],
    pinned: Iterable[Pinned],
) -> CompiledConstituent:
    """Return a constituent of packs, DAGs and further ``files``; without packs it is declared empty."""
    packs = sorted(planned, key=lambda each: each.pack.id)
    specs = {f"dags/{dag.dag_id}.json": dag for dag in sorted(dags, key=lambda each: each.dag_id)}
    made = Constituent(
        kind=kind,
        empty=not packs,
        source_commit=compilation.source_commit,
        tree_digest=tree_digest,
        packs=tuple(_entry(each) for each in packs),
        dags=tuple(DagEntry(dag_id=dag.dag_id, file=file, digest=dag.digest) for file, dag in specs.items()),
    )
    written = {each.file: each.pack.canonical_bytes() for each in packs}
    written |= {file: dag.canonical_bytes() for file, dag in specs.items()}
    return CompiledConstituent(constituent=made, files={**files, **written}, pinned=tuple(pinned))


def require_cell(job: Job, source: EnvironmentConnection | None, target: EnvironmentConnection, namespace: str) -> None:
    """Require that the support matrix has a cell for a job between two connections.

    Raises:
        DponeError: Refused with the matrix's own reason.
    """
    asked = [*job.asked]
    for each in (source, target):
        if each is not None and each.cluster is not None:
            asked.append(Asked(Feature.CLICKHOUSE_CLUSTER, f"cluster {each.cluster}"))
    database = target.databases.get(namespace) if target.kind == EngineKind.CLICKHOUSE else None
    if database is not None and database.engine not in (None, "Atomic"):
        asked.append(Asked(Feature.NON_ATOMIC_DATABASE, f"database {namespace} of engine {database.engine}"))
    whole = Job(
        workload_id=job.workload_id,
        kind=job.kind,
        strategy=job.strategy,
        atomicity=job.atomicity,
        provisioning=job.provisioning,
        asked=tuple(asked),
    )
    accepted(cell_for(whole, source.kind if source else None, target.kind, target.family))


def target_fields(workload_id: str, to: TransferTarget, kind: EngineKind) -> dict[str, object]:
    """Return the target of a transfer pack.

    Raises:
        DponeError: Refused ``order_by_missing`` for a ClickHouse target without one, ``storage_unsupported`` for
            storage options on another engine.
    """
    subject = f"target of workload {workload_id}"
    storage = None
    if kind is EngineKind.CLICKHOUSE:
        if to.order_by is None:
            allowed = "order_by: the sorting key, or [] for none"
            unwind(refuse("order_by_missing", subject, found="no order_by", allowed=allowed, next_command=NEXT))
        storage = {"engine": to.engine, "order_by": to.order_by, "partition_by": to.partition_by}
    elif to.order_by is not None or to.partition_by is not None or to.engine != "MergeTree":
        found, allowed = "engine, order_by or partition_by", "these on ClickHouse targets only"
        unwind(refuse("storage_unsupported", subject, found=found, allowed=allowed, next_command=NEXT))
    fields = {"connection": to.connection, "kind": kind, "schema": to.namespace, "table": to.table}
    return {**fields, "storage": storage}


def transfer_pack(
    where: str,
    workload_id: str,
    declared: OrdinaryTransfer | Publish,
    fields: Mapping[str, object],
    columns: tuple[ColumnText, ...],
    key: tuple[str, ...],
) -> TransferPackV1:
    """Return the pack of a transfer; ``fields`` are origin, source, target, strategy and state.

    Raises:
        DponeError: Refused: what was declared contradicts itself.
    """
    kind = fields["target"]["kind"]  # type: ignore[index]
    asked = declared.way if isinstance(declared, OrdinaryTransfer) else None
    _require_sorting_key(workload_id, declared.to, columns)
    if kind is EngineKind.CLICKHOUSE:
        _require_no_binary(workload_id, columns)
    return built(
        TransferPackV1,
        f"{where}, transfer {workload_id}",
        {
            **fields,
            "id": workload_id,
            "columns": columns,
            "key": key,
            "bounds": declared.bounds,
            "publication": {"way": asked or WAYS_OF[kind][0]},
            "schema_policy": declared.schema_policy,
            "timeout_seconds": declared.timeout_seconds,
        },
        NEXT,
    )


def _require_sorting_key(workload_id: str, to: TransferTarget, columns: tuple[ColumnText, ...]) -> None:
    nullable = {column.name for column in columns if column.nullable} & set(to.order_by or ())
    if nullable:
        unwind(
            refuse(
                "nullable_sorting_key",
                f"order_by of workload {workload_id}",
                found=f"nullable column {', '.join(sorted(nullable))}",
                allowed="columns that are not nullable (in dbt: a not_null constraint on the column)",
                next_command=NEXT,
            )
        )


def _require_no_binary(workload_id: str, columns: tuple[ColumnText, ...]) -> None:
    """ClickHouse has no type for bytes that could be told from text again."""
    found = [f"{column.name} {column.type}" for column in columns if isinstance(column.column.type, Binary)]
    if found:
        unwind(
            refuse(
                "unsupported_type",
                f"columns of workload {workload_id}",
                found=", ".join(found),
                allowed="types that ClickHouse can tell from others: it stores binary as String, as it does text",
                next_command="leave them out of the columns, or encode them as text at the source, then compile again",
            )
        )


def _entry(planned: Planned) -> PackEntry:
    pack = planned.pack
    if isinstance(pack, TransferPackV1):
        return PackEntry(workload_id=pack.id, kind="transfer", file=planned.file, digest=pack.digest, state=pack.state)
    return PackEntry(workload_id=pack.id, kind="execution", file=planned.file, digest=pack.digest)
