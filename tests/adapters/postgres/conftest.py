"""An enrolled database for each test."""

from __future__ import annotations

import pytest

from dpone_provider import lab
from tests.adapters.postgres.enrolled import Enrolled, install


@pytest.fixture
def enrolled(fresh_database: lab.LabDatabase) -> Enrolled:
    """Give a database in which control schema, gate and receipts are installed and two schemas are managed."""
    return install(fresh_database)
