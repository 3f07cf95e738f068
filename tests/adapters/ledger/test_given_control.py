"""The ledger on the server that ``DPONE_TEST_MSSQL_URL`` names keeps the port's contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from tests.adapters.ledger.given_control import GivenControl, given_control
from tests.conformance.ledger_suite import LedgerSuite


@pytest.fixture(scope="module")
def control() -> Iterator[GivenControl]:
    """Hold one control database."""
    with given_control() as control:
        yield control


@pytest.mark.mssql
class TestMssqlLedger(LedgerSuite):
    """The suite, over a real server."""

    @pytest.fixture
    def ledger(self, control: GivenControl) -> Iterator[SqlLedger]:
        """Give the controller's ledger, empty."""
        control.empty()
        ledger = control.ledger()
        yield ledger
        ledger.close()

    @pytest.fixture
    def go_back(self, control: GivenControl) -> Callable[[], None]:
        """Put its database into another incarnation, as far as its own row knows."""
        return control.go_back
