"""One estate for all races; whatever a race did, the ledger's invariants hold at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone_provider import lab
from tests.interleaving.invariants import violations
from tests.races.estate import Estate, estate


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the lab."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session")
def the_estate(postgres_lab: lab.LabState) -> Iterator[Estate]:
    """Hold the database with its ACTIVE occurrence."""
    with estate(postgres_lab) as made:
        yield made


@pytest.fixture
def here(the_estate: Estate) -> Iterator[Estate]:
    """Give the estate, and look for violations afterwards."""
    yield the_estate
    with the_estate.enrolled.connected() as connection:
        assert violations(connection) == []
