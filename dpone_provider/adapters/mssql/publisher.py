"""`TablePublisher`: the controller's side of a refresh. Staging and dispatch are the worker's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.adapters.mssql import ddl
from dpone_provider.adapters.mssql.definitions import read
from dpone_provider.adapters.mssql.errors import ERRORS, MssqlError, ServerError
from dpone_provider.adapters.mssql.names import filled, qualified, too_long
from dpone_provider.adapters.mssql.observation import effects_of
from dpone_provider.adapters.mssql.server import Server
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.adapters.mssql.staging import label_of
from dpone_provider.adapters.mssql.target import RULES
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
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown, refuse
from dpone_provider.domain.publication import Publication, Verb
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("publication.sql"))
CALL_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class MssqlPublisher:
    """Binds, discards and observes through the controller's login."""

    server: Server

    def bind(self, job: PublishJob) -> TargetBinding | Refused | Unknown:
        """Capture the target, and drop what an earlier attempt staged under the slot's name."""
        refused = too_long(job.target, job.staged)
        if refused is not None:
            return refused
        try:
            with self._session("bind") as own:
                bound = _bound(own, job)
                own.run(filled(ddl.STATEMENTS["drop_table"], table=qualified(job.staged)))
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
        said: MssqlError | str = STILL_THERE
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
        asked = {"attempt_id": bytes.fromhex(job.attempt_id), "slot_id": bytes.fromhex(job.slot_id)}
        try:
            with self._session("observe") as own:
                rows = own.rows(STATEMENTS["receipt"], asked)
        except ERRORS as error:
            return unreadable(error, f"receipt of attempt {job.attempt_id}")
        return by_receipt(job, rows)

    def _session(self, purpose: str) -> AbstractContextManager[Session]:
        return self.server.session(f"dpone publisher: {purpose}", CALL_SECONDS)


def _bound(own: Session, job: PublishJob) -> TargetBinding:
    (found,) = read(own, [job.target])
    _require_managed(own, job.target)
    if isinstance(found, Standing):
        if found.owner:
            raise DponeError(_foreign(job.target, found.owner))
        RULES.require_refreshable(job.declared, found, effects_of(own, [found.identity]).get(found.identity, ()))
    standing = RULES.identity(found)
    RULES.actions(job.declared, found)
    return TargetBinding(verb=Verb.REPLACE, target_identity=standing, staged_identity=label_of(job))


def _require_managed(own: Session, relation: Relation) -> None:
    if not own.rows(STATEMENTS["writer_of"], {"schema_name": relation.schema}):
        raise DponeError(
            refuse(
                "schema_not_managed",
                f"target {relation}",
                found=f"schema {relation.schema}, which was never enrolled, or was made anew",
                allowed="a managed schema of this database",
                next_command="have an administrator run 045_enrol_schema.sql for it",
            )
        )


def _is_own(own: Session, job: PublishJob) -> bool:
    (found,) = read(own, [job.staged])
    return isinstance(found, Standing) and found.comment == label_of(job)


def _drop_own(own: Session, job: PublishJob) -> None:
    """Lock, look again, drop: nobody makes the table anew in between."""
    with own.transaction():
        own.run(filled(STATEMENTS["lock_target"], table=qualified(job.staged)))
        if _is_own(own, job):
            own.run(filled(ddl.STATEMENTS["drop_table"], table=qualified(job.staged)))


def _foreign(relation: Relation, owner: str) -> Refused:
    return refuse(
        "target_not_ours",
        f"target {relation}",
        found=f"a table that {owner} owns apart from its schema",
        allowed="a table that belongs to its schema's owner, or none",
        next_command="choose another name, or ALTER AUTHORIZATION ON … TO SCHEMA OWNER",
    )
