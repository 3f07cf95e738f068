"""What every ledger must do. A subclass gives the fixture ``ledger``: empty, nobody else connected.

The names of constraints and laws belong to the contract: callers and operators see them.
"""

from __future__ import annotations

from tests.conformance.ledger_laws import LedgerLaws
from tests.conformance.ledger_records import LedgerRecords


class LedgerSuite(LedgerRecords, LedgerLaws):
    """The contract of ``Ledger`` and ``LedgerTransaction``."""
