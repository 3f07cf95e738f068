"""The control schema, installed once per session and empty for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dpone_provider import lab
from tests.conformance.installed_ledger import InstalledLedger, installed


@pytest.fixture(scope="session")
def session_ledger(postgres_lab: lab.LabState) -> Iterator[InstalledLedger]:
    """Hold one database with the control schema."""
    with installed(postgres_lab) as ledger:
        yield ledger


@pytest.fixture
def installed_ledger(session_ledger: InstalledLedger) -> InstalledLedger:
    """Give the session's control schema, empty."""
    session_ledger.empty()
    return session_ledger
