"""The support matrix."""

from __future__ import annotations

from dpone_provider.domain.cells import MATRIX
from dpone_provider.domain.identity import EngineKind
from tests.docs.tables import code, table

NAMES = {EngineKind.POSTGRES: "PostgreSQL", EngineKind.MSSQL: "SQL Server", EngineKind.CLICKHOUSE: "ClickHouse"}


def matrix() -> str:
    """Return every cell: what it does, between which engines, in which families of databases."""
    return table(
        ("cell", "workload", "from", "to", "families"),
        (
            (code(cell), job, NAMES[source] if source else "", NAMES[target], ", ".join(sorted(families)))
            for (job, source, target), (cell, families) in MATRIX.items()
        ),
    )
