"""Whether the databases that an attempt writes and reads still are the ones that its deployment pins."""

from __future__ import annotations

from dataclasses import dataclass

from dpone_provider.application.admission_rules import require_enrolled_as_pinned, require_source_as_pinned
from dpone_provider.application.ledger.calls import nothing_changed, require, settled
from dpone_provider.application.ports.catalog import PhysicalCatalog
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.time import Deadline
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.outcomes import DponeError


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStanding:
    """One target, as the attempt's own deployment pins it."""

    connection: Connection
    catalog: PhysicalCatalog
    ledger: Ledger

    def require_unchanged(self, deadline: Deadline) -> None:
        """Read incarnation, enrolment and gate again, and compare them with what the request was made of (I13).

        Raises:
            DponeError: Refused when something changed, Unknown when it cannot be read. Nothing was changed.
        """
        try:
            self._require_unchanged(deadline)
        except DponeError as error:
            raise DponeError(nothing_changed(error.failure)) from error

    def _require_unchanged(self, deadline: Deadline) -> None:
        authority = settled(self.ledger.authority())
        enrolment = settled(self.catalog.enrolment())
        # Taken after the mark was read: whoever raised it had taken a lower number of this ledger.
        sequence = require(self.ledger, "read", lambda tx: tx.next_sequence(), deadline)
        require_enrolled_as_pinned(self.connection, enrolment, authority, sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStanding:
    """One source, as the attempt's own deployment pins it. The reader looks again where it reads."""

    connection: Connection
    catalog: PhysicalCatalog

    def require_unchanged(self) -> None:
        """Read the incarnation, and compare it.

        Raises:
            DponeError: Refused when it is another database than the pinned one, Unknown when it cannot be read. Nothing
                was changed.
        """
        try:
            require_source_as_pinned(self.connection, settled(self.catalog.incarnation()))
        except DponeError as error:
            raise DponeError(nothing_changed(error.failure)) from error
