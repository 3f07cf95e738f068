"""The stage on which pairs are run, set once per session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone_provider import lab
from tests.interleaving.postgres_ground import PostgresGround, postgres_ground
from tests.interleaving.stage import Stage

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def ground(postgres_lab: lab.LabState) -> Iterator[PostgresGround]:
    """Hold the database and both sides."""
    with postgres_ground(postgres_lab) as made:
        yield made


@pytest.fixture(scope="session")
def stage(ground: PostgresGround) -> Stage:
    """Hold every scene on it."""
    made = Stage(ground)
    made.build()
    return made


@pytest.fixture(scope="session")
def transcripts() -> Path:
    """The folder in which transcripts are kept: below DPONE_TEST_ARTEFACTS where it is given."""
    folder = Path(os.environ.get("DPONE_TEST_ARTEFACTS", ROOT / ".cache")) / "interleaving"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
