"""Whether the databases that an attempt writes and reads still are the ones that its deployment pins, and whether the
authority is still the one that they know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dpone_provider.application.admission_rules import require_enrolled_as_pinned, require_source_as_pinned
from dpone_provider.application.ledger.calls import nothing_changed, require, settled
from dpone_provider.application.ports.catalog import PhysicalCatalog
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.readmission import READMIT, WENT_BACK, AuthorityStanding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.ports.witness import Allegiance, TargetWitness
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.outcomes import DponeError, Failure, Refused, refuse

MARK_LAG = 64
"""How many numbers a target's mark may lag behind the ledger before an attempt that writes it raises it: so far, and a
few attempts, a ledger can go back in place and no target tells."""


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
        enrolment = settled(self.catalog.enrolment())
        # The number is taken after the mark was read: whoever raised it had taken a lower one of this ledger.
        authority, sequence = require(self.ledger, "read", lambda tx: (tx.authority(), tx.next_sequence()), deadline)
        require_enrolled_as_pinned(self.connection, enrolment, authority, sequence)
        if sequence - enrolment.mark > MARK_LAG:
            settled(self.catalog.raise_mark(sequence))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnessed:
    """One target and what it says of its authority; ``failure`` when it could not be asked."""

    connection: Connection
    allegiance: Allegiance | None
    failure: Failure | None = None

    def __str__(self) -> str:
        """Return what it says, for messages."""
        if self.allegiance is None:
            return f"{self.connection.reference} says nothing"
        named = self.allegiance
        return (
            f"{self.connection.reference} names authority {named.authority_id} in incarnation"
            f" {named.authority_incarnation}, mark {named.mark}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStanding:
    """How an authority stands: its own row, and what each target says of it."""

    authority: AuthorityStanding
    targets: tuple[Witnessed, ...]

    @property
    def went_back(self) -> bool:
        """Tell whether anything shows that this ledger may have forgotten who owns what."""
        return self.refusal is not None

    @property
    def of_another(self) -> tuple[Witnessed, ...]:
        """The targets that name another authority, or another incarnation than the server's now.

        A target that is a copy itself names what its original named: nobody's but its own.
        """
        own = (self.authority.authority_id, self.authority.observed)
        return tuple(
            one
            for one in self.targets
            if one.allegiance is not None
            and one.allegiance.copied_from is None
            and (one.allegiance.authority_id, one.allegiance.authority_incarnation) != own
        )

    @property
    def refusal(self) -> Refused | None:
        """The refusal ``authority_went_back``, or None when nothing shows that it did."""
        authority = self.authority
        if authority.opened is not None:
            return _went_back(authority, f"{authority.opened}, which has not ended", "a readmission that has ended")
        if authority.recorded != authority.observed:
            found = f"incarnation {authority.observed} (cluster/database/timeline)"
            return _went_back(authority, found, f"incarnation {authority.recorded}, in which it was installed")
        for one in self.of_another:
            return _went_back(authority, str(one), f"incarnation {authority.observed} of this authority")
        ahead = [one for one in self.targets if one.allegiance is not None and one.allegiance.mark > authority.sequence]
        for one in ahead:
            return _went_back(authority, str(one), f"marks of at most {authority.sequence}")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingCheck:
    """Asks the ledger and every target how the authority stands, before a command that writes."""

    ledger: Ledger
    targets: Callable[[], Sequence[Connection]]
    witness: Callable[[Connection], TargetWitness]

    def look(self) -> LedgerStanding:
        """Read how it stands. A target that cannot be asked says nothing.

        Raises:
            DponeError: the ledger cannot be read.
        """
        seen = tuple(self._witnessed(connection) for connection in self.targets())
        # Read after the marks: whoever raised one had taken a lower number of this ledger.
        return LedgerStanding(authority=settled(self.ledger.standing()), targets=seen)

    def require(self) -> None:
        """Refuse when anything shows that the authority went back.

        Raises:
            DponeError: Refused ``authority_went_back``. Nothing was changed.
        """
        refused = self.look().refusal
        if refused is not None:
            raise DponeError(refused)

    def _witnessed(self, connection: Connection) -> Witnessed:
        try:
            found = self.witness(connection).allegiance()
        except DponeError as error:
            return Witnessed(connection=connection, allegiance=None, failure=error.failure)
        if isinstance(found, Allegiance):
            return Witnessed(connection=connection, allegiance=found)
        return Witnessed(connection=connection, allegiance=None, failure=found)


def targets_of(connections: Iterable[Connection]) -> tuple[Connection, ...]:
    """Return one connection of every database that may be written, in order of service and name."""
    found: dict[tuple[str, str], Connection] = {}
    for connection in connections:
        managed = any(known.managed_schemas for known in connection.databases)
        if managed and connection.credentials.controller is not None:
            found.setdefault((connection.composition_service_id, connection.endpoint.database), connection)
    return tuple(found[key] for key in sorted(found))


def _went_back(authority: AuthorityStanding, found: str, allowed: str) -> Refused:
    return refuse(
        WENT_BACK,
        f"control authority {authority.authority_id}",
        found=found,
        allowed=allowed,
        next_command=READMIT,
    )
