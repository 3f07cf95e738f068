"""What tests on a given server share: an installation for each module that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.mssql.given_world import GivenWorld, given_world


@pytest.fixture(scope="module")
def installed_world() -> Iterator[GivenWorld]:
    """Hold one installation for this module."""
    with given_world() as made:
        yield made


@pytest.fixture
def world(installed_world: GivenWorld) -> GivenWorld:
    """Give it with an empty ledger, in which ``first`` is ACTIVE, and without any login of ours."""
    installed_world.begin()
    return installed_world
