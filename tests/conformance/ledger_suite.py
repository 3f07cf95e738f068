"""What every ledger must do. A subclass gives the fixtures ``ledger``: empty, nobody else connected; and
``go_back``, which puts its database into another incarnation.

The names of constraints and laws belong to the contract: callers and operators see them.
"""

from __future__ import annotations

from tests.conformance.ledger_laws import LedgerLaws
from tests.conformance.ledger_readmission import LedgerReadmission
from tests.conformance.ledger_records import LedgerRecords


class LedgerSuite(LedgerRecords, LedgerLaws, LedgerReadmission):
    """The contract of ``Ledger`` and ``LedgerTransaction``."""
