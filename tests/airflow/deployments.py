"""Deployments of as many transfers as a test wants: valid documents, in memory and as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from dpone_provider.adapters.cache.deployments import FileDeploymentCache
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.parent import Parent
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
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.documents.dag_spec import DagSpecV1, Edge, PlannedTask
from dpone_provider.documents.deployment import BINDINGS_FILE, REGISTRY_FILE, RELEASE_FILE, DeploymentV3
from dpone_provider.documents.model import Document, FileEntry, in_order
from dpone_provider.documents.release import ReleaseV3
from dpone_provider.documents.transfer_pack import (
    ColumnText,
    OrdinaryOrigin,
    PublicationPolicy,
    RefreshBounds,
    SchemaPolicy,
    SourceTable,
    StateDeclaration,
    TargetTable,
    TransferPackV1,
)
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.identity import (
    Digest,
    EngineKind,
    Family,
    Incarnation,
    OccurrenceId,
    Service,
    ServiceId,
    digest_of,
)

ENVIRONMENT = "synthetic"
SERVICE = "6f0c7d4e-6f0a-4a53-9a0e-0d7a3a1f5b11"
OCCURRENCES = (
    OccurrenceId("11111111-1111-4111-8111-111111111111"),
    OccurrenceId("22222222-2222-4222-8222-222222222222"),
)
STATE = StateDeclaration(atomicity="target_atomic", provisioning="external")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """One deployment: as the use cases see it, and its files by path."""

    parent: Parent
    files: Mapping[str, bytes]

    @property
    def deployment_id(self) -> Digest:
        return self.parent.deployment_id

    def pointer(self, generation: int = 1) -> CurrentPointerV1:
        """A pointer at this deployment, of the occurrence of that generation."""
        return CurrentPointerV1(
            environment=ENVIRONMENT,
            deployment_id=self.deployment_id,
            release_id=self.parent.deployment.release,
            occurrence_id=OCCURRENCES[generation - 1],
            generation=generation,
            at="2026-11-29T12:00:00.000000Z",
            by="dpone_controller",
        )


@dataclass(frozen=True, slots=True)
class DiskCache:
    """A deployment cache as `cache-sync` leaves it; ``sources`` is where deployments are written first."""

    root: Path
    sources: Path

    def hold(self, deployment: Built) -> Path:
        """Materialise a deployment; return its directory in the cache."""
        source = self.sources / deployment.deployment_id.removeprefix("sha256:")
        for path, data in deployment.files.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes(data)
        cache = FileDeploymentCache(self.root)
        return settled(cache.materialise(settled(cache.verify(source, deployment.deployment_id)))).directory

    def point(self, deployment: Built, generation: int = 1) -> Path:
        """Materialise a deployment and point at it; return its directory in the cache."""
        directory = self.hold(deployment)
        cache = FileDeploymentCache(self.root)
        settled(cache.swap_pointer(settled(cache.pointer(ENVIRONMENT)), deployment.pointer(generation)))
        return directory


def transfer_pack(workload_id: str) -> TransferPackV1:
    """A transfer from the lab's shop to its warehouse; its table is named for the workload."""
    table = workload_id.removeprefix("ordinary.")
    return TransferPackV1(
        id=workload_id,
        origin=OrdinaryOrigin(),
        source=SourceTable(connection="shop", kind=EngineKind.POSTGRES, schema_name="public", table=table),
        target=TargetTable(connection="warehouse", kind=EngineKind.POSTGRES, schema_name="stage", table=table),
        columns=(ColumnText(name="id", type="int64", nullable=False),),
        key=("id",),
        strategy="full_refresh",
        state=STATE,
        bounds=RefreshBounds(max_rows=1000, max_bytes=10**6, batch_rows=100),
        publication=PublicationPolicy(way="replace"),
        schema_policy=SchemaPolicy(),
        timeout_seconds=600,
    )


def built(tasks: int = 2, *, dags: int = 1, retries: int = 0, name: str = "sales") -> Built:
    """A deployment of ``dags`` chains of ``tasks`` transfers each."""
    packs: dict[str, TransferPackV1] = {}
    specs: list[DagSpecV1] = []
    for number in range(dags):
        chain = [f"t{number:03}_{step:04}" for step in range(tasks)]
        packs |= {f"ordinary.{one}": transfer_pack(f"ordinary.{one}") for one in chain}
        specs.append(_dag_spec(f"{name}.dag{number:03}", chain, packs, retries))
    documents = {_pack_file(workload_id): pack.canonical_bytes() for workload_id, pack in sorted(packs.items())} | {
        f"dags/{spec.dag_id}.json": spec.canonical_bytes() for spec in specs
    }
    release = _release(name, packs, specs, documents)
    bindings, registry = _bindings(), _registry()
    documents |= {RELEASE_FILE: release.canonical_bytes(), BINDINGS_FILE: bindings.canonical_bytes()}
    documents |= {REGISTRY_FILE: registry.canonical_bytes()}
    deployment = DeploymentV3(
        environment=ENVIRONMENT,
        family=Family.NONPRODUCTION,
        release=release.digest,
        bindings=bindings.digest,
        registry=registry.digest,
        files=_entries(documents),
    )
    parent = Parent(
        deployment_id=deployment.digest,
        deployment=deployment,
        release=release,
        bindings=bindings,
        registry=registry,
        packs=packs,
        dags={spec.dag_id: spec for spec in specs},
        directory=Path("/nonexistent"),
    )
    documents["deployment.json"] = deployment.canonical_bytes()
    listed = "".join(
        f"{digest_of(data).removeprefix('sha256:')}  {len(data)}  {path}\n" for path, data in sorted(documents.items())
    )
    return Built(parent=parent, files=documents | {"files.sha256": listed.encode()})


def _pack_file(workload_id: str) -> str:
    return workload_id.replace(".", "/", 1) + ".json"


def _dag_spec(dag_id: str, chain: list[str], packs: Mapping[str, Document], retries: int) -> DagSpecV1:
    return DagSpecV1(
        dag_id=dag_id,
        constituent="ordinary",
        tasks=tuple(
            PlannedTask(
                task_id=one,
                workload_id=f"ordinary.{one}",
                operator="transfer",
                pack_file=_pack_file(f"ordinary.{one}"),
                pack_digest=packs[f"ordinary.{one}"].digest,
                timeout_seconds=600,
                retries=retries,
                way="replace",
            )
            for one in chain
        ),
        edges=tuple(Edge(up=up, down=down) for up, down in pairwise(chain)),
    )


def _release(
    name: str, packs: Mapping[str, Document], specs: list[DagSpecV1], documents: Mapping[str, bytes]
) -> ReleaseV3:
    nothing = Constituent(kind="native", empty=True, tree_digest=digest_of(b""), packs=(), dags=())
    ordinary = Constituent(
        kind="ordinary",
        empty=False,
        tree_digest=digest_of(name.encode()),
        packs=tuple(
            PackEntry(
                workload_id=workload_id,
                kind="transfer",
                file=_pack_file(workload_id),
                digest=pack.digest,
                state=STATE,
            )
            for workload_id, pack in sorted(packs.items())
        ),
        dags=tuple(DagEntry(dag_id=spec.dag_id, file=f"dags/{spec.dag_id}.json", digest=spec.digest) for spec in specs),
    )
    return ReleaseV3(name=name, constituents=(nothing, ordinary), files=_entries(documents))


def _entries(documents: Mapping[str, bytes]) -> tuple[FileEntry, ...]:
    return in_order((FileEntry.of(path, data) for path, data in documents.items()), lambda each: each.path)


def _bindings() -> BindingSetV1:
    return BindingSetV1(
        environment=ENVIRONMENT,
        bindings=tuple(Binding(alias=alias, reference=f"lab.{alias}") for alias in ("shop", "warehouse")),
    )


def _registry() -> ConnectionRegistryV1:
    return ConnectionRegistryV1(connections=(_connection("shop", ()), _connection("warehouse", ("stage",))))


def _connection(database: str, managed: tuple[str, ...]) -> Connection:
    incarnation = Incarnation(Service(EngineKind.POSTGRES, ServiceId(SERVICE)), database, (("oid", "5"),))
    return Connection(
        reference=f"lab.{database}",
        kind=EngineKind.POSTGRES,
        endpoint=EndpointText(host="127.0.0.1", port=5432, database=database),
        tls=TlsMode.DISABLED,
        composition_service_id=ServiceId(SERVICE),
        family=Family.NONPRODUCTION,
        databases=(
            DatabaseAuthority(
                name=database,
                incarnation_id=incarnation.incarnation_id,
                facts=(Fact(name="oid", value="5"),),
                managed_schemas=managed,
            ),
        ),
        credentials=CredentialReferences(controller="env:CONTROLLER", reader="env:READER"),
    )
