"""One valid document of every schema, as plain values: what tests damage, and what they build upon."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from dpone_provider.documents.activation_receipt import CompositionActivationReceiptV1, SlotEpoch
from dpone_provider.documents.activation_request import (
    CompositionActivationRequestV1,
    RequestContext,
    RequestedDatabase,
    RequestedSlot,
    RequestedWorkload,
)
from dpone_provider.documents.attempt import AirflowTryText, CompositionAttemptV1
from dpone_provider.documents.attempt_proof import (
    CompositionAttemptProofV1,
    NamedGate,
    Observation,
    observations_digest,
)
from dpone_provider.documents.connection_registry import Fact
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.documents.desired_state import DesiredStateV1
from dpone_provider.documents.environment import EnvironmentV1
from dpone_provider.documents.model import Document
from dpone_provider.documents.reading import document_of
from dpone_provider.documents.run_report import RunReportV1, Stage, Verdict
from dpone_provider.documents.workspace import WorkspaceV1
from dpone_provider.domain.attempt import AttemptState, ProofKind
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    EngineKind,
    Family,
    Incarnation,
    OccurrenceId,
    Relation,
    Service,
    ServiceId,
    digest_of,
    slot_id,
)
from dpone_provider.domain.occurrence import OccurrenceState

DIGEST = digest_of(b"some bytes")
OCCURRENCE = OccurrenceId("5f0c7b0e-6f2b-4d51-9c1e-0d6b5a3f2e11")
SERVICE = ServiceId("0b8a4b52-7a37-4a0e-a4a6-1d6a3f0f9c21")
INSTANT = "2026-11-29T12:34:56.000001Z"
FACTS = (("database_oid", "16384"), ("system_identifier", "7654321"))
INCARNATION = Incarnation(Service(EngineKind.POSTGRES, SERVICE), "warehouse", FACTS)
SLOT = slot_id(INCARNATION.incarnation_id, Relation("stage", "orders"))

WORKSPACE: dict[str, Any] = {
    "schema": "dpone.workspace.v1",
    "name": "sales",
    "native": [
        {
            "project": "dbt/",
            "connection": "warehouse",
            "schema": "mart",
            "workloads": [
                {
                    "id": "sales_mart",
                    "select": ["+daily_sales"],
                    "publish": [
                        {
                            "model": "daily_sales",
                            "to": {
                                "connection": "analytics",
                                "database": "mart",
                                "table": "daily_sales",
                                "order_by": ["day", "store_id"],
                            },
                        }
                    ],
                }
            ],
        }
    ],
    "ordinary": [
        {
            "id": "orders",
            "from": {"connection": "shop", "schema": "public", "table": "orders"},
            "to": {"connection": "warehouse", "schema": "stage", "table": "orders"},
            "strategy": "full_refresh",
            "state": {"atomicity": "target_atomic", "provisioning": "external"},
        }
    ],
    "environments": {"synthetic": "environments/synthetic.yaml"},
}


def connection(
    kind: str, database: str, *, managed: list[str], credentials: dict[str, str], **more: Any
) -> dict[str, Any]:
    """One connection of an environment file."""
    number = {"postgres": 1, "clickhouse": 2, "mssql": 3}.get(kind, 9)
    entry: dict[str, Any] = {
        "facts": {"database_oid": str(number), "system_identifier": f"sys-{database}"},
        "managed_schemas": managed,
    }
    if kind == "clickhouse" and managed:
        entry |= {"staging_schema": "dpone_stage", "engine": "Atomic"}
    return {
        "kind": kind,
        "endpoint": {"host": "127.0.0.1", "port": 5000 + number, "database": database},
        "tls": "disabled",
        "composition_service_id": f"0b8a4b52-7a37-4a0e-a4a6-{number:012d}",
        "family": "nonproduction",
        "databases": {database: entry},
        "credentials": credentials,
    } | more


def environment_value() -> dict[str, Any]:
    """An environment file with a source, a warehouse and an analytics database."""
    return {
        "schema": "dpone.environment.v1",
        "name": "synthetic",
        "family": "nonproduction",
        "bindings": {"shop": "shop.lab", "warehouse": "warehouse.lab", "analytics": "analytics.lab"},
        "connections": {
            "shop.lab": connection("postgres", "shop", managed=[], credentials={"reader": "env:SHOP"}),
            "warehouse.lab": connection(
                "postgres",
                "warehouse",
                managed=["mart", "stage"],
                credentials={"controller": "env:WAREHOUSE", "reader": "env:WAREHOUSE_READER"},
            ),
            "analytics.lab": connection(
                "clickhouse", "mart", managed=["mart"], credentials={"controller": "file:/run/secrets/analytics"}
            ),
        },
    }


def request() -> CompositionActivationRequestV1:
    """A request of one workload."""
    return CompositionActivationRequestV1(
        context=RequestContext(
            occurrence_id=OCCURRENCE, environment="synthetic", release_id=DIGEST, deployment_id=DIGEST
        ),
        workloads=(
            RequestedWorkload(
                workload_id="ordinary.orders",
                constituent="ordinary",
                cell="postgres_postgres_full_refresh_lab_v1",
                pack_digest=DIGEST,
                plan_digest=DIGEST,
                services=(SERVICE,),
                writes=(SLOT,),
                reads=(),
            ),
        ),
        databases=(
            RequestedDatabase(
                incarnation_id=INCARNATION.incarnation_id,
                kind=EngineKind.POSTGRES,
                service_id=SERVICE,
                database="warehouse",
                facts=tuple(Fact(name=name, value=value) for name, value in FACTS),
                family=Family.NONPRODUCTION,
                gate_digest="sha256:gate",
            ),
        ),
        slots=(
            RequestedSlot(slot_id=SLOT, incarnation_id=INCARNATION.incarnation_id, schema_name="stage", name="orders"),
        ),
        evidence=(DIGEST,),
    )


def attempt() -> CompositionAttemptV1:
    """An attempt of that workload."""
    tried = AirflowTry(
        dag_id="sales.orders",
        run_id="manual__1",
        task_id="orders",
        map_index=-1,
        try_number=1,
        task_instance_id=UUID(OCCURRENCE),
    )
    binding = AttemptBinding(
        occurrence_id=OCCURRENCE,
        constituent="ordinary",
        workload_id="ordinary.orders",
        pack_digest=DIGEST,
        plan_digest=DIGEST,
        airflow=tried,
    )
    return CompositionAttemptV1(
        attempt_id=binding.attempt_id,
        environment="synthetic",
        occurrence_id=OCCURRENCE,
        constituent="ordinary",
        workload_id="ordinary.orders",
        pack_digest=DIGEST,
        plan_digest=DIGEST,
        airflow=AirflowTryText(
            dag_id=tried.dag_id,
            run_id=tried.run_id,
            task_id=tried.task_id,
            map_index=tried.map_index,
            try_number=tried.try_number,
            task_instance_id=str(tried.task_instance_id),
        ),
        services=(SERVICE,),
        writes=(SlotEpoch(slot_id=SLOT, epoch=3),),
        reads=(),
        ledger_sequence=17,
    )


def pointer(generation: int = 1) -> CurrentPointerV1:
    """A pointer of some generation."""
    return CurrentPointerV1(
        environment="synthetic",
        deployment_id=DIGEST,
        release_id=DIGEST,
        occurrence_id=OCCURRENCE,
        generation=generation,
        at=INSTANT,
        by="dpone_controller",
    )


def small_documents() -> tuple[Document, ...]:
    """One valid document of every schema that needs no files; the others come out of compiling."""
    observed = (Observation(name="sessions", value="0"),)
    workspace, environment = (
        document_of(WorkspaceV1, WORKSPACE, "w"),
        document_of(EnvironmentV1, environment_value(), "e"),
    )
    assert isinstance(workspace, WorkspaceV1)
    assert isinstance(environment, EnvironmentV1)
    return (
        workspace,
        environment,
        request(),
        CompositionActivationReceiptV1(
            request_digest=request().digest,
            occurrence_id=OCCURRENCE,
            environment="synthetic",
            state=OccurrenceState.PREPARED,
            generation=1,
            epochs=(SlotEpoch(slot_id=SLOT, epoch=1),),
        ),
        attempt(),
        CompositionAttemptProofV1(
            kind=ProofKind.OUTCOME,
            attempt_id=attempt().attempt_id,
            names_gates=(NamedGate(service_id=SERVICE, principal="dpone_v3_0123"),),
            outcome=AttemptState.SUCCEEDED,
            observed=observed,
            evidence_digest=observations_digest(observed),
            observed_at=INSTANT,
        ),
        pointer(),
        DesiredStateV1(environment="synthetic", deployment_id=DIGEST, expected_predecessor="absent"),
        RunReportV1(
            environment="synthetic",
            started_at=INSTANT,
            ended_at=INSTANT,
            stages=(Stage(stage="compile", verdict=Verdict.OBSERVED, observed="2 constituents", milliseconds=12),),
            expected_workloads=1,
            observed_workloads=1,
        ),
    )
