"""The worker's side of a refresh: staging (see `staging`), and the one transaction that makes it visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.adapters.postgres import ddl
from dpone_provider.adapters.postgres.definitions import read
from dpone_provider.adapters.postgres.errors import ERRORS
from dpone_provider.adapters.postgres.names import filled, listed, qualified
from dpone_provider.adapters.postgres.session import Parameters, Session, session
from dpone_provider.adapters.postgres.staging import PostgresStagingWriter
from dpone_provider.adapters.postgres.target import RULES, effects_of
from dpone_provider.application.ports.tables import PublishJob, StagedContent, TargetBinding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.relational.answers import at_commit, before_commit
from dpone_provider.application.relational.definitions import Found, Standing
from dpone_provider.application.relational.publication import NOTHING_PUBLISHED, other_rows, until_commit
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.effects import Effect
from dpone_provider.domain.outcomes import DponeError, Failed, Unknown, fail
from dpone_provider.domain.schema.actions import Action
from dpone_provider.sql_files import load

__all__ = ["PostgresFencedPublisher", "PostgresStagingWriter"]

STATEMENTS: Final = load(Path(__file__).with_name("publication.sql"))


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
                until_commit(PostgresTransaction(own, job), job, staged, self.binding, RULES)
                return _commit(own, subject)
        except ERRORS as error:
            return before_commit(error, subject)
        except DponeError as error:
            return Failed(error.failure.problem)


@dataclass(frozen=True, slots=True)
class PostgresTransaction:
    """`TargetTransaction`: what its steps are on PostgreSQL."""

    own: Session
    job: PublishJob

    def begin(self) -> None:
        """Begin it; an answered COMMIT is on disk."""
        self.own.run(STATEMENTS["begin"])
        self.own.run(STATEMENTS["durable"])

    def lock_target(self) -> None:
        """Take the ACCESS EXCLUSIVE lock."""
        self.own.run(filled(STATEMENTS["lock_target"], table=qualified(self.job.target)))

    def fence(self) -> None:
        """Call the fence."""
        self.own.rows(STATEMENTS["fence"], {"attempt_id": self.job.attempt_id})

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
        """TRUNCATE and INSERT … SELECT; the server's tag says how many rows it inserted."""
        names = {"table": qualified(self.job.target), "staged": qualified(self.job.staged)}
        self.own.run(filled(STATEMENTS["truncate"], table=names["table"]))
        tag = self.own.run(filled(STATEMENTS["insert"], columns=listed(list(self.job.declared.column_names)), **names))
        if tag != f"INSERT 0 {rows}":
            raise DponeError(other_rows(self.job, tag, rows))

    def add_receipt(self, staged: StagedContent) -> None:
        """Call the receipt function."""
        receipt: Parameters = {
            "attempt_id": self.job.attempt_id,
            "slot_id": self.job.slot_id,
            "epoch": self.job.epoch,
            "rows": staged.rows,
            "content_digest": staged.content_digest,
        }
        self.own.rows(STATEMENTS["add_receipt"], receipt)


def _commit(own: Session, subject: str) -> Failed | Unknown | None:
    """Send COMMIT, once. A server that answers ROLLBACK committed nothing, and says so without an error."""
    try:
        tag = own.run(STATEMENTS["commit"])
    except ERRORS as error:
        return at_commit(error, subject)
    if tag == "COMMIT":
        return None
    return fail("rolled_back_at_commit", subject, found=tag, allowed="COMMIT", next_command=NOTHING_PUBLISHED)
