"""The worker's side of a refresh: staging (see `staging`), and the one transaction that makes it visible."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql import ddl, session
from dpone_provider.adapters.mssql.column_reads import staged_value
from dpone_provider.adapters.mssql.definitions import read
from dpone_provider.adapters.mssql.errors import ERRORS
from dpone_provider.adapters.mssql.names import filled, identifier, joined, listed, qualified
from dpone_provider.adapters.mssql.observation import effects_of
from dpone_provider.adapters.mssql.parameters import Parameters
from dpone_provider.adapters.mssql.server import CONTROL_DATABASE, Server
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.adapters.mssql.staging import MssqlStagingWriter
from dpone_provider.adapters.mssql.target import RULES
from dpone_provider.application.ports.tables import PublishJob, StagedContent, TargetBinding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.relational.answers import at_commit, before_commit
from dpone_provider.application.relational.definitions import Found, Standing
from dpone_provider.application.relational.publication import NOTHING_PUBLISHED, other_rows, until_commit
from dpone_provider.domain.effects import Effect
from dpone_provider.domain.outcomes import DponeError, Failed, Unknown, fail
from dpone_provider.domain.schema.actions import Action
from dpone_provider.sql_files import load

__all__ = ["MssqlFencedPublisher", "MssqlStagingWriter", "Way"]

STATEMENTS: Final = load(Path(__file__).with_name("publication.sql"))
logger = logging.getLogger("dpone.publication")


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
                transaction = MssqlTransaction(own, job, self.control_database, self.way)
                until_commit(transaction, job, staged, self.binding, RULES)
                outcome = _commit(own, subject)
                if outcome is None and self.way is Way.SWITCH:
                    _update_statistics(own, job)
                return outcome
        except ERRORS as error:
            return before_commit(error, subject)
        except DponeError as error:
            return Failed(error.failure.problem)


@dataclass(frozen=True, slots=True)
class MssqlTransaction:
    """`TargetTransaction`: what its steps are on SQL Server."""

    own: Session
    job: PublishJob
    control_database: str
    way: Way

    def begin(self) -> None:
        """Begin it."""
        self.own.run(STATEMENTS["begin"])

    def lock_target(self) -> None:
        """Take the exclusive table lock."""
        self.own.run(filled(STATEMENTS["lock_target"], table=qualified(self.job.target)))

    def fence(self) -> None:
        """Call the fence in the control database."""
        statement = filled(STATEMENTS["fence"], control=identifier(self.control_database))
        self.own.run(statement, {"attempt_id": bytes.fromhex(self.job.attempt_id)})

    def definitions(self) -> tuple[Found, Found]:
        """Read both with one statement."""
        target, staged = read(self.own, [self.job.target, self.job.staged])
        return target, staged

    def effects(self, target: Standing) -> Sequence[Effect]:
        """Read what else happens when the table is written."""
        return effects_of(self.own, [target.identity]).get(target.identity, ())

    def change(self, action: Action) -> None:
        """Run the action's statements."""
        for statement in ddl.statements(self.job.target, action):
            self.own.run(statement)

    def replace_content(self, rows: int) -> None:
        """Replace it the chosen way, and count."""
        match self.way:
            case Way.INSERT:
                counted = _insert(self.own, self.job)
            case Way.SWITCH:
                counted = _switch(self.own, self.job)
        if counted != rows:
            raise DponeError(other_rows(self.job, f"{counted} rows", rows))

    def add_receipt(self, staged: StagedContent) -> None:
        """Call the receipt procedure."""
        receipt: Parameters = {
            "attempt_id": bytes.fromhex(self.job.attempt_id),
            "slot_id": bytes.fromhex(self.job.slot_id),
            "epoch": self.job.epoch,
            "rows": staged.rows,
            "content_digest": staged.content_digest,
        }
        self.own.rows(STATEMENTS["add_receipt"], receipt)


def _insert(own: Session, job: PublishJob) -> int:
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
    return int(inserted)


def _switch(own: Session, job: PublishJob) -> int:
    names = {"staged": qualified(job.staged), "target": qualified(job.target)}
    differences = [text for (text,) in own.rows(STATEMENTS["switch_differences"], names)]
    if differences:
        raise DponeError(_not_alike(job, differences))
    own.run(filled(STATEMENTS["truncate"], table=qualified(job.target)))
    own.run(filled(STATEMENTS["switch"], staged=qualified(job.staged), table=qualified(job.target)))
    (counted,) = own.row(filled(STATEMENTS["count"], table=qualified(job.target)))
    return int(counted)


def _commit(own: Session, subject: str) -> Failed | Unknown | None:
    """Send COMMIT, once."""
    try:
        own.run(session.STATEMENTS["commit"])
    except ERRORS as error:
        return at_commit(error, subject)
    return None


def _update_statistics(own: Session, job: PublishJob) -> None:
    """Bring the target's statistics up to date. It is published whatever comes of this: they are no part of it."""
    try:
        own.run(filled(STATEMENTS["update_statistics"], table=qualified(job.target)))
    except ERRORS as error:
        logger.warning(
            "target %s is published; its statistics are those of the rows before (%s): UPDATE STATISTICS by hand",
            job.target,
            error,
        )


def _not_alike(job: PublishJob, differences: list[str]) -> Failed:
    return fail(
        "switch_not_possible",
        f"target {job.target}",
        found="; ".join(differences),
        allowed="a staging table of the same columns, keys, indexes, filegroup and compression, without constraints",
        next_command=f"{NOTHING_PUBLISHED} with the way insert, which needs none of this",
    )
