"""The support matrix: the closed set of jobs that are admitted, and why each other one is not.

Anything outside refuses the whole parent before any reservation. Engines and strategies come as plain text, so that
one nobody knows is refused with the same care as one that is known and unsupported.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from dpone_provider.domain.identity import EngineKind, Family
from dpone_provider.domain.outcomes import Refused, refuse


class Cell(StrEnum):
    """The cells of the matrix; the name stands in the activation request."""

    SQLSERVER_DBT = "sqlserver_dbt_v1"
    POSTGRES_MSSQL = "postgres_mssql_full_refresh_v1"
    MSSQL_CLICKHOUSE = "mssql_clickhouse_full_refresh_v1"
    POSTGRES_DBT_LAB = "postgres_dbt_lab_v1"
    POSTGRES_POSTGRES_LAB = "postgres_postgres_full_refresh_lab_v1"
    POSTGRES_CLICKHOUSE_LAB = "postgres_clickhouse_full_refresh_lab_v1"


class JobKind(StrEnum):
    """What a workload does."""

    DBT = "dbt"
    TRANSFER = "transfer"


class Feature(StrEnum):
    """What people ask for and we refuse, each with the reason that is its value."""

    CUSTOM_HOOK = "custom_hook_unsupported"
    SOURCE_QUERY = "source_query_unsupported"
    NESTED_ROUTE = "nested_route_unsupported"
    SNAPSHOT_ROUTE = "snapshot_route_unsupported"
    BACKFILL_ROUTE = "backfill_route_unsupported"
    CLICKHOUSE_CLUSTER = "clickhouse_cluster_unsupported"
    NON_ATOMIC_DATABASE = "non_atomic_database_unsupported"
    UNMODELLED_EFFECT = "unmodelled_effect"


@dataclass(frozen=True, slots=True)
class Asked:
    """An unsupported feature that a workload asks for, with what was found, in words."""

    feature: Feature
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One workload as the matrix sees it. Strategy and state are None for dbt; ``asked`` are unsupported features."""

    workload_id: str
    kind: JobKind
    strategy: str | None = None
    atomicity: str | None = None
    provisioning: str | None = None
    asked: tuple[Asked, ...] = ()


STRATEGY: Final = "full_refresh"
ATOMICITY: Final = "target_atomic"
PROVISIONING: Final = "external"

_BOTH: Final = frozenset(Family)
_LAB: Final = frozenset({Family.NONPRODUCTION})
_ANY_SOURCE: Final = None

MATRIX: Final = MappingProxyType(
    {
        (JobKind.DBT, _ANY_SOURCE, EngineKind.MSSQL): (Cell.SQLSERVER_DBT, _BOTH),
        (JobKind.DBT, _ANY_SOURCE, EngineKind.POSTGRES): (Cell.POSTGRES_DBT_LAB, _LAB),
        (JobKind.TRANSFER, EngineKind.POSTGRES, EngineKind.MSSQL): (Cell.POSTGRES_MSSQL, _BOTH),
        (JobKind.TRANSFER, EngineKind.MSSQL, EngineKind.CLICKHOUSE): (Cell.MSSQL_CLICKHOUSE, _BOTH),
        (JobKind.TRANSFER, EngineKind.POSTGRES, EngineKind.POSTGRES): (Cell.POSTGRES_POSTGRES_LAB, _LAB),
        (JobKind.TRANSFER, EngineKind.POSTGRES, EngineKind.CLICKHOUSE): (Cell.POSTGRES_CLICKHOUSE_LAB, _LAB),
    }
)
"""Every supported combination of job, source engine (None for dbt) and target engine, with the families it is for."""

_ALLOWED: Final = MappingProxyType(
    {
        Feature.CUSTOM_HOOK: "no hooks: what they do is in no footprint",
        Feature.SOURCE_QUERY: "whole tables: a query may have side effects",
        Feature.NESTED_ROUTE: "route direct",
        Feature.SNAPSHOT_ROUTE: "route direct",
        Feature.BACKFILL_ROUTE: "route direct",
        Feature.CLICKHOUSE_CLUSTER: "a single ClickHouse node",
        Feature.NON_ATOMIC_DATABASE: "ClickHouse databases of engine Atomic",
        Feature.UNMODELLED_EFFECT: "tables, views, incremental models, seeds and snapshots, without further effects",
    }
)
CHANGE_IT: Final = "change or remove the workload, then compile again"


def cell_for(job: Job, source_kind: str | None, target_kind: str, family: Family) -> Cell | Refused:
    """Return the cell of a job, or the refusal with its own reason.

    ``source_kind`` and ``target_kind`` are engine names as written (``source_kind`` None for dbt); ``family`` is the
    target database's, pinned at enrolment.
    """
    refused = _refused_engine(job, source_kind, target_kind) or _refused_terms(job) or _refused_feature(job)
    if refused is not None:
        return refused
    source = EngineKind(source_kind) if source_kind is not None else _ANY_SOURCE
    entry = MATRIX.get((job.kind, source, EngineKind(target_kind)))
    if entry is None:
        route = f"{job.kind} {source_kind or ''} → {target_kind}".replace("  ", " ")
        return _refuse("unsupported_cell", job, route, "one of " + _supported())
    cell, families = entry
    if family not in families:
        return _refuse("cell_not_for_family", job, f"{cell} in a {family} database", " or ".join(sorted(families)))
    return cell


def _refused_engine(job: Job, source_kind: str | None, target_kind: str) -> Refused | None:
    known = [kind.value for kind in EngineKind]
    for kind in (source_kind, target_kind):
        if kind is not None and kind not in known:
            return _refuse("unsupported_connector", job, kind, ", ".join(known))
    return None


def _refused_terms(job: Job) -> Refused | None:
    if job.kind is JobKind.DBT:
        return None
    if job.strategy != STRATEGY:
        return _refuse("unsupported_strategy", job, str(job.strategy), STRATEGY)
    if (job.atomicity, job.provisioning) != (ATOMICITY, PROVISIONING):
        found = f"atomicity {job.atomicity}, provisioning {job.provisioning}"
        return _refuse("unsupported_state", job, found, f"atomicity {ATOMICITY}, provisioning {PROVISIONING}")
    return None


def _refused_feature(job: Job) -> Refused | None:
    for asked in job.asked:
        return _refuse(asked.feature.value, job, asked.found, _ALLOWED[asked.feature])
    return None


def _supported() -> str:
    return ", ".join(sorted(f"{job} {source or ''} → {target}".replace("  ", " ") for job, source, target in MATRIX))


def _refuse(reason: str, job: Job, found: str, allowed: str) -> Refused:
    return refuse(
        reason, f"workload {job.workload_id}", found=found or "nothing", allowed=allowed, next_command=CHANGE_IT
    )
