"""The rows of a simulated ledger, and the two ways in which it says no."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter

from dpone_provider.application.ports.ledger import Authority, EnvironmentRow, NodeEvent, WorkloadRow
from dpone_provider.application.ports.readmission import StrayGate
from dpone_provider.domain.attempt import Attempt, Proof
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import (
    AttemptId,
    Family,
    Incarnation,
    IncarnationId,
    OccurrenceId,
    ServiceId,
    SlotId,
)
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.publication import Publication
from dpone_provider.domain.readmission import Burial, Readmission
from dpone_provider.domain.slot import Claim, Slot

AUTHORITY = Authority(
    authority_id="5a1d4f0e-6a53-4b6f-9a39-0c8f6f2d7b11", incarnation="7/16384/00000001", family=Family.NONPRODUCTION
)
Receipt = tuple[bytes, tuple[tuple[SlotId, int], ...]]


@dataclass(slots=True)
class Rows:
    """Every table. The values are frozen, so a copy of the tables is a copy of the ledger.

    Which slots an attempt keeps follows from its state: the port has no way to say otherwise.
    """

    environments: dict[str, EnvironmentRow] = field(default_factory=dict)
    occurrences: dict[OccurrenceId, Occurrence] = field(default_factory=dict)
    requests: dict[OccurrenceId, bytes] = field(default_factory=dict)
    receipts: dict[OccurrenceId, Receipt] = field(default_factory=dict)
    workloads: dict[tuple[OccurrenceId, str], WorkloadRow] = field(default_factory=dict)
    incarnations: dict[IncarnationId, Incarnation] = field(default_factory=dict)
    slots: dict[SlotId, Slot] = field(default_factory=dict)
    claims: dict[SlotId, Claim] = field(default_factory=dict)
    runs: dict[tuple[str, str], OccurrenceId] = field(default_factory=dict)
    attempts: dict[AttemptId, Attempt] = field(default_factory=dict)
    node_events: list[NodeEvent] = field(default_factory=list)
    gates: dict[tuple[AttemptId, ServiceId], Gate] = field(default_factory=dict)
    proofs: dict[int, tuple[Proof, bytes]] = field(default_factory=dict)
    publications: dict[AttemptId, Publication] = field(default_factory=dict)
    authority: list[Authority] = field(default_factory=lambda: [AUTHORITY])
    """One row."""
    readmissions: dict[str, Readmission] = field(default_factory=dict)
    readmissions_ended: dict[str, bool] = field(default_factory=dict)
    epoch_floors: dict[SlotId, int] = field(default_factory=dict)
    generation_floors: dict[str, int] = field(default_factory=dict)
    spent: dict[AttemptId, str] = field(default_factory=dict)
    strays: dict[tuple[ServiceId, str], StrayGate] = field(default_factory=dict)
    burials: dict[ServiceId, Burial] = field(default_factory=dict)

    def copy(self) -> Rows:
        """Return the same rows in tables of their own."""
        return Rows(*(table.copy() for table in _tables(self)))

    def branch(self) -> Rows:
        """Return the same tables, to be gone on from: who writes one puts a copy of it in its place first.

        So a table that is the same object in two states of a ledger has the same rows in both.
        """
        return Rows(*_tables(self))


_tables = attrgetter(*(each.name for each in fields(Rows)))


class LawBroken(Exception):
    """A trigger or a CHECK refused: the law's name, of what, what was found and what is allowed."""

    def __init__(self, law: str, subject: str, found: object, allowed: str) -> None:
        """Say no."""
        super().__init__(law)
        self.law = law
        self.subject = subject
        self.found = str(found)
        self.allowed = allowed


class ConstraintBroken(Exception):
    """A unique index or a foreign key refused; ``constraint`` is its name."""

    def __init__(self, constraint: str) -> None:
        """Say no."""
        super().__init__(constraint)
        self.constraint = constraint


class LockWait(Exception):
    """A row that a transaction of a target keeps share-locked; ``holder`` says whose, in words."""

    def __init__(self, holder: str) -> None:
        """Wait in vain."""
        super().__init__(holder)
        self.holder = holder


def law(holds: bool, name: str, subject: object, found: object, allowed: str) -> None:
    """Demand that a law holds.

    Raises:
        LawBroken: it does not.
    """
    if not holds:
        raise LawBroken(name, str(subject), found, allowed)


def constraint(holds: bool, name: str) -> None:
    """Demand that a constraint holds.

    Raises:
        ConstraintBroken: it does not.
    """
    if not holds:
        raise ConstraintBroken(name)
