"""Fixtures that every suite may use: the lab's real engines, started once per session."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

from dpone_provider import lab
from tests.required import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport"]

# How long an example takes says something of the machine, not of the code: suites have budgets instead.
settings.register_profile("project", deadline=None)
settings.load_profile("project")


def pytest_collection_finish() -> None:
    """Look for garbage more rarely from here on: what was imported and collected stays, and looking took a tenth."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session")
def postgres_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.LabState]:
    """Hold a bare PostgreSQL 18 with the lab's roles; see `lab.postgres_only`."""
    with lab.postgres_only(tmp_path_factory.mktemp("postgres-lab")) as state:
        yield state


@pytest.fixture
def fresh_database(postgres_lab: lab.LabState) -> Iterator[lab.LabDatabase]:
    """Give a new database on the session's PostgreSQL, dropped afterwards; see `lab.fresh_database`."""
    with lab.fresh_database(postgres_lab) as database:
        yield database


@pytest.fixture(scope="session")
def clickhouse_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.LabState]:
    """Hold the lab's ClickHouse alone, with databases `mart` and `dpone_stage`; see `lab.clickhouse_only`."""
    with lab.clickhouse_only(tmp_path_factory.mktemp("clickhouse-lab")) as state:
        yield state
