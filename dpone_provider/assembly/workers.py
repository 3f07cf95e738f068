"""The worker's parts for one job, from the kinds of its two ends."""

from __future__ import annotations

from dpone_provider.application.load import Channel, Worker
from dpone_provider.application.ports.time import Clock
from dpone_provider.assembly.engines import ENGINES
from dpone_provider.assembly.services import reader_of
from dpone_provider.assembly.worker_job import WorkerJob


def worker_of(job: WorkerJob, channel: Channel, clock: Clock) -> Worker:
    """Return the worker of a job: adapters are imported for its two engines only."""
    target = ENGINES[job.target.endpoint.kind]
    return Worker(
        reader=reader_of(job.source, job.source_facts),
        writer=target.staging(job),
        publisher=target.fenced(job),
        channel=channel,
        clock=clock,
    )
