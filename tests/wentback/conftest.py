"""A lab of its own: what is done to its authority would break everybody else's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.processes import end_all
from tests.acceptance.world import World, world


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the lab."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session")
def the_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Hold the lab, enrolled."""
    with world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    """A test that fails leaves its processes where they are."""
    yield
    end_all()
