"""The worker's parts for one job, from the kinds of its two ends."""

from __future__ import annotations

from dpone_provider.application.load import Channel, Worker
from dpone_provider.application.ports.time import Clock
from dpone_provider.assembly.services import reader_of
from dpone_provider.assembly.worker_job import WorkerJob
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import refuse, unwind


def worker_of(job: WorkerJob, channel: Channel, clock: Clock) -> Worker:
    """Return the worker of a job: adapters are imported for its two engines only."""
    reader = reader_of(job.source, job.source_facts)
    at = job.target
    match at.endpoint.kind:
        case EngineKind.POSTGRES:
            from dpone_provider.adapters.postgres.writer import PostgresFencedPublisher, PostgresStagingWriter

            return Worker(
                reader=reader,
                writer=PostgresStagingWriter(at.endpoint, at.credential, job.job, key=job.pack.key),
                publisher=PostgresFencedPublisher(at.endpoint, at.credential, job.binding),
                channel=channel,
                clock=clock,
            )
        case EngineKind.CLICKHOUSE:
            from dpone_provider.adapters.clickhouse.session import ClickHouseServer
            from dpone_provider.adapters.clickhouse.staging import ClickHouseStagingWriter

            server = ClickHouseServer(endpoint=at.endpoint, credential=at.credential)
            return Worker(
                reader=reader,
                writer=ClickHouseStagingWriter(server, job.job, key=job.pack.key),
                publisher=None,
                channel=channel,
                clock=clock,
            )
        case EngineKind.MSSQL:
            unwind(
                refuse(
                    "engine_without_adapter",
                    f"target {job.job.target}",
                    found="SQL Server",
                    allowed="PostgreSQL or ClickHouse in this version",
                    next_command="bind the alias to a supported engine",
                )
            )
