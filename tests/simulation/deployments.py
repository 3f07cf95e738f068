"""Deployments as values: valid documents of as many workloads as a test wants, bound to simulated servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dpone_provider.application.parent import Pack, Parent
from dpone_provider.documents.binding_set import Binding, BindingSetV1
from dpone_provider.documents.connection_registry import (
    Connection,
    ConnectionRegistryV1,
    CredentialReferences,
    DatabaseAuthority,
    EndpointText,
    Fact,
)
from dpone_provider.documents.constituent import Constituent, DagEntry, PackEntry
from dpone_provider.documents.dag_spec import DagSpecV1, PlannedTask
from dpone_provider.documents.deployment import BINDINGS_FILE, REGISTRY_FILE, RELEASE_FILE, DeploymentV3
from dpone_provider.documents.execution_pack import (
    Adapter,
    ExecutionPackV2,
    ExpectedNode,
    WrittenText,
    selection_digest,
)
from dpone_provider.documents.model import FileEntry, RelationText, in_order
from dpone_provider.documents.release import ReleaseV3
from dpone_provider.documents.transfer_pack import (
    ColumnText,
    GeneratedOrigin,
    OrdinaryOrigin,
    PublicationPolicy,
    RefreshBounds,
    SchemaPolicy,
    SourceTable,
    StateDeclaration,
    StorageText,
    TargetTable,
    TransferPackV1,
)
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.footprint import Role, WrittenRelation
from dpone_provider.domain.identity import EngineKind, Family, Relation, digest_of
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import parse_logical_type
from tests.simulation.server import SimulatedServer

STATE = StateDeclaration(atomicity="target_atomic", provisioning="external")
STAGING = "dpone_stage"
COLUMNS = tuple(
    Column(name=name, type=parse_logical_type(kind), nullable=nullable)
    for name, kind, nullable in (("id", "int64", False), ("carrier", "string", False), ("delay", "int32", True))
)
Servers = Mapping[str, SimulatedServer]
"""The servers by alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One transfer, from (alias, relation) to (alias, relation). ``generated_by`` is the dbt workload, if it is one."""

    id: str
    source: tuple[str, Relation]
    target: tuple[str, Relation]
    generated_by: str | None = None
    strategy: str = "full_refresh"
    max_rows: int = 1_000_000
    batch_rows: int = 100

    def pack(self, servers: Servers) -> TransferPackV1:
        """Return its pack."""
        kind = servers[self.target[0]].kind
        clickhouse = kind is EngineKind.CLICKHOUSE
        origin: OrdinaryOrigin | GeneratedOrigin = OrdinaryOrigin()
        if self.generated_by is not None:
            origin = GeneratedOrigin(project="flights", workload_id=self.generated_by, model_id="model.flights.daily")
        return TransferPackV1(
            id=self.id,
            origin=origin,
            source=SourceTable(
                connection=self.source[0],
                kind=servers[self.source[0]].kind,
                schema_name=self.source[1].schema,
                table=self.source[1].name,
            ),
            target=TargetTable(
                connection=self.target[0],
                kind=kind,
                schema_name=self.target[1].schema,
                table=self.target[1].name,
                storage=StorageText(engine="MergeTree", order_by=("id",)) if clickhouse else None,
            ),
            columns=tuple(ColumnText.of(column) for column in COLUMNS),
            key=("id",),
            strategy=self.strategy,
            state=STATE,
            bounds=RefreshBounds(max_rows=self.max_rows, max_bytes=10_000_000, batch_rows=self.batch_rows),
            publication=PublicationPolicy(way="exchange" if clickhouse else "replace"),
            schema_policy=SchemaPolicy(),
            timeout_seconds=3600,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtWork:
    """One dbt workload: models by node id with what each builds and whether it is rebuilt whole; what it reads."""

    id: str
    alias: str = "warehouse"
    models: Mapping[str, tuple[Relation, bool]]
    tests: tuple[str, ...] = ()
    reads: tuple[Relation, ...] = ()

    def pack(self, servers: Servers) -> ExecutionPackV2:
        """Return its pack."""
        models = [
            ExpectedNode(
                id=node,
                resource_type="model",
                materialized="table" if whole else "incremental",
                relation=RelationText.of(relation),
                rebuilt_whole=whole,
            )
            for node, (relation, whole) in self.models.items()
        ]
        tests = [
            ExpectedNode(id=node, resource_type="test", materialized="test", rebuilt_whole=True) for node in self.tests
        ]
        nodes = in_order([*models, *tests], lambda each: each.id)
        written = [WrittenText.of(WrittenRelation(relation, Role.TARGET)) for relation, _ in self.models.values()]
        return ExecutionPackV2(
            id=self.id,
            project="flights",
            bundle_digest=digest_of(b"bundle"),
            manifest_digest=digest_of(b"manifest"),
            selection_digest=selection_digest(tuple(node.id for node in nodes)),
            selectors=("tag:marts",),
            nodes=nodes,
            adapter=Adapter(kind=servers[self.alias].kind, versions=()),
            connection=self.alias,
            target_schema="mart",
            timeout_seconds=3600,
            threads=1,
            writes=in_order(written, lambda each: each.written),
            reads=in_order([RelationText.of(one) for one in self.reads], lambda each: each.relation),
        )


Work = Transfer | DbtWork


def build(works: Sequence[Work], servers: Servers, *, environment: str = "synthetic", name: str = "flights") -> Parent:
    """Return the deployment of these workloads, each in a DAG of its own."""
    packs: dict[str, Pack] = {work.id: work.pack(servers) for work in works}
    constituents = tuple(_constituent(kind, works, packs) for kind in ("native", "ordinary"))
    dags = {spec.dag_id: spec for work in works for spec in [_dag(work, packs[work.id])]}
    files = [FileEntry.of(_pack_file(one), pack.canonical_bytes()) for one, pack in packs.items()]
    files += [FileEntry.of(_dag_file(one), spec.canonical_bytes()) for one, spec in dags.items()]
    release = ReleaseV3(name=name, constituents=constituents, files=in_order(files, lambda each: each.path))
    bindings = BindingSetV1(
        environment=environment,
        bindings=tuple(Binding(alias=alias, reference=f"{alias}.main") for alias in sorted(servers)),
    )
    registry = ConnectionRegistryV1(
        connections=tuple(connection_of(alias, servers[alias]) for alias in sorted(servers))
    )
    own = [
        FileEntry.of(path, document.canonical_bytes())
        for path, document in ((RELEASE_FILE, release), (BINDINGS_FILE, bindings), (REGISTRY_FILE, registry))
    ]
    deployment = DeploymentV3(
        environment=environment,
        family=Family.NONPRODUCTION,
        release=release.digest,
        bindings=bindings.digest,
        registry=registry.digest,
        files=in_order([*files, *own], lambda each: each.path),
    )
    return Parent(
        deployment_id=deployment.digest,
        deployment=deployment,
        release=release,
        bindings=bindings,
        registry=registry,
        packs=packs,
        dags=dags,
        directory=Path("/deployments") / deployment.digest,
    )


def connection_of(alias: str, server: SimulatedServer, family: Family = Family.NONPRODUCTION) -> Connection:
    """Return the registry's entry for a server, with what it shows now pinned."""
    managed = server.enrolled.managed_schemas if server.enrolled else ()
    stages = bool(managed) and server.kind is EngineKind.CLICKHOUSE
    pinned = DatabaseAuthority(
        name=server.database,
        incarnation_id=server.incarnation.incarnation_id,
        facts=tuple(Fact(name=name, value=value) for name, value in server.facts),
        managed_schemas=tuple(sorted(managed)),
        staging_schema=STAGING if stages else None,
    )
    return Connection(
        reference=f"{alias}.main",
        kind=server.kind,
        endpoint=EndpointText(host=f"{alias}.test", port=1, database=server.database),
        tls=TlsMode.DISABLED,
        composition_service_id=server.service_id,
        family=family,
        databases=(pinned,),
        credentials=CredentialReferences(
            controller=f"env:{alias.upper()}" if managed else None, reader=f"env:{alias.upper()}_READER"
        ),
    )


def _constituent(kind: Literal["native", "ordinary"], works: Sequence[Work], packs: Mapping[str, Pack]) -> Constituent:
    own = sorted((work for work in works if work.id.startswith("ordinary.") == (kind == "ordinary")), key=_id)
    entries = tuple(
        PackEntry(
            workload_id=work.id,
            kind="execution" if isinstance(work, DbtWork) else "transfer",
            file=_pack_file(work.id),
            digest=packs[work.id].digest,
            state=None if isinstance(work, DbtWork) else STATE,
        )
        for work in own
    )
    specs = in_order([_dag(work, packs[work.id]) for work in own], lambda each: each.dag_id)
    return Constituent(
        kind=kind,
        empty=not own,
        tree_digest=digest_of(kind.encode()),
        packs=entries,
        dags=tuple(DagEntry(dag_id=spec.dag_id, file=_dag_file(spec.dag_id), digest=spec.digest) for spec in specs),
    )


def _id(work: Work) -> str:
    return work.id


def _dag(work: Work, pack: Pack) -> DagSpecV1:
    last = work.id.rpartition(".")[2]
    task = PlannedTask(
        task_id=last,
        workload_id=work.id,
        operator="dbt" if isinstance(work, DbtWork) else "transfer",
        pack_file=_pack_file(work.id),
        pack_digest=pack.digest,
        timeout_seconds=3600,
        retries=2,
        way=None if isinstance(pack, ExecutionPackV2) else pack.publication.way,
    )
    constituent: Literal["native", "ordinary"] = "ordinary" if work.id.startswith("ordinary.") else "native"
    return DagSpecV1(dag_id=f"flights.{last}", constituent=constituent, tasks=(task,), edges=())


def _pack_file(workload_id: str) -> str:
    return f"packs/{workload_id}.json"


def _dag_file(dag_id: str) -> str:
    return f"dags/{dag_id}.json"
