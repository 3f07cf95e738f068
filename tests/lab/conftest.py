"""One whole lab with its source data for all tests that only look."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpone_provider import lab


@pytest.fixture(scope="session")
def whole_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.LabState]:
    """Hold a whole lab, loaded."""
    with lab.running(tmp_path_factory.mktemp("whole-lab")) as state:
        lab.load_flights(state)
        yield state
