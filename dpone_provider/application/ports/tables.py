"""Reading tables as Arrow, and publishing a full refresh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import AttemptId, OccurrenceId, Relation, SlotId
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from dpone_provider.domain.publication import Publication, Verb
from dpone_provider.domain.schema.tables import Column, Observed, Table

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The declared limits of one refresh; passing one is a failure before anything is published."""

    max_rows: int
    max_bytes: int
    batch_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedContent:
    """What stands staged: rows, Arrow bytes, and the content digest in its textual form."""

    rows: int
    bytes: int
    content_digest: str


class TableSnapshot(Protocol):
    """One consistent snapshot of one table. ``rows`` is the server's own count inside the same snapshot."""

    rows: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in canonical Arrow types, at most ``Bounds.batch_rows`` each.

        Raises:
            DponeError: with Failed when the source broke, with Refused when a value cannot be carried exactly
                (naming column, row key, value, limit).
        """


class TableReader(Protocol):
    """Reads one table at one instant through a read-only connection."""

    def snapshot(
        self, relation: Relation, columns: Sequence[Column], key: Sequence[str], bounds: Bounds
    ) -> AbstractContextManager[TableSnapshot]:
        """Open the snapshot. ``key`` names columns by which a message can name a row.

        Raises:
            DponeError: Refused when the table or a column is missing or of another type than declared.
        """


class SchemaReader(Protocol):
    """Observes the definition of tables: a constant number of queries for any number of tables. Total."""

    def tables(self, relations: Sequence[Relation]) -> tuple[Observed, ...]:
        """Return present, absent or unreadable for each relation, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishJob:
    """One refresh of one target: everything that is fixed at ``begin``."""

    attempt_id: AttemptId
    occurrence_id: OccurrenceId
    slot_id: SlotId
    epoch: int
    target: Relation
    staged: Relation
    declared: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBinding:
    """What stood at the target at ``begin``: the verb follows from it, and dispatch requires the same again.

    ``target_identity`` is None when the name was free. ``staged_identity`` is chosen before the staged object exists.
    """

    verb: Verb
    target_identity: str | None
    staged_identity: str
    left_over: tuple[str, ...] = ()
    """Staged names of other attempts on the slot, seen before the intent was journaled: of attempts that have ended."""


@dataclass(frozen=True, slots=True)
class Published:
    """The target itself shows this publication: receipt present, or the staged UUID at the target's name."""

    rows: int | None
    evidence: str


@dataclass(frozen=True, slots=True)
class NotPublished:
    """The target itself shows that this publication is not there and, its writer being closed, never will be."""

    evidence: str


class StagingWriter(Protocol):
    """The worker's side, on the issued login: fill the staged table. Used in this order, once."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Send one batch of canonical Arrow types.

        Raises:
            DponeError: Failed when the server refused or broke; the staged table then may hold a part.
        """

    def finish(self, deadline: Deadline) -> StagedContent | Failed:
        """Flush, read the staged table back and return what stands there, by its own count and digest."""


class FencedPublisher(Protocol):
    """The worker's side of an SQL target: the one transaction that makes the staged rows visible."""

    def publish(self, job: PublishJob, staged: StagedContent, deadline: Deadline) -> Failed | Unknown | None:
        """Lock the target, fence, sync the definition, replace the content, fence, write the receipt, COMMIT.

        Failed: the server proved a rollback or the fence refused. Unknown: COMMIT's answer was lost.
        """


class TablePublisher(Protocol):
    """The controller's side of one target. Every call is on its own connection.

    Order: bind → (publication INTENDED journaled) → create_staged → … worker … → verify → (STAGED, DISPATCHED
    journaled) → dispatch → discard_staged → observe. SQL targets: staging and dispatch are the worker's, so
    ``create_staged`` and ``dispatch`` do nothing there and ``verify`` trusts the worker's own read-back; ``observe``
    reads the receipt.
    """

    def bind(self, job: PublishJob) -> TargetBinding | Refused | Unknown:
        """Capture identity and definition of the target, and which staged names of the slot aren't this job's.

        It changes nothing: who binds may be a controller that stood still, and those names the next attempt's.
        Refused: not a table that can be refreshed, or its definition needs a change that the rules forbid.
        """

    def create_staged(self, job: PublishJob, binding: TargetBinding) -> Failed | Unknown | None:
        """Drop what is left over, and create the staged table under its attempt-unique name and journaled identity.

        Only after the intent was journaled, which only the slot's one live attempt can: what was left over when it was
        bound is of attempts that have ended, each under a name of its own that nobody uses again.
        """

    def verify(self, job: PublishJob, claimed: StagedContent, deadline: Deadline) -> StagedContent | Failed | Unknown:
        """Read the staged table's count and digest and compare them with what the worker claimed."""

    def dispatch(self, job: PublishJob, publication: Publication, deadline: Deadline) -> Failed | Unknown | None:
        """Send the one mutation that makes the content visible. Never repeated."""

    def discard_staged(self, job: PublishJob) -> Unknown | None:
        """Drop what the attempt staged, and read it back as gone.

        Under a name that attempts share (SQL targets: the slot's staging table) only its own: whoever ends an attempt
        may come late, when the next one has staged its rows there already.
        """

    def observe(self, job: PublishJob, publication: Publication) -> Published | NotPublished | Unknown:
        """Look at the target and tell whether this publication is what it shows. After the gate is CLOSED."""
