"""The ledger on PostgreSQL keeps the port's contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conformance.installed_ledger import InstalledLedger
from tests.conformance.ledger_suite import LedgerSuite
from tests.conformance.postgres_ledger import PostgresLedger


@pytest.mark.lab
class TestPostgresLedger(LedgerSuite):
    """The suite, over a real server."""

    @pytest.fixture
    def ledger(self, installed_ledger: InstalledLedger) -> Iterator[PostgresLedger]:
        """Give the controller's ledger."""
        ledger = installed_ledger.ledger()
        yield ledger
        ledger.close()

    @pytest.fixture
    def go_back(self, installed_ledger: InstalledLedger) -> Callable[[], None]:
        """Put its database into another incarnation, as far as its own row knows."""
        return installed_ledger.go_back
