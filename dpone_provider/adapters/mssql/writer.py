"""The worker's side of a refresh: staging (see `staging`), and the one transaction that makes it visible."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql import ddl, session, target
from dpone_provider.adapters.mssql.column_reads import staged_value
from dpone_provider.adapters.mssql.definitions import Found, Standing, read
from dpone_provider.adapters.mssql.errors import ERRORS, at_commit, before_commit
from dpone_provider.adapters.mssql.names import filled, identifier, joined, listed, qualified
from dpone_provider.adapters.mssql.observation import effects_of
from dpone_provider.adapters.mssql.server import CONTROL_DATABASE, Server
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.adapters.mssql.staging import MssqlStagingWriter
from dpone_provider.application.ports.tables import PublishJob, StagedContent, TargetBinding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import DponeError, Failed, Unknown, fail
from dpone_provider.sql_files import load

__all__ = ["MssqlFencedPublisher", "MssqlStagingWriter", "Way"]

STATEMENTS: Final = load(Path(__file__).with_name("publication.sql"))
NOTHING_PUBLISHED: Final = "nothing was published; the next try begins anew"


class Way(StrEnum):
    """How the content of a target is replaced, inside the one transaction."""

    INSERT = "insert"
    """DELETE and INSERT … SELECT: works for every target that may be refreshed."""
    SWITCH = "switch"
    """TRUNCATE and ALTER TABLE … SWITCH: metadata only, where staged and target are alike; stops every reader."""


@dataclass(frozen=True, slots=True)
class MssqlFencedPublisher:
    """Publishes on the issued login what `MssqlStagingWriter` staged, into what ``binding`` captured."""

    server: Server
    binding: TargetBinding
    control_database: str = CONTROL_DATABASE
    way: Way = Way.INSERT

    def publish(self, job: PublishJob, staged: StagedContent, deadline: Deadline) -> Failed | Unknown | None:
        """Lock the target, fence, sync the definition, replace the content, fence, write the receipt, COMMIT.

        Everything before COMMIT that fails is rolled back by the server, also when the connection is lost: Failed.
        """
        subject = f"publication into {job.target}"
        try:
            with self.server.session("dpone publisher", max(1.0, deadline.remaining())) as own:
                self._until_commit(own, job, staged)
                return _commit(own, subject)
        except ERRORS as error:
            return before_commit(error, subject)
        except DponeError as error:
            return Failed(error.failure.problem)

    def _until_commit(self, own: Session, job: PublishJob, staged: StagedContent) -> None:
        own.run(STATEMENTS["begin"])
        if self.binding.target_identity is not None:
            own.run(filled(STATEMENTS["lock_target"], table=qualified(job.target)))
        self._fence(own, job)
        found, stage = read(own, [job.target, job.staged])
        self._require_bound(own, job, found, stage)
        for action in target.actions(job.declared, found):
            for statement in ddl.statements(job.target, action):
                own.run(statement)
        match self.way:
            case Way.INSERT:
                _insert(own, job, staged)
            case Way.SWITCH:
                _switch(own, job, staged)
        self._fence(own, job)
        own.rows(STATEMENTS["add_receipt"], _receipt(job, staged))

    def _fence(self, own: Session, job: PublishJob) -> None:
        """Pass the fence, or raise the server's refusal."""
        statement = filled(STATEMENTS["fence"], control=identifier(self.control_database))
        own.run(statement, {"attempt_id": bytes.fromhex(job.attempt_id)})

    def _require_bound(self, own: Session, job: PublishJob, found: Found, stage: Found) -> None:
        """Require the target of `bind`, and staged rows of this attempt."""
        standing = target.identity(found)
        if standing != self.binding.target_identity:
            raise DponeError(_moved(job, self.binding.target_identity, standing))
        if isinstance(found, Standing):
            effects = effects_of(own, [found.object_id]).get(found.object_id, ())
            target.require_refreshable(job.declared, found, effects)
        label = stage.comment if isinstance(stage, Standing) else "no such table"
        if label != self.binding.staged_identity:
            raise DponeError(_not_staged(job, label))


def _insert(own: Session, job: PublishJob, staged: StagedContent) -> None:
    own.run(filled(STATEMENTS["delete"], table=qualified(job.target)))
    columns = job.declared.columns
    insert = filled(
        STATEMENTS["insert"],
        table=qualified(job.target),
        columns=listed(column.name for column in columns),
        selected=joined(staged_value(column, identifier(column.name)) for column in columns),
        staged=qualified(job.staged),
    )
    (inserted,) = own.row(insert)
    _require_rows(job, inserted, staged.rows)


def _switch(own: Session, job: PublishJob, staged: StagedContent) -> None:
    names = {"staged": qualified(job.staged), "target": qualified(job.target)}
    differences = [text for (text,) in own.rows(STATEMENTS["switch_differences"], names)]
    if differences:
        raise DponeError(_not_alike(job, differences))
    own.run(filled(STATEMENTS["truncate"], table=qualified(job.target)))
    own.run(filled(STATEMENTS["switch"], staged=qualified(job.staged), table=qualified(job.target)))
    (counted,) = own.row(filled(STATEMENTS["count"], table=qualified(job.target)))
    _require_rows(job, counted, staged.rows)


def _receipt(job: PublishJob, staged: StagedContent) -> dict[str, str | int | bytes]:
    return {
        "attempt_id": bytes.fromhex(job.attempt_id),
        "slot_id": bytes.fromhex(job.slot_id),
        "epoch": job.epoch,
        "rows": staged.rows,
        "content_digest": staged.content_digest,
    }


def _commit(own: Session, subject: str) -> Failed | Unknown | None:
    """Send COMMIT, once."""
    try:
        own.run(session.STATEMENTS["commit"])
    except ERRORS as error:
        return at_commit(error, subject)
    return None


def _require_rows(job: PublishJob, found: int, rows: int) -> None:
    if found != rows:
        raise DponeError(
            fail(
                "staged_rows_changed",
                f"staging table {job.staged}",
                found=f"{found} rows",
                allowed=f"the {rows} rows that were read back",
                next_command=NOTHING_PUBLISHED,
            )
        )


def _not_alike(job: PublishJob, differences: list[str]) -> Failed:
    return fail(
        "switch_not_possible",
        f"target {job.target}",
        found="; ".join(differences),
        allowed="a staging table of the same columns, keys, indexes, filegroup and compression, without constraints",
        next_command=f"{NOTHING_PUBLISHED} with the way insert, which needs none of this",
    )


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
