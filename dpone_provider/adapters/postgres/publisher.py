"""`TablePublisher`: the controller's side of a refresh. Staging and dispatch are the worker's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.adapters.postgres import ddl
from dpone_provider.adapters.postgres.definitions import read
from dpone_provider.adapters.postgres.errors import ERRORS, PostgresError, ServerError
from dpone_provider.adapters.postgres.names import filled, identifier, qualified, too_long
from dpone_provider.adapters.postgres.session import Session, session
from dpone_provider.adapters.postgres.target import RULES, effects_of
from dpone_provider.application.ports.tables import (
    NotPublished,
    Published,
    PublishJob,
    StagedContent,
    TargetBinding,
)
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.relational.answers import unreadable
from dpone_provider.application.relational.definitions import Standing
from dpone_provider.application.relational.publication import STILL_THERE, by_receipt, not_bound, not_dropped
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown, refuse
from dpone_provider.domain.publication import Publication, Verb
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("publication.sql"))
CALL_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class PostgresPublisher:
    """Binds, discards and observes through the controller's login."""

    endpoint: Endpoint
    credential: Credential

    def bind(self, job: PublishJob) -> TargetBinding | Refused | Unknown:
        """Capture the target, and drop what an earlier attempt staged under the slot's name."""
        refused = too_long(job.target, job.staged)
        if refused is not None:
            return refused
        try:
            with self._session("bind") as own:
                bound = _bound(own, job)
                _drop(own, job.staged)
                return bound
        except ERRORS as error:
            return unreadable(error, f"target {job.target}")
        except DponeError as error:
            return not_bound(error)

    def create_staged(self, job: PublishJob, binding: TargetBinding) -> None:
        """Do nothing: the worker makes the staging table on its own login."""

    def verify(self, job: PublishJob, claimed: StagedContent, deadline: Deadline) -> StagedContent:
        """Trust the worker's read-back: the dispatch transaction counts again what it inserts."""
        return claimed

    def dispatch(self, job: PublishJob, publication: Publication, deadline: Deadline) -> None:
        """Do nothing: dispatch is the worker's one transaction."""

    def discard_staged(self, job: PublishJob) -> Unknown | None:
        """Drop the slot's staging table if this attempt labelled it, and read it back as gone.

        One with another label is the next attempt's, which whoever ends this one too late must leave alone.
        """
        said: PostgresError | str = STILL_THERE
        try:
            with self._session("discard staged") as own:
                if _is_own(own, job):
                    try:
                        _drop_own(own, job)
                    except ServerError as error:
                        said = error  # what is read next decides
                left = _is_own(own, job)
        except ERRORS as error:
            return not_dropped(job.staged, error)
        return not_dropped(job.staged, said) if left else None

    def observe(self, job: PublishJob, publication: Publication) -> Published | NotPublished | Unknown:
        """Read the receipt. With the login's gate CLOSED, no receipt means that there will never be one."""
        try:
            with self._session("observe") as own:
                rows = own.rows(STATEMENTS["receipt"], {"attempt_id": job.attempt_id, "slot_id": job.slot_id})
        except ERRORS as error:
            return unreadable(error, f"receipt of attempt {job.attempt_id}")
        return by_receipt(job, rows)

    def _session(self, purpose: str) -> AbstractContextManager[Session]:
        return session(self.endpoint, self.credential, purpose=f"dpone publisher: {purpose}", seconds=CALL_SECONDS)


def _bound(own: Session, job: PublishJob) -> TargetBinding:
    (found,) = read(own, [job.target])
    writer = _writer_of(own, job.target)
    if isinstance(found, Standing):
        if found.owner != writer:
            raise DponeError(_foreign(job.target, found.owner, writer))
        RULES.require_refreshable(job.declared, found, effects_of(own, [found.identity]).get(found.identity, ()))
    standing = RULES.identity(found)
    RULES.actions(job.declared, found)
    return TargetBinding(verb=Verb.REPLACE, target_identity=standing, staged_identity=job.attempt_id)


def _writer_of(own: Session, relation: Relation) -> str:
    rows = own.rows(STATEMENTS["writer_of"], {"schema": relation.schema})
    if not rows:
        raise DponeError(
            refuse(
                "schema_not_managed",
                f"target {relation}",
                found=f"schema {relation.schema}, which was never enrolled",
                allowed="a managed schema of this database",
                next_command="have an administrator run 040_enrol_target.sql for it",
            )
        )
    return str(rows[0][0])


def _drop(own: Session, staged: Relation) -> None:
    with own.transaction():
        own.run(filled(STATEMENTS["act_as"], writer=identifier(_writer_of(own, staged))))
        own.run(filled(ddl.STATEMENTS["drop_table"], table=qualified(staged)))


def _is_own(own: Session, job: PublishJob) -> bool:
    (found,) = read(own, [job.staged])
    return isinstance(found, Standing) and found.comment == job.attempt_id


def _drop_own(own: Session, job: PublishJob) -> None:
    """Lock, look again, drop: nobody makes the table anew in between."""
    with own.transaction():
        own.run(filled(STATEMENTS["act_as"], writer=identifier(_writer_of(own, job.staged))))
        own.run(filled(STATEMENTS["lock_target"], table=qualified(job.staged)))
        if _is_own(own, job):
            own.run(filled(ddl.STATEMENTS["drop_table"], table=qualified(job.staged)))


def _foreign(relation: Relation, owner: str, writer: str) -> Refused:
    return refuse(
        "target_not_ours",
        f"target {relation}",
        found=f"a table of {owner}",
        allowed=f"a table of {writer}, or none",
        next_command="choose another name, or have an administrator give the table to the writer role",
    )
