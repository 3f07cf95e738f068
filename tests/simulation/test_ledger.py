"""The simulated ledger keeps the port's contract."""

from __future__ import annotations

from collections.abc import Callable

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

    @pytest.fixture
    def go_back(self, ledger: SimulatedLedger) -> Callable[[], None]:
        """Put its database into another incarnation."""

        def elsewhere() -> None:
            ledger.says.incarnation += "2"

        return elsewhere
