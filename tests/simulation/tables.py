"""Reading a table, staging one on an issued login, and the fenced transaction of an SQL target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from dpone_provider.application.ports.ledger import ReceiptRow
from dpone_provider.application.ports.tables import Bounds, PublishJob, StagedContent
from dpone_provider.application.ports.time import Deadline
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.gate import GateState
from dpone_provider.domain.identity import EngineKind, Relation
from dpone_provider.domain.outcomes import DponeError, Failed, Unknown, fail, refuse, unknown
from dpone_provider.domain.schema.tables import Column
from tests.simulation.ledger import SimulatedLedger
from tests.simulation.server import (
    ConnectionLost,
    LoginDenied,
    ServerSession,
    SimulatedServer,
    StoredTable,
)
from tests.simulation.wire import Call, Fault, LostPoint, Wire


def batch_of(columns: Sequence[Column], rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    """Return rows as one batch in canonical types."""
    schema = arrow_schema(columns)
    arrays = [pa.array([row[index] for row in rows], each.type) for index, each in enumerate(schema)]
    return pa.record_batch(arrays, schema=schema)


@dataclass(slots=True)
class SimulatedSnapshot:
    """``TableSnapshot``: the rows as they stood. ``lost`` rows are silently not delivered (a faulty source)."""

    table: StoredTable
    columns: tuple[str, ...]
    wire: Wire
    bounds: Bounds
    lost: int = 0
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        """Take the server's own count."""
        self.rows = self.table.rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        left, sent = self.rows - self.lost, 0
        for batch in self.table.batches:
            for start in range(0, len(batch), self.bounds.batch_rows):
                part = batch.slice(start, min(self.bounds.batch_rows, left)).select(list(self.columns))
                left -= len(part)
                sent += part.nbytes
                self.wire.send(Call("reader", "batch"), lambda: None, _source_broke)
                if sent > self.bounds.max_bytes:
                    raise DponeError(_too_much(f"{sent} bytes", f"{self.bounds.max_bytes} bytes"))
                if len(part):
                    yield part


@dataclass(frozen=True, slots=True)
class SimulatedReader:
    """``TableReader`` through a read-only login."""

    server: SimulatedServer
    wire: Wire
    lost: int = 0

    @contextmanager
    def snapshot(
        self, relation: Relation, columns: Sequence[Column], key: Sequence[str], bounds: Bounds
    ) -> Iterator[SimulatedSnapshot]:
        """Open a snapshot of what stands now."""
        self.wire.send(Call("reader", "snapshot", str(relation)), lambda: None, _source_broke)
        if not self.server.reachable:
            _source_broke(Fault.ERROR)
        table = self.server.tables.get(relation)
        if table is None or not set(columns) <= set(table.columns):
            raise DponeError(
                refuse(
                    "source_differs",
                    f"table {relation}",
                    found="no such table, or other columns",
                    allowed="the columns of the pack",
                    next_command="dpone compile",
                )
            )
        if table.rows > bounds.max_rows:
            raise DponeError(_too_much(f"{table.rows} rows", f"{bounds.max_rows} rows"))
        copy = StoredTable(table.identity, table.columns, list(table.batches))
        yield SimulatedSnapshot(copy, tuple(column.name for column in columns), self.wire, bounds, self.lost)


def _too_much(found: str, allowed: str) -> Failed:
    return fail("bounds_passed", "the source", found=found, allowed=allowed, next_command="raise the bounds")


def _source_broke(fault: Fault) -> None:
    raise DponeError(fail("source_broke", "the source", found=fault.name, allowed="every row", next_command="retry"))


@dataclass(slots=True)
class SimulatedStagingWriter:
    """``StagingWriter`` on the issued login: an SQL worker makes the table itself, ClickHouse's controller made it."""

    server: SimulatedServer
    wire: Wire
    credential: Credential
    job: PublishJob
    session: ServerSession | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Append one batch.

        Raises:
            DponeError: Failed.
        """

        def effect() -> None:
            self._table().batches.append(batch)

        self._do("write", effect)

    def finish(self, deadline: Deadline) -> StagedContent | Failed:
        """Read back what stands."""
        found: list[StagedContent] = []

        def effect() -> None:
            table = self._table()
            size = sum(batch.nbytes for batch in table.batches)
            found.append(StagedContent(rows=table.rows, bytes=size, content_digest=table.content_digest))

        try:
            self._do("finish", effect)
        except DponeError as error:
            return Failed(error.failure.problem)
        finally:
            if self.session is not None:
                self.server.end(self.session)
        return found[0]

    def _table(self) -> StoredTable:
        if self.session is None:
            self.session = self.server.log_in(self.credential)
            if self.server.kind is not EngineKind.CLICKHOUSE:
                self.server.tables[self.job.staged] = StoredTable(
                    self.server.new_identity(), self.job.declared.columns, label=self.job.attempt_id
                )
        self.server.require(self.session)
        table = self.server.tables.get(self.job.staged)
        if table is None:
            raise ConnectionLost(f"no table {self.job.staged}")
        return table

    def _do(self, name: str, effect: object) -> None:
        def reached() -> None:
            try:
                assert callable(effect)
                effect()
            except (ConnectionLost, LoginDenied) as error:
                raise DponeError(_not_staged(self.job, error)) from None

        def broken(fault: Fault) -> None:
            raise DponeError(_not_staged(self.job, fault.name))

        self.wire.send(Call("staging", name, str(self.job.staged)), reached, broken)


@dataclass(slots=True)
class SimulatedFencedPublisher:
    """``FencedPublisher``: the fence share-locks attempt and slots in the ledger until the transaction ends."""

    server: SimulatedServer
    wire: Wire
    ledger: SimulatedLedger
    credential: Credential
    passed: list[str] = field(default_factory=list)

    def publish(self, job: PublishJob, staged: StagedContent, deadline: Deadline) -> Failed | Unknown | None:
        """Fence, replace, fence, receipt, COMMIT."""
        try:
            with self.server.session(self.credential) as session:
                session.in_transaction = True
                self._fence(job)
                with self.ledger.share_locked(job.attempt_id, (job.slot_id,), session.in_words):
                    self.wire.point("target", "replace", job.attempt_id)
                    self.server.require(session)
                    self._fence(job)
                    return self._commit(job, staged, session)
        except (ConnectionLost, LoginDenied, LostPoint) as error:
            return _not_published(job, str(error))
        except DponeError as error:
            return Failed(error.failure.problem)

    def _commit(self, job: PublishJob, staged: StagedContent, session: ServerSession) -> Failed | Unknown | None:
        def effect() -> Failed | None:
            try:
                self.server.require(session)
            except ConnectionLost as error:
                return _not_published(job, str(error))
            rows = self.server.tables[job.staged].batches
            target = self.server.tables.setdefault(
                job.target, StoredTable(self.server.new_identity(), job.declared.columns)
            )
            target.batches = list(rows)
            self.server.received_under[job.attempt_id] = job.occurrence_id
            self.server.receipts[job.attempt_id] = ReceiptRow(
                attempt_id=job.attempt_id,
                slot_id=job.slot_id,
                epoch=job.epoch,
                rows=staged.rows,
                content_digest=staged.content_digest,
            )
            return None

        def broken(fault: Fault) -> Failed | Unknown:
            return _not_published(job, fault.name) if fault is Fault.ERROR else _commit_lost(job)

        return self.wire.send(Call("target", "commit", job.attempt_id), effect, broken)

    def _fence(self, job: PublishJob) -> None:
        """Demand RUNNING, READY and current epochs, read where they are true."""
        rows = self.ledger.rows
        attempt = rows.attempts.get(job.attempt_id)
        gate = rows.gates.get((job.attempt_id, self.server.service_id))
        slot = rows.slots.get(job.slot_id)
        passes = (
            attempt is not None
            and attempt.state is AttemptState.RUNNING
            and gate is not None
            and gate.state is GateState.READY
            and gate.principal.name == self.credential.user
            and slot is not None
            and (slot.owner_id, slot.epoch) == (job.occurrence_id, job.epoch)
        )
        if not passes:
            raise DponeError(_not_published(job, f"the fence: {attempt}, {gate}, {slot}"))


def _not_staged(job: PublishJob, found: object) -> Failed:
    return fail(
        "staging_failed",
        f"staged table {job.staged}",
        found=found or "no answer",
        allowed="every row staged",
        next_command="retry; nothing was published",
    )


def _not_published(job: PublishJob, found: str) -> Failed:
    return fail(
        "not_published",
        f"publication of {job.target}",
        found=found,
        allowed="a transaction that passes the fence and commits",
        next_command="retry; nothing was published",
    )


def _commit_lost(job: PublishJob) -> Unknown:
    return unknown(
        "commit_answer_lost",
        f"publication of {job.target}",
        found="no answer to COMMIT",
        allowed="an answer",
        next_command="the receipt decides",
    )
