from __future__ import annotations

from itertools import product

import pytest

from dpone_provider.domain.cells import MATRIX, Asked, Cell, Feature, Job, JobKind, cell_for
from dpone_provider.domain.identity import EngineKind, Family
from dpone_provider.domain.outcomes import Refused

PRODUCTION, NONPRODUCTION = Family.PRODUCTION, Family.NONPRODUCTION
DBT = Job(workload_id="native.p.w", kind=JobKind.DBT)
TRANSFER = Job(
    workload_id="ordinary.t",
    kind=JobKind.TRANSFER,
    strategy="full_refresh",
    atomicity="target_atomic",
    provisioning="external",
)


@pytest.mark.parametrize(
    ("job", "source", "target", "family", "cell"),
    [
        (DBT, None, "mssql", PRODUCTION, Cell.SQLSERVER_DBT),
        (DBT, None, "mssql", NONPRODUCTION, Cell.SQLSERVER_DBT),
        (DBT, None, "postgres", NONPRODUCTION, Cell.POSTGRES_DBT_LAB),
        (TRANSFER, "postgres", "mssql", PRODUCTION, Cell.POSTGRES_MSSQL),
        (TRANSFER, "mssql", "clickhouse", PRODUCTION, Cell.MSSQL_CLICKHOUSE),
        (TRANSFER, "postgres", "postgres", NONPRODUCTION, Cell.POSTGRES_POSTGRES_LAB),
        (TRANSFER, "postgres", "clickhouse", NONPRODUCTION, Cell.POSTGRES_CLICKHOUSE_LAB),
    ],
)
def test_the_cells_of_the_matrix(job: Job, source: str | None, target: str, family: Family, cell: Cell) -> None:
    assert cell_for(job, source, target, family) is cell


def test_the_matrix_is_closed() -> None:
    supported = 0
    engines = [None, *EngineKind]
    for (job, source), target, family in product(
        ((DBT, None), *((TRANSFER, one) for one in engines[1:])), EngineKind, Family
    ):
        found = cell_for(job, source, target, family)
        if isinstance(found, Refused):
            assert found.problem.reason in ("unsupported_cell", "cell_not_for_family")
            assert job.workload_id in found.problem.subject
        else:
            supported += 1
    assert supported == sum(len(families) for _, families in MATRIX.values()) == 9


@pytest.mark.parametrize("source", ["mysql", "", "Postgres"])
def test_other_connectors(source: str) -> None:
    found = cell_for(TRANSFER, source, "mssql", PRODUCTION)
    assert isinstance(found, Refused)
    assert found.problem.reason == "unsupported_connector"


@pytest.mark.parametrize(
    ("strategy", "atomicity", "provisioning", "reason"),
    [
        ("append", "target_atomic", "external", "unsupported_strategy"),
        (None, "target_atomic", "external", "unsupported_strategy"),
        ("full_refresh", "none", "external", "unsupported_state"),
        ("full_refresh", "target_atomic", None, "unsupported_state"),
    ],
)
def test_other_terms(strategy: str | None, atomicity: str, provisioning: str | None, reason: str) -> None:
    job = Job(
        workload_id="ordinary.t",
        kind=JobKind.TRANSFER,
        strategy=strategy,
        atomicity=atomicity,
        provisioning=provisioning,
    )
    found = cell_for(job, "postgres", "mssql", PRODUCTION)
    assert isinstance(found, Refused)
    assert found.problem.reason == reason


@pytest.mark.parametrize("feature", list(Feature))
def test_every_unsupported_feature_has_its_own_reason(feature: Feature) -> None:
    job = Job(workload_id="native.p.w", kind=JobKind.DBT, asked=(Asked(feature, "something"),))
    found = cell_for(job, None, "mssql", PRODUCTION)
    assert isinstance(found, Refused)
    assert (found.problem.reason, found.problem.found) == (feature.value, "something")
