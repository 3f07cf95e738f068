"""The controller's side of one target: bind, create what is staged, verify, dispatch once, discard, look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar
from uuid import UUID

from dpone_provider.adapters.clickhouse.content import content_of
from dpone_provider.adapters.clickhouse.ddl import (
    column_list,
    comment_clause,
    creation_settings,
    storage_clauses,
)
from dpone_provider.adapters.clickhouse.definition_sync import definition_refusal
from dpone_provider.adapters.clickhouse.definitions import PLAIN_ENGINE, features
from dpone_provider.adapters.clickhouse.enrolment import STAGING_DATABASE, EnrolmentTables, blind
from dpone_provider.adapters.clickhouse.errors import ERRORS, of_mutation, unreadable
from dpone_provider.adapters.clickhouse.expressions import normalised_table
from dpone_provider.adapters.clickhouse.names import refuse_long_name, uuid_literal, with_names
from dpone_provider.adapters.clickhouse.observation import Blind, Observer, TableRow
from dpone_provider.adapters.clickhouse.schema_reader import observed_tables
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.application.ports.tables import (
    NotPublished,
    Published,
    PublishJob,
    StagedContent,
    TargetBinding,
)
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import Relation, hex_id
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, Unknown, fail, refuse, unknown
from dpone_provider.domain.publication import Publication, Verb
from dpone_provider.sql_files import load

_STATEMENTS: Final = load(Path(__file__).with_name("publish.sql"))
_DISPATCHES: Final = {Verb.EXCHANGE: "exchange", Verb.RENAME: "rename"}
Result = TypeVar("Result")


class ClickHousePublisher:
    """``TablePublisher`` through the controller's user. Every call is on its own connection."""

    def __init__(self, server: ClickHouseServer) -> None:
        """Hold where the target is."""
        self._server = server
        self._session = Session(server)

    def bind(self, job: PublishJob) -> TargetBinding | Refused | Unknown:
        """Capture what has the target's name and fix the verb; see which other staged names of the slot there are.

        Refused: a name that is too long, a type that ClickHouse cannot hold, something else than a plain table, effects
        that a refresh would lose or set off, or a definition that the rules don't allow to become the declared one.
        """
        return self._ask(f"target {job.target}", lambda: self._bind(job))

    def create_staged(self, job: PublishJob, binding: TargetBinding) -> Failed | Unknown | None:
        """Drop what others left, journal the UUID of what is staged, then create the table with it: once only (57)."""
        for name in binding.left_over:
            left = self._ask(f"staged table {name}", partial(self._discard, Relation(job.staged.schema, name), job))
            if left is not None:
                return left
        try:
            declared = normalised_table(self._session, job.declared)
            columns = declared if isinstance(declared, Refused) else column_list(declared)
            if isinstance(declared, Refused) or isinstance(columns, Refused):
                return _not_staged(job, declared if isinstance(declared, Refused) else columns)
            EnrolmentTables(self._session).enter(job, binding.staged_identity)
            sql = with_names(
                _STATEMENTS["create_staged"],
                {
                    "staged": job.staged,
                    "uuid": uuid_literal(binding.staged_identity),
                    "columns": columns,
                    "storage": storage_clauses(declared),
                    "comment": comment_clause(declared),
                },
            )
            self._session.mutate(sql, query_id=_query_id(job, "create"), settings=creation_settings(declared))
        except ERRORS as error:
            return of_mutation(error, f"staged table {job.staged}", next_command="retry; nothing was published")
        finally:
            self._session.release()
        return None

    def verify(self, job: PublishJob, claimed: StagedContent, deadline: Deadline) -> StagedContent | Failed | Unknown:
        """Read the staged table, which nobody can write any more, and compare it with what the worker claimed."""
        try:
            found = content_of(self._server, job.staged, job.declared.columns, deadline)
        except DponeError as error:
            return fail(
                "staged_content_unreadable",
                f"staged table {job.staged}",
                found=error.failure.problem,
                allowed=f"{claimed.rows} rows, {claimed.content_digest}",
                next_command="retry; nothing was published",
            )
        if (found.rows, found.content_digest) != (claimed.rows, claimed.content_digest):
            return fail(
                "staged_content_differs",
                f"staged table {job.staged}",
                found=f"{found.rows} rows, {found.content_digest}",
                allowed=f"what the worker claimed: {claimed.rows} rows, {claimed.content_digest}",
                next_command="retry; nothing was published",
            )
        return found

    def dispatch(self, job: PublishJob, publication: Publication, deadline: Deadline) -> Failed | Unknown | None:
        """Look once more at both names, then send the one EXCHANGE or RENAME, never repeated."""
        try:
            moved = _moved(job, publication, _standing(self._session, job))
            if moved is not None or deadline.passed():
                return moved or _too_late(job)
            statement = _DISPATCHES[publication.verb]
            sql = with_names(_STATEMENTS[statement], {"staged": job.staged, "target": job.target})
            self._session.mutate(sql, query_id=_query_id(job, statement), seconds=deadline.remaining())
        except Blind:
            return blind(self._server, f"target {job.target}")
        except ERRORS as error:
            return of_mutation(error, f"publication of {job.target}", next_command="the target decides: look at it")
        finally:
            self._session.release()
        return None

    def discard_staged(self, job: PublishJob) -> Unknown | None:
        """Drop the attempt's own name, whichever table has it by now, and read it back as gone."""
        return self._ask(f"staged table {job.staged}", lambda: self._discard(job.staged, job))

    def observe(self, job: PublishJob, publication: Publication) -> Published | NotPublished | Unknown:
        """Look at the target, after the attempt's own name was dropped and read back as gone."""
        return self._ask(f"target {job.target}", lambda: self._observe(job, publication))

    def _bind(self, job: PublishJob) -> TargetBinding | Refused | Unknown:
        refused = _wrong_staging(job) or refuse_long_name(job.target, moved_from=job.staged.schema)
        declared = refused or normalised_table(self._session, job.declared)
        if isinstance(declared, Refused):
            return declared
        columns = column_list(declared)
        if isinstance(columns, Refused):
            return columns
        standing = _standing(self._session, job)
        if standing.target is not None:
            refused = _unfit(job, standing.target, Observer(self._session)) or definition_refusal(
                declared, observed_tables(self._session, [job.target])[0]
            )
            if refused is not None:
                return refused
        target = standing.target
        return TargetBinding(
            verb=Verb.RENAME if target is None else Verb.EXCHANGE,
            target_identity=None if target is None else target.uuid,
            staged_identity=staged_uuid(job),
            left_over=tuple(standing.left_over(job)),
        )

    def _discard(self, staged: Relation, job: PublishJob) -> Unknown | None:
        sql = with_names(_STATEMENTS["drop_staged"], {"staged": staged})
        said = "dropped"
        try:
            self._session.mutate(
                sql,
                query_id=f"dpone-{staged.name}-drop",
                settings={"max_table_size_to_drop": 0, "max_partition_size_to_drop": 0},
            )
        except ERRORS as error:
            said = str(error)  # what is seen next decides, not this answer
        left = [row for row in _standing(self._session, job).staged if row.name == staged.name]
        if not left:
            return None
        return unknown(
            "staged_object_not_gone",
            f"staged table {staged}",
            found=f"still there with UUID {left[0].uuid}; dropping it said: {said}",
            allowed="a name that is read back as gone",
            next_command=f"dpone recover --attempt {job.attempt_id}",
        )

    def _observe(self, job: PublishJob, publication: Publication) -> Published | NotPublished | Unknown:
        standing = _standing(self._session, job)
        if any(row.name == job.staged.name for row in standing.staged):
            return unknown(
                "staged_object_not_gone",
                f"staged table {job.staged}",
                found="still there: a late exchange could still publish it",
                allowed="a name that was dropped and read back as gone",
                next_command=f"dpone recover --attempt {job.attempt_id}",
            )
        seen = "nothing" if standing.target is None else f"UUID {standing.target.uuid}"
        evidence = f"{job.target} shows {seen}; staged was UUID {publication.staged_identity}; {job.staged} is gone"
        if standing.target is not None and standing.target.uuid == publication.staged_identity:
            return Published(rows=standing.target.rows, evidence=evidence)
        return NotPublished(evidence=evidence)

    def _ask(self, subject: str, question: Callable[[], Result]) -> Result | Unknown:
        try:
            return question()
        except Blind:
            return blind(self._server, subject)
        except ERRORS as error:
            return unreadable(error, subject, next_command="check the server, then dpone recover")
        finally:
            self._session.release()


def staged_uuid(job: PublishJob) -> str:
    """Return the UUID of the attempt's staged table: made of the attempt's id, which is never admitted twice."""
    return str(UUID(hex=hex_id("staged", job.attempt_id, job.slot_id)[:32], version=4))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What has the target's name, and every staged name of the slot."""

    target: TableRow | None
    staged: tuple[TableRow, ...]

    def left_over(self, job: PublishJob) -> list[str]:
        """The staged names of the slot that are not this job's."""
        return [row.name for row in self.staged if row.name != job.staged.name]


def _standing(session: Session, job: PublishJob) -> _Standing:
    rows = Observer(session).standing(_STATEMENTS["standing"], job.target, job.staged.schema, _slot_prefix(job))
    target = [row for row in rows if Relation(row.database, row.name) == job.target]
    return _Standing(target=target[0] if target else None, staged=tuple(row for row in rows if row not in target))


def _slot_prefix(job: PublishJob) -> str:
    return job.staged.name.rpartition("_")[0] + "_"


def _query_id(job: PublishJob, what: str) -> str:
    return f"dpone-{job.attempt_id[:32]}-{what}"


def _wrong_staging(job: PublishJob) -> Refused | None:
    if job.staged.schema == STAGING_DATABASE:
        return None
    return refuse(
        "wrong_staging_database",
        f"staged table {job.staged}",
        found=f"database {job.staged.schema}",
        allowed=f"database {STAGING_DATABASE}, which the enrolment covers",
        next_command=f'set "staging_schema" to {STAGING_DATABASE} in the environment, then dpone build',
    )


def _unfit(job: PublishJob, target: TableRow, observer: Observer) -> Refused | None:
    found = (
        (f"an object of engine {target.engine}",)
        if target.engine != PLAIN_ENGINE
        else (*features(target.definition), *(str(each) for each in observer.acting_on(job.target)))
    )
    if not found:
        return None
    return refuse(
        "target_not_refreshable",
        f"target {job.target}",
        found=", ".join(found),
        allowed=f"a plain {PLAIN_ENGINE} table that nothing but views reads",
        next_command="drop or change it by hand, or declare another target, then dpone compile",
    )


def _moved(job: PublishJob, publication: Publication, standing: _Standing) -> Failed | None:
    staged = [row.uuid for row in standing.staged if row.name == job.staged.name]
    target = None if standing.target is None else standing.target.uuid
    plain = standing.target is None or standing.target.engine == PLAIN_ENGINE
    if staged == [publication.staged_identity] and target == publication.target_identity and plain:
        return None
    return fail(
        "binding_moved",
        f"publication of {job.target}",
        found=f"target {target}, staged {', '.join(staged) or 'gone'}",
        allowed=f"target {publication.target_identity}, staged {publication.staged_identity}, both plain tables",
        next_command="retry; nothing was published",
    )


def _too_late(job: PublishJob) -> Failed:
    return fail(
        "deadline_passed",
        f"publication of {job.target}",
        found="no time left before the dispatch",
        allowed="a dispatch within the execution time",
        next_command="retry; nothing was published",
    )


def _not_staged(job: PublishJob, refused: object) -> Failed:
    found = refused.problem if isinstance(refused, Refused) else refused
    return fail(
        "staged_table_refused",
        f"staged table {job.staged}",
        found=found,
        allowed="a definition that ClickHouse can hold",
        next_command="correct the declaration, then dpone compile",
    )
