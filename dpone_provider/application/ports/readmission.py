"""What the ledger holds and does when it has gone back: how it stands, and the rows of readmissions and burials.

The order of locks is one step longer than the ledger's: the authority first, exclusively, before anything else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import AttemptId, Family, ServiceId, SlotId
from dpone_provider.domain.publication import Publication
from dpone_provider.domain.readmission import Burial, Readmission

WENT_BACK = "authority_went_back"
"""The reason of every refusal of an authority that may have forgotten who owns what."""
READMIT = "dpone control readmit, which changes nothing without --because; on a copy: dpone control forget"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityStanding:
    """Who the ledger says that it is, and what its server says.

    ``recorded`` is the incarnation in which it was installed or readmitted, ``observed`` the server's now; ``mark``
    that of the target which shares its database (0 where none does), ``sequence`` the last number that it has given.
    """

    authority_id: str
    family: Family
    recorded: str
    observed: str
    sequence: int
    mark: int
    opened: Readmission | None

    @property
    def went_back(self) -> bool:
        """Tell whether it shows by itself that it went back, or is being readmitted."""
        return self.recorded != self.observed or self.mark > self.sequence or self.opened is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayGate:
    """A login that a service knew and the ledger did not: closed, with the observation as evidence."""

    service_id: ServiceId
    name: str
    evidence: bytes


class ReadmissionRows(Protocol):
    """The part of ``LedgerTransaction`` that is about an authority that went back, and services lost for good."""

    def lock_authority(self) -> AuthorityStanding:
        """Wait until no other transaction of the ledger is open, let none begin until this one ends; then read.

        The first call of its transaction. PostgreSQL: ``LOCK TABLE authority IN ACCESS EXCLUSIVE MODE``; every other
        transaction reads that table in its first statement, and so keeps a shared lock of it until it ends. SQL Server:
        ``TABLOCKX, HOLDLOCK``; the row is read under REPEATABLEREAD in each transaction's first batch.
        """

    def opened(self) -> Readmission | None:
        """Return the open readmission, unlocked."""

    def readmissions(self) -> tuple[Readmission, ...]:
        """Return every readmission, newest first."""

    def add_readmission(self, readmission: Readmission) -> None: ...
    def end_readmission(self, readmission: Readmission) -> None: ...
    def move_authority(self, opened: Readmission) -> None:
        """Make the ledger what the open readmission names."""

    def raise_sequence(self, at_least: int) -> None:
        """Make the next sequence number higher than ``at_least``; only under ``lock_authority``."""

    def add_floors(
        self,
        opened: Readmission,
        epochs: Sequence[tuple[SlotId, int]],
        generations: Sequence[tuple[str, int]],
    ) -> None:
        """Enter the highest epochs and generations that were seen; entering them again is nothing."""

    def epoch_floors(self, slot_ids: Collection[SlotId]) -> dict[SlotId, int]:
        """Return the floors of these slots; none where there is none."""

    def generation_floor(self, environment: str) -> int:
        """Return the floor of an environment, 0 where there is none."""

    def add_spent(self, opened: Readmission, attempts: Collection[AttemptId]) -> None:
        """Enter attempts that the ledger does not know; entering one again is nothing."""

    def spent(self, attempt_id: AttemptId) -> bool:
        """Tell whether the attempt's id was entered as spent."""

    def unknown_of(self, attempts: Collection[AttemptId]) -> tuple[AttemptId, ...]:
        """Return those of ``attempts`` that the ledger has no row of, in order."""

    def add_stray(self, opened: Readmission, stray: StrayGate) -> None:
        """Enter a closed stray; entering it again is nothing."""

    def strays(self, service_id: ServiceId) -> frozenset[str]:
        """Return the names of the service's strays."""

    def add_burial(self, burial: Burial) -> None: ...
    def burial(self, service_id: ServiceId) -> Burial | None: ...
    def burials(self) -> tuple[Burial, ...]: ...
    def services(self) -> tuple[ServiceId, ...]:
        """Return every service that the ledger has a target or a gate on, in order."""

    def open_gates_on(self, service_id: ServiceId) -> tuple[Gate, ...]:
        """Return the service's gates that are not CLOSED, by name, unlocked."""

    def live_attempts_on(self, service_id: ServiceId) -> tuple[Attempt, ...]:
        """Return the RUNNING and COMMIT_UNKNOWN attempts that write the service, newest first, unlocked."""

    def unresolved_on(self, service_id: ServiceId) -> tuple[Publication, ...]:
        """Return the service's publications that are not settled, by attempt, unlocked."""
