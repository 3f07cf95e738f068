"""The simulated ledger keeps the port's contract."""

from __future__ import annotations

import pytest

from tests.conformance.ledger_suite import LedgerSuite
from tests.simulation.actors import Actors
from tests.simulation.ledger import SimulatedLedger
from tests.simulation.wire import Wire


class TestSimulatedLedger(LedgerSuite):
    """The suite, in memory."""

    @pytest.fixture
    def ledger(self) -> SimulatedLedger:
        """Give an empty one."""
        return SimulatedLedger(Wire(Actors()))
