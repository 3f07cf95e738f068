"""``python -m dpone_provider.worker``: run the one job on standard input and end.

Exit code 0: done as told. 1: a failure was said on the event pipe. The outcome is what the controller observes
afterwards, never this code.
"""

from __future__ import annotations

import os
import sys

from dpone_provider.adapters.process.dumpable import forbid_inspection
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.failure_codec import to_json
from dpone_provider.application.load import Source, Worker
from dpone_provider.application.ports.tables import Bounds
from dpone_provider.application.ports.time import Deadline
from dpone_provider.assembly.worker_job import WorkerJob
from dpone_provider.assembly.workers import worker_of
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.worker.channel import EVENTS_FD, PipeChannel, read_line
from dpone_provider.worker.imports import forbid_pandas

MAX_JOB_BYTES = 16 * 1024 * 1024


def main() -> int:
    """Run one job; return the exit code."""
    forbid_inspection()
    forbid_pandas()
    clock = SystemClock()
    with os.fdopen(int(os.environ[EVENTS_FD]), "wb", buffering=0) as events:
        channel = PipeChannel(events, sys.stdin.fileno())
        job = WorkerJob.from_line(read_line(sys.stdin.fileno(), MAX_JOB_BYTES))
        deadline = Deadline.after(clock, job.seconds)
        try:
            run(worker_of(job, channel, clock), job, deadline)
        except DponeError as error:
            channel.say({"event": "failed", **to_json(error.failure)})
            return 1
    return 0


def run(worker: Worker, job: WorkerJob, deadline: Deadline) -> None:
    """Move the pack's table.

    Raises:
        DponeError: with what went wrong.
    """
    pack = job.pack
    source = Source(
        relation=pack.source.relation,
        columns=tuple(column.column for column in pack.columns),
        key=pack.key,
        bounds=Bounds(
            max_rows=pack.bounds.max_rows, max_bytes=pack.bounds.max_bytes, batch_rows=pack.bounds.batch_rows
        ),
    )
    worker.run(source, job.job, deadline)


if __name__ == "__main__":
    raise SystemExit(main())
