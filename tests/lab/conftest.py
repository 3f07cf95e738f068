"""One whole lab with its source data for all tests that only look, and one for what ClickHouse lets whom do there."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from dpone_provider import lab
from dpone_provider.lab.clickhouse.given import given_clickhouse
from tests.pool import leave_out_pool


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is about the lab's own users where a server is given."""
    leave_out_pool(items)


@pytest.fixture(scope="session")
def whole_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.LabState]:
    """Hold a whole lab of engines of its own, loaded."""
    with lab.running(tmp_path_factory.mktemp("whole-lab")) as state:
        lab.load_flights(state)
        yield state


@pytest.fixture(scope="module")
def clickhouse_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.LabState]:
    """Hold the lab's ClickHouse alone, or a lab with the one that is given."""
    given, root = given_clickhouse(os.environ), tmp_path_factory.mktemp("clickhouse-lab")
    with lab.clickhouse_only(root) if given is None else lab.running(root, analytics=given) as state:
        yield state
