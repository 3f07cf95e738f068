"""Which relations a workload may write: its targets and every helper that its engine's adapter makes beside them.

The helper names of dbt's adapters are facts of the installed macros (dbt-postgres 1.11:
``postgres__make_relation_with_suffix``). A test builds a node of every kind on PostgreSQL and compares them with every
relation that the server saw defined. What incremental models and snapshots stage there are temporary tables of their
session; they have no slot. For dbt-sqlserver the names are read from the macros of 1.11.3 and 1.12.1
(``create_table_as``, ``table_dml_refresh``, ``snapshot``, ``make_temp_relation``).
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
_MSSQL_VIEW = "__dbt_tmp_vw"
_MSSQL_HELPERS = (
    *((suffix, Role.INTERMEDIATE) for suffix in ("__dbt_tmp", "__dbt_temp", "__dbt_refresh")),
    ("__dbt_backup", Role.BACKUP),
    # Whatever is built is selected from a view of its own: the target (first build), and each of the above.
    *((f"{built}{_MSSQL_VIEW}", Role.HELPER) for built in ("", "__dbt_tmp", "__dbt_temp", "__dbt_refresh")),
    ("_snapshot_staging_temp_view", Role.HELPER),
)
_POSTGRES_LIMIT = 63


def written_by_dbt(engine: EngineKind, node: DbtNode) -> tuple[WrittenRelation, ...]:
    """Return every relation that running ``node`` may write, in name order.

    PostgreSQL's adapter shortens the base so that base and suffix fit 63 characters, SQL Server's does not shorten.

    Raises:
        ValueError: dbt has no adapter for ``engine`` here.
    """
    if engine not in (EngineKind.POSTGRES, EngineKind.MSSQL):
        raise ValueError(f"no dbt adapter is modelled for {engine}")
    if node.relation is None or node.resource_type not in ("model", "seed", "snapshot"):
        return ()
    written = {WrittenRelation(node.relation, Role.TARGET)}
    for name, role in _helpers(engine, node.resource_type, node.relation.name):
        written.add(WrittenRelation(Relation(node.relation.schema, name), role))
    return tuple(sorted(written))


def _helpers(engine: EngineKind, resource_type: str, name: str) -> tuple[tuple[str, Role], ...]:
    if engine is EngineKind.MSSQL:
        return tuple((name + suffix, role) for suffix, role in _MSSQL_HELPERS)
    if resource_type != "model":
        return ()  # seeds are filled in place, snapshots merged from a temporary table
    return tuple((name[: _POSTGRES_LIMIT - len(suffix)] + suffix, role) for suffix, role in _POSTGRES_HELPERS)
