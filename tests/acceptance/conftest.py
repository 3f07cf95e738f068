"""One world for the session, and for each test a place of its own in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.processes import end_all
from tests.acceptance.world import Place, World, world
from tests.pool import leave_out_pool


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the lab. Files that ask for more time than usual begin first, the rest runs beside them."""
    leave_out_pool(items)
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.lab)
    long = {item.path for item in items if item.get_closest_marker("timeout") is not None}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def the_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Hold the lab, enrolled, every engine behind a wire."""
    with world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    """A test that fails leaves its processes where they are."""
    yield
    end_all()


@pytest.fixture
def place(the_world: World, tmp_path: Path) -> Iterator[Place]:
    """Give an environment of the test's own; whatever the test did, the ledger's invariants hold at its end."""
    yield Place(the_world, tmp_path)
    the_world.up()
    assert the_world.violations() == []
