"""Enrolled databases: one of a test's own, or one for all tests of a module that leave it as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpone_provider import lab
from tests.adapters.postgres.enrolled import Enrolled, install


@pytest.fixture
def enrolled(fresh_database: lab.LabDatabase) -> Enrolled:
    """Give a database in which control schema, gate and receipts are installed and two schemas are managed."""
    return install(fresh_database)


@pytest.fixture(scope="module")
def shared(postgres_lab: lab.LabState) -> Iterator[Enrolled]:
    """Give the same for a whole module: its tests choose new names and put right what they change."""
    with lab.fresh_database(postgres_lab) as database:
        yield install(database)
