"""The worker's part of a transfer: read one snapshot, stage it, check it, and for SQL targets publish when let go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dpone_provider.application.content import ContentTally
from dpone_provider.application.ports.tables import (
    Bounds,
    FencedPublisher,
    PublishJob,
    StagedContent,
    StagingWriter,
    TableReader,
)
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.application.relational.source import ended_early
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failed, fail
from dpone_provider.domain.schema.tables import Column

PROGRESS_SECONDS = 0.5


class Channel(Protocol):
    """How the worker talks to its controller."""

    def say(self, event: Mapping[str, object]) -> None:
        """Send one event."""

    def wait_to_be_let_go(self, deadline: Deadline) -> bool:
        """Wait for the controller's word to dispatch. False: it said no, is gone, or the deadline passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What to read: one table, its columns as the pack pins them, and the key by which a message names a row."""

    relation: Relation
    columns: tuple[Column, ...]
    key: Sequence[str]
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """The worker of one attempt. ``publisher`` is None where the controller dispatches (ClickHouse)."""

    reader: TableReader
    writer: StagingWriter
    publisher: FencedPublisher | None
    channel: Channel
    clock: Clock

    def run(self, source: Source, job: PublishJob, deadline: Deadline) -> None:
        """Stage, check, tell; then publish if let go.

        Raises:
            DponeError: with what went wrong.
        """
        staged = self.stage(source, deadline)
        if self.publisher is None:
            return
        if not self.channel.wait_to_be_let_go(deadline):
            raise DponeError(_not_let_go(job))
        failure = self.publisher.publish(job, staged, deadline)
        if failure is not None:
            raise DponeError(failure)
        self.channel.say({"event": "published"})

    def stage(self, source: Source, deadline: Deadline) -> StagedContent:
        """Copy one snapshot into the staged table; what stands there must be what was read, by count and digest.

        Raises:
            DponeError: Failed when a bound is passed, the source ended early, or the staged content differs.
        """
        began = self.clock.monotonic()
        sent = self._copy(source, deadline)
        staged = self.writer.finish(deadline)
        if isinstance(staged, Failed):
            raise DponeError(staged)
        if (staged.rows, staged.content_digest) != (sent.rows, sent.content_digest):
            raise DponeError(_differs(source, sent, staged))
        milliseconds = int((self.clock.monotonic() - began) * 1000)
        self.channel.say(
            {
                "event": "staged",
                "rows": staged.rows,
                "bytes": sent.bytes,
                "content_digest": staged.content_digest,
                "milliseconds": milliseconds,
            }
        )
        return staged

    def _copy(self, source: Source, deadline: Deadline) -> StagedContent:
        sent = ContentTally(source.columns)
        told = self.clock.monotonic()
        with self.reader.snapshot(source.relation, source.columns, source.key, source.bounds) as snapshot:
            for batch in snapshot.batches():
                sent.add(batch)
                self.writer.write(batch)
                _require_bounds(source, sent, deadline)
                if self.clock.monotonic() - told > PROGRESS_SECONDS:
                    told = self.clock.monotonic()
                    self.channel.say({"event": "progress", "rows": sent.rows, "bytes": sent.bytes})
            if sent.rows != snapshot.rows:
                raise DponeError(ended_early(source.relation, sent.rows, snapshot.rows))
        return sent.content()


def _require_bounds(source: Source, sent: ContentTally, deadline: Deadline) -> None:
    bounds = source.bounds
    if sent.rows > bounds.max_rows or sent.bytes > bounds.max_bytes:
        raise DponeError(
            fail(
                "bounds_passed",
                f"source {source.relation}",
                found=f"at least {sent.rows} rows and {sent.bytes} bytes",
                allowed=f"{bounds.max_rows} rows and {bounds.max_bytes} bytes",
                next_command="raise `bounds` in the workspace and release anew, if the table may be that large",
            )
        )
    if deadline.passed():
        raise DponeError(
            fail(
                "deadline_passed",
                f"source {source.relation}",
                found=f"{sent.rows} rows when the time was up",
                allowed="a refresh within its execution time",
                next_command="retry; raise the execution time-out if it repeats",
            )
        )


def _differs(source: Source, sent: StagedContent, staged: StagedContent) -> Failed:
    return fail(
        "staged_content_differs",
        f"staged copy of {source.relation}",
        found=f"{staged.rows} rows, {staged.content_digest}",
        allowed=f"what was read: {sent.rows} rows, {sent.content_digest}",
        next_command="retry; nothing was published. If it repeats, report it with the attempt's evidence",
    )


def _not_let_go(job: PublishJob) -> Failed:
    return fail(
        "not_let_go",
        f"publication of {job.target}",
        found="no word from the controller to dispatch",
        allowed="a dispatch that was journaled first",
        next_command="retry; nothing was published",
    )
