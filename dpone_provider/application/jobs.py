"""A pack as the support matrix sees it."""

from __future__ import annotations

from dpone_provider.application.parent import Pack
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.cells import Cell, Job, JobKind, cell_for
from dpone_provider.domain.identity import Family
from dpone_provider.domain.outcomes import Refused


def job_of(pack: Pack) -> Job:
    """Return the job of a pack; what a pack cannot say (hooks, queries) was refused when it was compiled."""
    match pack:
        case ExecutionPackV2():
            return Job(workload_id=pack.id, kind=JobKind.DBT)
        case TransferPackV1():
            return Job(
                workload_id=pack.id,
                kind=JobKind.TRANSFER,
                strategy=pack.strategy,
                atomicity=pack.state.atomicity,
                provisioning=pack.state.provisioning,
            )


def cell_of(pack: Pack, family: Family) -> Cell | Refused:
    """Return the cell of a pack in a database of ``family``."""
    match pack:
        case ExecutionPackV2():
            return cell_for(job_of(pack), None, pack.adapter.kind, family)
        case TransferPackV1():
            return cell_for(job_of(pack), pack.source.kind, pack.target.kind, family)
