"""The ledger's transaction: the parts put together over one session."""

from __future__ import annotations

from collections.abc import Callable

from dpone_provider.adapters.ledger.attempts import AttemptRows
from dpone_provider.adapters.ledger.gates import GateRows
from dpone_provider.adapters.ledger.occurrences import OccurrenceRows
from dpone_provider.adapters.ledger.publications import PublicationRows
from dpone_provider.adapters.ledger.readmission import ReadmissionRows
from dpone_provider.adapters.ledger.session import Session
from dpone_provider.adapters.ledger.slots import SlotRows
from dpone_provider.application.ports.ledger import Authority


class SqlTransaction(OccurrenceRows, SlotRows, ReadmissionRows, AttemptRows, GateRows, PublicationRows):
    """Implements ``LedgerTransaction`` over SQLAlchemy Core."""

    def __init__(self, session: Session, authority: Callable[[], Authority]) -> None:
        """Speak through ``session``; ``authority`` tells whose tables they are."""
        self.session = session
        self.authority = authority

    @property
    def handle(self) -> object:
        """The driver's own connection (psycopg's or pyodbc's), inside this transaction, up to date.

        Whoever uses it sends statements only, and neither commits nor rolls back.
        """
        return self.session.handle()
