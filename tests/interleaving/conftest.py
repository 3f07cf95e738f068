"""The stage on which pairs are run, set once per session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone_provider import lab
from tests.interleaving.stage import Stage, staged

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def stage(postgres_lab: lab.LabState) -> Iterator[Stage]:
    """Hold the database, both sides and every scene."""
    with staged(postgres_lab) as stage:
        yield stage


@pytest.fixture(scope="session")
def transcripts() -> Path:
    """The folder in which transcripts are kept: below DPONE_TEST_ARTEFACTS where it is given."""
    folder = Path(os.environ.get("DPONE_TEST_ARTEFACTS", ROOT / ".cache")) / "interleaving"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
