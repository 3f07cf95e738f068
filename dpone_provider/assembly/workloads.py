"""Workloads of a deployment, ready to run or to be observed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dpone_provider.application.attempt import Workload
from dpone_provider.application.dbt_workload import DbtWorkload
from dpone_provider.application.observation import DbtObserver
from dpone_provider.application.parent import Parent
from dpone_provider.application.ports.credentials import Credentials
from dpone_provider.application.ports.dbt import CompiledAs, DbtRunner
from dpone_provider.application.ports.gate import GrantPlan
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.process import ChildCommand, ChildRunner
from dpone_provider.application.ports.services import Services
from dpone_provider.application.ports.tables import PublishJob, TargetBinding
from dpone_provider.application.standing import SourceStanding, TargetStanding
from dpone_provider.application.transfer_workload import TransferWorkload
from dpone_provider.assembly.reach import reader_login
from dpone_provider.assembly.services import pinned_facts
from dpone_provider.assembly.settings import CONTROL_SCHEMA
from dpone_provider.assembly.worker_job import Login, WorkerJob
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.dbt_outcome import ExpectedNode
from dpone_provider.domain.footprint import Role
from dpone_provider.domain.identity import EngineKind, Relation, stage_name, staged_name

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadMaker:
    """Makes the workloads of one deployment. ``directory`` is a private one for the child, ``seconds`` its time."""

    ledger: Ledger
    services: Services
    credentials: Credentials
    children: ChildRunner
    dbt: DbtRunner
    seconds: float
    child_user: int | None
    told: Told
    control_database: str = CONTROL_SCHEMA

    def make(self, parent: Parent, workload_id: str, directory: Path) -> Workload:
        """Return the workload."""
        pack = parent.packs[workload_id]
        match pack:
            case ExecutionPackV2():
                return self._dbt(parent, pack, directory)
            case TransferPackV1():
                return self._transfer(parent, pack, directory)

    def _transfer(self, parent: Parent, pack: TransferPackV1, directory: Path) -> TransferWorkload:
        source, target = parent.connection(pack.source.connection), parent.connection(pack.target.connection)

        def child_of(job: PublishJob, binding: TargetBinding, issued: Credential) -> ChildCommand:
            reading = reader_login(self.credentials, source)
            line = WorkerJob(
                pack=pack,
                job=job,
                binding=binding,
                source=reading,
                source_facts=pinned_facts(source),
                target=Login(target.address, issued),
                seconds=self.seconds,
                control_database=self.control_database,
            ).to_line()
            return ChildCommand(
                argv=(sys.executable, "-I", "-m", "dpone_provider.worker"),
                environment=_environment(directory),
                secret_environment={},
                standard_input=line,
                directory=directory,
                user=self.child_user,
                masked=(reading.credential.password, issued.password),
            )

        return TransferWorkload(
            service_id=target.service.service_id,
            standing=self._standing(target),
            source=SourceStanding(connection=source, catalog=self.services.catalog(source)),
            job_of=lambda attempt: publish_job(attempt, pack, target),
            publisher=self.services.publisher(target),
            ledger=self.ledger,
            children=self.children,
            child_of=child_of,
            plan_of=lambda job: _transfer_grants(target, job),
            progress=lambda rows, sent: self.told(f"{pack.id}: {rows:,} rows, {sent:,} bytes staged"),
        )

    def _dbt(self, parent: Parent, pack: ExecutionPackV2, directory: Path) -> DbtWorkload:
        target = parent.connection(pack.connection)
        bundle = parent.directory / "native" / pack.project / "project.tar.gz"
        targets = tuple(one.written.relation for one in pack.writes if one.written.role is Role.TARGET)

        def child_of(issued: Credential) -> ChildCommand:
            return self.dbt.command(
                bundle,
                directory,
                tuple(node.id for node in pack.nodes),
                target.address,
                pack.target_schema,
                issued,
                pack.threads,
                _compiled_as(pack),
            )

        return DbtWorkload(
            service_id=target.service.service_id,
            standing=self._standing(target),
            ledger=self.ledger,
            children=self.children,
            runner=self.dbt,
            child_of=child_of,
            looking=DbtObserver(
                catalog=self.services.catalog(target),
                expected=tuple(ExpectedNode(node.id, node.rebuilt_whole) for node in pack.nodes),
                targets=targets,
            ),
            plan=GrantPlan(writer_schemas=tuple(sorted({one.schema_name for one in pack.writes}))),
            progress=lambda node, status: self.told(f"{pack.id}: {node} {status}"),
        )

    def _standing(self, target: Connection) -> TargetStanding:
        return TargetStanding(connection=target, catalog=self.services.catalog(target), ledger=self.ledger)


def publish_job(attempt: Attempt, pack: TransferPackV1, target: Connection) -> PublishJob:
    """Return the refresh that an attempt of a transfer is."""
    slot, epoch = attempt.writes[0]
    staging = next((one.staging_schema for one in target.databases if one.name == target.endpoint.database), None)
    name = stage_name(slot) if staging is None else staged_name(slot, attempt.attempt_id)
    return PublishJob(
        attempt_id=attempt.attempt_id,
        occurrence_id=attempt.binding.occurrence_id,
        slot_id=slot,
        epoch=epoch,
        target=pack.target.relation,
        staged=Relation(staging or pack.target.schema_name, name),
        declared=pack.declared,
    )


def _compiled_as(pack: ExecutionPackV2) -> CompiledAs:
    return CompiledAs(
        manifest_digest=pack.manifest_digest,
        versions=tuple((one.name, one.version) for one in pack.adapter.versions),
        flags=tuple((one.name, one.value) for one in pack.adapter.flags),
    )


def _transfer_grants(target: Connection, job: PublishJob) -> GrantPlan:
    if target.kind is EngineKind.CLICKHOUSE:
        return GrantPlan(staged_tables=(job.staged,))
    return GrantPlan(writer_schemas=(job.target.schema,))


def _environment(directory: Path) -> Mapping[str, str]:
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(directory), "TMPDIR": str(directory)}
