"""No state that the shipped transitions reach breaks an invariant: complete searches, each over a cast of its own."""

from __future__ import annotations

import pytest

from tests.model import figures, scenarios
from tests.model.conftest import Laboratory

pytestmark = pytest.mark.timeout(900)
ASKED = 1_000_000


@pytest.mark.parametrize("name", [one.name for one in figures.ALL])
def test_nothing_is_broken(laboratory: Laboratory, name: str) -> None:
    """Every state was visited, and every step out of it was looked at."""
    figure = laboratory.whole[name].result()
    assert not figure.broken
    assert figure.states > 1


def test_a_million_states_are_searched(laboratory: Laboratory) -> None:
    """With every guard in place and no fault."""
    large = {one.name for one in scenarios.LARGE}
    assert sum(one.result().states for name, one in laboratory.whole.items() if name in large) >= ASKED
