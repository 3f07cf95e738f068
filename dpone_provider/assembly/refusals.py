"""What the runtime refuses by itself."""

from __future__ import annotations

from dpone_provider.domain.identity import Digest, EngineKind
from dpone_provider.domain.outcomes import Refused, refuse


def no_workload(workload_id: str, deployment_id: Digest) -> Refused:
    """Return the refusal of a workload that the task's deployment does not have."""
    return refuse(
        "no_such_workload",
        f"workload {workload_id}",
        found=f"no such workload in deployment {deployment_id}",
        allowed="a workload of the deployment that the task names",
        next_command="trigger a new run",
    )


def not_one_attempt(start: str, found: int, among: str) -> Refused:
    """Return the refusal of an attempt's id of which there are none, or several; ``among`` says where was looked."""
    return refuse(
        "no_such_attempt" if found == 0 else "attempt_id_ambiguous",
        f"attempt {start}",
        found=f"{found} attempts whose id begins so, among {among}",
        allowed="exactly one, or all 64 digits of an id",
        next_command="dpone attempt list",
    )


def no_pointer(environment: str) -> Refused:
    """Return the refusal of a machine that was never promoted to."""
    return refuse(
        "no_current_deployment",
        f"environment {environment}",
        found="no current pointer in this machine's cache",
        allowed="a promoted deployment",
        next_command="dpone airflow cache-sync",
    )


def no_authority_on(kind: EngineKind, subject: str) -> Refused:
    """Return the refusal of an engine that no ledger is on."""
    return refuse(
        "authority_engine_unsupported",
        subject,
        found=f"a {kind} URL",
        allowed="postgresql://user:password@host:port/database or mssql://… of the same form",
        next_command="give the reference of the control authority's database",
    )
