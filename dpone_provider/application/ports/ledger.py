"""The ledger: transactions over the control schema's rows.

One transaction is one script of ``application.ledger``: it reads rows under the locks it names, asks the domain for the
decision, and writes what the domain returned. Rows are locked in one global order, environment → occurrences (by id) →
attempts (by id) → slots (by id) → gates (by name) → publications; a script that needs a row later in the order never
goes back. The database decides conflicts again by its own constraints, indexes and triggers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from dpone_provider.application.ports.readmission import AuthorityStanding, ReadmissionRows
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.attempt import Attempt, Proof
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import (
    AttemptId,
    Digest,
    Family,
    Incarnation,
    IncarnationId,
    OccurrenceId,
    Principal,
    Relation,
    ServiceId,
    SlotId,
)
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import Busy, Failed, Refused, Unknown
from dpone_provider.domain.publication import Publication
from dpone_provider.domain.slot import Claim, Slot

Result = TypeVar("Result")
ROW_LOCKED = "ledger_row_locked"
"""The reason of the one Busy that a lock wait past its deadline gives."""
ANSWER_LOST = "ledger_answer_lost"
"""The reason of the one Unknown after which the transaction may have been committed."""


class Lock(StrEnum):
    """How a row is read. On PostgreSQL / SQL Server:

    NONE: plain read committed; SHARE: ``FOR SHARE`` / REPEATABLEREAD; UPDATE: ``FOR NO KEY UPDATE`` / UPDLOCK (blocks
    SHARE and UPDATE); EXCLUSIVE: ``FOR UPDATE`` / XLOCK.
    """

    NONE = "none"
    SHARE = "share"
    UPDATE = "update"
    EXCLUSIVE = "exclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """The ledger's own row: who it is, and the incarnation that it was installed in or readmitted to."""

    authority_id: str
    incarnation: str
    family: Family


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRow:
    """One environment: its holder (PREPARED, ACTIVE or RETIRING) and its generation, which only grows."""

    name: str
    holder_id: OccurrenceId | None
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRow:
    """One workload of a request: what its attempts must be bound to and may write. Slots and services in id order."""

    occurrence_id: OccurrenceId
    workload_id: str
    constituent: str
    cell: str
    pack_digest: Digest
    plan_digest: Digest
    services: tuple[ServiceId, ...]
    writes: tuple[SlotId, ...]
    reads: tuple[SlotId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """A dbt node's start or end, entered while dbt runs. ``status`` is "started" or dbt's own end status."""

    attempt_id: AttemptId
    node_id: str
    status: str
    rebuilt_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptRow:
    """What the target's own receipt says (SQL targets whose receipts the ledger's connection can read)."""

    attempt_id: AttemptId
    slot_id: SlotId
    epoch: int
    rows: int
    content_digest: str


class GuardLost(Exception):
    """A guarded write found other rows than the script had read and locked: a bug, or a hand. Rolls back."""


class LedgerTransaction(ReadmissionRows, Protocol):
    """One open transaction. Every ``move_*`` is an UPDATE guarded by the whole ``before`` state.

    ``GuardLost`` is raised when a guarded write meets zero rows; a constraint of the database raises ``Conflict`` (see
    ``Ledger.run``); both roll the transaction back. Writes may be gathered: either is raised at the next statement that
    needs an answer, or before COMMIT.
    """

    handle: object
    """The transaction's own connection, opaque: only an adapter of the same engine may use it."""

    def authority(self) -> Authority:
        """Return who this ledger is, as this transaction found it when it began."""

    def next_sequence(self) -> int:
        """Return the next ledger sequence number: the order of everything. Gaps are allowed."""

    # environments and occurrences
    def environment(self, name: str, lock: Lock) -> EnvironmentRow | None: ...
    def add_environment(self, row: EnvironmentRow) -> None: ...
    def move_environment(self, before: EnvironmentRow, after: EnvironmentRow) -> None: ...
    def occurrence(self, occurrence_id: OccurrenceId, lock: Lock) -> Occurrence | None: ...
    def pending(self, environment: str) -> Occurrence | None:
        """Return the REQUESTED or PREPARED occurrence of the environment, unlocked."""

    def occurrences(self, environment: str | None) -> tuple[Occurrence, ...]:
        """Return all occurrences (of one environment), newest first, unlocked."""

    def add_occurrence(self, occurrence: Occurrence, request: bytes) -> None:
        """Insert the row with its immutable request document (canonical bytes)."""

    def add_workloads(self, workloads: Sequence[WorkloadRow]) -> None:
        """Insert the request's workloads with the slots that each writes and reads (registered before)."""

    def move_occurrence(self, before: Occurrence, after: Occurrence) -> None: ...
    def request_document(self, occurrence_id: OccurrenceId) -> bytes: ...
    def add_receipt(self, occurrence_id: OccurrenceId, receipt: bytes, epochs: Sequence[tuple[SlotId, int]]) -> None:
        """Insert the receipt document (canonical bytes) and its (slot, epoch) pairs."""

    def receipt(self, occurrence_id: OccurrenceId) -> tuple[bytes, tuple[tuple[SlotId, int], ...]] | None: ...
    def workload(self, occurrence_id: OccurrenceId, workload_id: str) -> WorkloadRow | None: ...

    # incarnations and slots
    def add_incarnation(self, incarnation: Incarnation) -> None:
        """Insert the incarnation if it is new, with its facts."""

    def incarnation(self, incarnation_id: IncarnationId, lock: Lock) -> Incarnation | None: ...
    def registered(self, incarnation_id: IncarnationId) -> tuple[Relation, ...]:
        """Return every relation class registered in the incarnation."""

    def registered_before(self, incarnation: Incarnation) -> tuple[Relation, ...]:
        """Return every relation class registered in another life of the same database of the same service."""

    def add_slot(self, slot: Slot) -> None: ...
    def slots(self, ids: Collection[SlotId], lock: Lock) -> tuple[Slot, ...]:
        """Return the slots with these ids, in id order, each locked in that order."""

    def slots_owned_by(self, occurrence_id: OccurrenceId) -> tuple[SlotId, ...]: ...
    def move_slot(self, before: Slot, after: Slot) -> None: ...
    def claims(self, slot_ids: Collection[SlotId]) -> tuple[Claim, ...]: ...
    def claims_of(self, occurrence_id: OccurrenceId) -> tuple[Claim, ...]: ...
    def add_claim(self, claim: Claim) -> None: ...
    def drop_claims(self, occurrence_id: OccurrenceId) -> None: ...

    # attempts
    def run_occurrence(self, environment: str, run_key: str) -> OccurrenceId | None: ...
    def add_run(self, environment: str, run_key: str, occurrence_id: OccurrenceId) -> None:
        """Insert which occurrence an Airflow run belongs to; inserting the same again is nothing."""

    def attempt(self, attempt_id: AttemptId, lock: Lock) -> Attempt | None: ...
    def add_attempt(self, attempt: Attempt) -> None: ...
    def move_attempt(self, before: Attempt, after: Attempt) -> None:
        """Move the state; an end state but COMMIT_UNKNOWN frees the written slots, any end state the read ones."""

    def live_attempts(self, occurrence_id: OccurrenceId) -> tuple[Attempt, ...]:
        """Return its RUNNING and COMMIT_UNKNOWN attempts, unlocked."""

    def attempts(self, *, environment: str | None, unresolved_only: bool, limit: int) -> tuple[Attempt, ...]:
        """Return attempts, newest first, unlocked. Unresolved: RUNNING or COMMIT_UNKNOWN."""

    def tries_of(self, environment: str, task_key: str) -> tuple[Attempt, ...]:
        """Return every attempt of one Airflow task of one run, by try number, unlocked."""

    def live_writers(self, slot_ids: Collection[SlotId]) -> tuple[Attempt, ...]:
        """Return the live attempts that write any of these slots."""

    def running_readers(self, slot_ids: Collection[SlotId]) -> tuple[Attempt, ...]:
        """Return the RUNNING attempts that read any of these slots."""

    def add_node_event(self, event: NodeEvent) -> None: ...
    def node_events(self, attempt_id: AttemptId) -> tuple[NodeEvent, ...]:
        """Return the events in the order in which they were entered."""

    # gates and proofs
    def gate(self, attempt_id: AttemptId, service_id: ServiceId, lock: Lock) -> Gate | None: ...
    def gates(self, attempt_id: AttemptId) -> tuple[Gate, ...]:
        """Return the gates of an attempt by principal name, unlocked."""

    def principals_used(self, service_id: ServiceId) -> frozenset[str]:
        """Return every principal name ever journaled on the service, strays of a lost ledger among them."""

    def gate_of_principal(self, service_id: ServiceId, name: str) -> Gate | None: ...
    def add_gate(self, gate: Gate) -> None: ...
    def move_gate(self, before: Gate, after: Gate) -> None: ...
    def add_proof(self, proof: Proof, evidence: bytes) -> None:
        """Insert a proof with its evidence document (canonical bytes)."""

    def proofs(self, attempt_id: AttemptId) -> tuple[Proof, ...]: ...
    def evidence(self, attempt_id: AttemptId) -> tuple[bytes, ...]:
        """Return the evidence documents of the attempt's proofs, in ledger order."""

    # publications and receipts
    def publication(self, attempt_id: AttemptId, lock: Lock) -> Publication | None: ...
    def unresolved_publication(self, slot_id: SlotId) -> Publication | None:
        """Return the publication of the slot that is not settled, unlocked; at most one exists."""

    def add_publication(self, publication: Publication) -> None: ...
    def move_publication(self, before: Publication, after: Publication) -> None: ...


@dataclass(frozen=True, slots=True)
class Conflict:
    """The database's own constraint refused what the script had not seen. ``constraint`` is its name."""

    constraint: str


class Ledger(Protocol):
    """Runs transaction scripts. READ COMMITTED; every transaction first compares the authority's incarnation."""

    def run(
        self, name: str, script: Callable[[LedgerTransaction], Result], deadline: Deadline
    ) -> Result | Conflict | Refused | Busy | Failed | Unknown:
        """Run ``script`` in one transaction and commit, unless it returns a Refused, Busy, Failed or Unknown (any of
        them rolls back and is returned as it is).

        An answer that proves a rollback (deadlock, serialisation) is repeated within the deadline. A lock wait past the
        deadline gives Busy naming the blocker. A lost answer to COMMIT, or a server that does not answer, gives
        Unknown with reason ``ledger_answer_lost`` or ``authority_unreachable``. Another incarnation gives Refused with
        reason ``authority_went_back``. ``name`` goes into the session's application name with the id that the script's
        first statement names.

        Raises:
            DponeError: Failed; a guarded write met other rows than were read, or a law of the database refused a write.
                Its reason names the law. Whatever else ``script`` raises passes through, after a rollback.
        """

    def afresh(self) -> Ledger:
        """Return the same ledger with a new connection for every run, for reading back what was written."""
        ...

    def end_sleepers(self) -> tuple[str, ...] | Refused | Unknown:
        """End every session of ours that has slept in an open transaction for longer than any script computes.

        That is what a stopped controller leaves. Nothing of it was committed; its process learns so when it goes on.

        Return who they were, in words; Refused for a login that is not let in, Unknown when the authority cannot be
        asked. A mistake costs work, not safety.
        """
        ...

    def authority(self) -> Authority | Refused | Unknown:
        """Read the authority's identity; Refused when the control schema is missing or of another version."""

    def standing(self) -> AuthorityStanding | Refused | Unknown:
        """Read how the authority stands, whether it went back or not; Refused as ``authority``, but for that."""

    def regardless(self) -> Ledger:
        """Return the same ledger for reading only, whether the authority went back or not. What writes fails."""
        ...

    def readmitting(self) -> Ledger:
        """Return the same ledger for a readmission: it lets in what an authority that went back refuses.

        For ``application.readmission`` alone.
        """
        ...


def principals(gates: Sequence[Gate]) -> tuple[Principal, ...]:
    """Return the principals of some gates, in order."""
    return tuple(gate.principal for gate in gates)
