"""Which relations a workload may write: its targets and every helper that its engine's adapter makes beside them.

The helper names of dbt's adapters are facts of the installed macros; a test compares them with the installed version
(dbt-postgres 1.11: ``make_temp_relation``, ``make_backup_relation``, ``make_intermediate_relation``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpone_provider.domain.identity import EngineKind, Relation


class Role(StrEnum):
    """Why a workload may write a relation."""

    TARGET = "target"
    INTERMEDIATE = "intermediate"
    BACKUP = "backup"
    HELPER = "helper"


@dataclass(frozen=True, slots=True, order=True)
class WrittenRelation:
    """A relation that a workload may write, and why."""

    relation: Relation
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class DbtNode:
    """What a workload needs to know of one node of a manifest.

    ``relation`` is None for nodes without one (tests, ephemeral models). ``reads`` are the relations of its sources
    and refs. ``rebuilt_whole`` tells that a next run builds it anew, whatever a killed run left.
    """

    node_id: str
    resource_type: str
    materialized: str
    relation: Relation | None
    reads: tuple[Relation, ...]

    @property
    def rebuilt_whole(self) -> bool:
        """Tables, views and seeds are replaced as a whole; tests write nothing; incremental and snapshot are not."""
        return self.materialized in ("table", "view", "ephemeral", "seed", "test")


_POSTGRES_HELPERS = (("__dbt_tmp", Role.INTERMEDIATE), ("__dbt_backup", Role.BACKUP))
_MSSQL_HELPERS = (
    ("__dbt_tmp", Role.INTERMEDIATE),
    ("__dbt_temp", Role.INTERMEDIATE),
    ("__dbt_backup", Role.BACKUP),
    ("__dbt_refresh", Role.INTERMEDIATE),
    ("__dbt_tmp_vw", Role.HELPER),
    ("__dbt_temp_vw", Role.HELPER),
    ("_snapshot_staging_temp_view", Role.HELPER),
)
_HELPERS = {EngineKind.POSTGRES: _POSTGRES_HELPERS, EngineKind.MSSQL: _MSSQL_HELPERS}
_NAME_LIMITS = {EngineKind.POSTGRES: 63, EngineKind.MSSQL: 128}


def written_by_dbt(engine: EngineKind, node: DbtNode) -> tuple[WrittenRelation, ...]:
    """Return every relation that running ``node`` may write, in name order.

    PostgreSQL's adapter shortens the base so that base and suffix fit 63 bytes, SQL Server's does not shorten.

    Raises:
        ValueError: dbt has no adapter for ``engine`` here.
    """
    if engine not in _HELPERS:
        raise ValueError(f"no dbt adapter is modelled for {engine}")
    if node.relation is None or node.resource_type not in ("model", "seed", "snapshot"):
        return ()
    limit = _NAME_LIMITS[engine]
    written = {WrittenRelation(node.relation, Role.TARGET)}
    for suffix, role in _HELPERS[engine]:
        base = node.relation.name
        if engine is EngineKind.POSTGRES:
            base = base[: limit - len(suffix)]
        written.add(WrittenRelation(Relation(node.relation.schema, base + suffix), role))
    return tuple(sorted(written))
