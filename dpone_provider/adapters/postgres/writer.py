"""The worker's side of a refresh: staging (see `staging`), and the one transaction that makes it visible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.adapters.postgres import ddl, target
from dpone_provider.adapters.postgres.definitions import Found, Standing, read
from dpone_provider.adapters.postgres.errors import ERRORS, at_commit, before_commit
from dpone_provider.adapters.postgres.names import filled, listed, qualified
from dpone_provider.adapters.postgres.session import Session, session
from dpone_provider.adapters.postgres.staging import PostgresStagingWriter
from dpone_provider.application.ports.tables import PublishJob, StagedContent, TargetBinding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.outcomes import DponeError, Failed, Unknown, fail
from dpone_provider.sql_files import load

__all__ = ["PostgresFencedPublisher", "PostgresStagingWriter"]

STATEMENTS: Final = load(Path(__file__).with_name("publication.sql"))
NOTHING_PUBLISHED: Final = "nothing was published; the next try begins anew"


@dataclass(frozen=True, slots=True)
class PostgresFencedPublisher:
    """Publishes on the issued login what `PostgresStagingWriter` staged, into what ``binding`` captured."""

    endpoint: Endpoint
    credential: Credential
    binding: TargetBinding

    def publish(self, job: PublishJob, staged: StagedContent, deadline: Deadline) -> Failed | Unknown | None:
        """Lock the target, fence, sync the definition, replace the content, fence, write the receipt, COMMIT.

        Everything before COMMIT that fails is rolled back by the server, also when the connection is lost: Failed.
        """
        subject = f"publication into {job.target}"
        try:
            with session(
                self.endpoint, self.credential, purpose="dpone publisher", seconds=deadline.remaining()
            ) as own:
                self._until_commit(own, job, staged)
                return _commit(own, subject)
        except ERRORS as error:
            return before_commit(error, subject)
        except DponeError as error:
            return Failed(error.failure.problem)

    def _until_commit(self, own: Session, job: PublishJob, staged: StagedContent) -> None:
        own.run(STATEMENTS["begin"])
        own.run(STATEMENTS["durable"])
        if self.binding.target_identity is not None:
            own.run(filled(STATEMENTS["lock_target"], table=qualified(job.target)))
        fence(own, job)
        found, stage = read(own, [job.target, job.staged])
        self._require_bound(own, job, found, stage)
        for action in target.actions(job.declared, found):
            for statement in ddl.statements(job.target, action):
                own.run(statement)
        _replace(own, job, staged)
        fence(own, job)
        own.rows(STATEMENTS["add_receipt"], _receipt(job, staged))

    def _require_bound(self, own: Session, job: PublishJob, found: Found, stage: Found) -> None:
        """Require the target of `bind`, and staged rows of this attempt."""
        standing = target.identity(found)
        if standing != self.binding.target_identity:
            raise DponeError(_moved(job, self.binding.target_identity, standing))
        if isinstance(found, Standing):
            target.require_refreshable(job.declared, found, target.effects_of(own, [found.oid]).get(found.oid, ()))
        label = stage.comment if isinstance(stage, Standing) else "no such table"
        if label != self.binding.staged_identity:
            raise DponeError(_not_staged(job, label))


def fence(own: Session, job: PublishJob) -> None:
    """Pass the fence, or raise the server's refusal."""
    own.rows(STATEMENTS["fence"], {"attempt_id": job.attempt_id})


def _replace(own: Session, job: PublishJob, staged: StagedContent) -> None:
    own.run(filled(STATEMENTS["truncate"], table=qualified(job.target)))
    columns = listed(list(job.declared.column_names))
    insert = filled(STATEMENTS["insert"], table=qualified(job.target), columns=columns, staged=qualified(job.staged))
    tag = own.run(insert)
    if tag != f"INSERT 0 {staged.rows}":
        raise DponeError(_other_rows(job, tag, staged.rows))


def _receipt(job: PublishJob, staged: StagedContent) -> dict[str, object]:
    return {
        "attempt_id": job.attempt_id,
        "slot_id": job.slot_id,
        "epoch": job.epoch,
        "rows": staged.rows,
        "content_digest": staged.content_digest,
    }


def _commit(own: Session, subject: str) -> Failed | Unknown | None:
    """Send COMMIT, once. A server that answers ROLLBACK committed nothing, and says so without an error."""
    try:
        tag = own.run(STATEMENTS["commit"])
    except ERRORS as error:
        return at_commit(error, subject)
    if tag == "COMMIT":
        return None
    return fail("rolled_back_at_commit", subject, found=tag, allowed="COMMIT", next_command=NOTHING_PUBLISHED)


def _moved(job: PublishJob, bound: str | None, standing: str | None) -> Failed:
    return fail(
        "target_moved",
        f"target {job.target}",
        found=standing or "no such table",
        allowed=f"{bound or 'a free name'}, as when the attempt began",
        next_command=NOTHING_PUBLISHED,
    )


def _not_staged(job: PublishJob, label: str) -> Failed:
    return fail(
        "staged_rows_not_ours",
        f"staging table {job.staged}",
        found=label or "a table without a label",
        allowed=f"rows of attempt {job.attempt_id}",
        next_command=NOTHING_PUBLISHED,
    )


def _other_rows(job: PublishJob, tag: str, rows: int) -> Failed:
    return fail(
        "staged_rows_changed",
        f"staging table {job.staged}",
        found=tag,
        allowed=f"the {rows} rows that were read back",
        next_command=NOTHING_PUBLISHED,
    )
