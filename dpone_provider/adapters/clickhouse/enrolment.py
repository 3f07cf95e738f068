"""The enrolment of a server: who may write it, the mark, and the journal of staged tables, in the staging database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dpone_provider.adapters.clickhouse.errors import ERRORS, UNKNOWN_TABLE, ServerError, of_mutation
from dpone_provider.adapters.clickhouse.names import with_names
from dpone_provider.adapters.clickhouse.observation import Blind, Observer
from dpone_provider.adapters.clickhouse.privileges import other_writers
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.application.ports.tables import PublishJob
from dpone_provider.domain.identity import AttemptId, Family, OccurrenceId, Relation, SlotId, hex_id
from dpone_provider.domain.outcomes import Failed, Refused, Unknown, fail, refuse, unknown
from dpone_provider.sql_files import load

STAGING_DATABASE: Final = "dpone_stage"
NIL_UUID: Final = "00000000-0000-0000-0000-000000000000"
UNKNOWN_DATABASE: Final = 81
_STATEMENTS: Final = load(Path(__file__).with_name("enrolment.sql"))
_TABLES: Final = {part: Relation(STAGING_DATABASE, f"dpone_{part}") for part in ("enrolment", "mark", "journal")}
_STAGED: Final = re.compile(r"dpone_[0-9a-f]{16}_[0-9a-f]{16}")
CHECK: Final = "put it right as docs/how-to-enrol-postgres.md says for ClickHouse, then run the same command again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The newest generation of one managed database's marker, as read."""

    authority_id: str
    authority_incarnation: str
    service_id: str
    family: Family
    managed_uuid: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentOrder:
    """What an administrator enrols: one database for one authority."""

    authority_id: str
    authority_incarnation: str
    family: Family
    database: str


class EnrolmentTables:
    """Reads and adds to the three tables. Methods raise as ``Session``."""

    def __init__(self, session: Session) -> None:
        """Speak through ``session``."""
        self._session = session

    def marker(self, database: str) -> Marker | None:
        """Return the marker of a database; None when it was never enrolled."""
        try:
            rows = self._session.rows(_sql("enrolment"), {"database": database})
        except ServerError as error:
            if error.code in (UNKNOWN_TABLE, UNKNOWN_DATABASE):
                return None
            raise
        if not rows:
            return None
        authority_id, incarnation, service_id, family, managed_uuid, generation = rows[0]
        return Marker(
            authority_id=authority_id,
            authority_incarnation=incarnation,
            service_id=service_id,
            family=Family(family),
            managed_uuid=managed_uuid,
            generation=int(generation),
        )

    def mark(self) -> int:
        """Return the highest ledger sequence number that this server has seen."""
        ((sequence,),) = self._session.rows(_sql("mark"))
        return int(sequence)

    def raise_mark(self, sequence: int) -> None:
        """Raise the mark to ``sequence`` if it is lower; two controllers at once do no harm."""
        if self.mark() < sequence:
            self._add("add_mark", {"sequence": sequence}, query_id=f"dpone-mark-{sequence}")

    def enter(self, job: PublishJob, staged_uuid: str) -> None:
        """Enter a staged table in the journal."""
        row: dict[str, object] = {
            "staged_uuid": staged_uuid,
            "slot_id": job.slot_id,
            "attempt_id": job.attempt_id,
            "occurrence_id": job.occurrence_id,
            "staged_name": job.staged.name,
            "epoch": job.epoch,
        }
        self._add("add_journal", row, query_id=f"dpone-journal-{staged_uuid}")

    def journaled(self, database: str) -> frozenset[str]:
        """Return the UUIDs of the tables in a database that the journal knows."""
        return frozenset(row[0] for row in self._session.rows(_sql("journaled"), {"database": database}))

    def attempts_of(self, occurrence: OccurrenceId) -> tuple[str, ...]:
        """Return the attempts of an occurrence that ever staged here."""
        return tuple(row[0] for row in self._session.rows(_sql("attempts_of"), {"occurrence_id": occurrence}))

    def highest_epochs(self) -> tuple[tuple[SlotId, int], ...]:
        """Return the highest epoch of each slot that was ever staged here, in slot order."""
        return tuple((SlotId(slot), int(epoch)) for slot, epoch in self._session.rows(_sql("highest_epochs")))

    def attempts(self) -> tuple[AttemptId, ...]:
        """Return every attempt that ever staged here, in order."""
        return tuple(AttemptId(attempt) for (attempt,) in self._session.rows(_sql("attempts")))

    def staged_names(self) -> tuple[tuple[AttemptId, str], ...]:
        """Return every attempt that ever staged here with the name of its staged table."""
        return tuple((AttemptId(attempt), name) for attempt, name in self._session.rows(_sql("staged_names")))

    def create(self) -> None:
        """Create the tables that are missing."""
        for part in _TABLES:
            self._session.mutate(_sql(f"create_{part}"), query_id=f"dpone-enrol-{part}")

    def add_marker(self, order: EnrolmentOrder, *, service_id: str, managed_uuid: str, generation: int) -> None:
        """Add one generation of the marker."""
        row: dict[str, object] = {
            "authority_id": order.authority_id,
            "authority_incarnation": order.authority_incarnation,
            "service_id": service_id,
            "family": order.family.value,
            "managed_database": order.database,
            "managed_uuid": managed_uuid,
            "generation": generation,
        }
        self._add("add_enrolment", row, query_id=f"dpone-enrol-{hex_id(*map(str, row.values()))[:32]}")

    def _add(self, statement: str, row: dict[str, object], *, query_id: str) -> None:
        self._session.mutate(_sql(statement), query_id=query_id, parameters=row, settings={"async_insert": 0})


def enrol(server: ClickHouseServer, order: EnrolmentOrder) -> Marker | Refused | Failed | Unknown:
    """Enrol ``order.database`` of a server: refuse what is not ours, leave the marker, read it back.

    Running it again with the same order changes nothing. Refused: a database that is missing or not Atomic, objects in
    the staging database that are not ours, another authority's marker, another writer, a server without an identity of
    its own in the production family.
    """
    session = Session(server)
    subject = f"enrolment of {server.endpoint}, database {order.database}"
    try:
        return _enrol(session, order, subject)
    except Blind:
        return blind(server, subject)
    except ERRORS as error:
        return of_mutation(error, subject, next_command="run the enrolment again")
    finally:
        session.release()


def _enrol(session: Session, order: EnrolmentOrder, subject: str) -> Marker | Refused | Failed:
    observer, tables = Observer(session), EnrolmentTables(session)
    databases = (order.database, STAGING_DATABASE)
    server_uuid, _ = observer.identity(databases)
    found = {row.name: row for row in observer.databases(databases)}
    for name in databases:
        if name not in found or found[name].engine != "Atomic":
            return _refused(
                "database_not_atomic",
                subject,
                f"database {name} {'missing' if name not in found else 'with engine ' + found[name].engine}",
                "existing databases of engine Atomic",
            )
    if server_uuid == NIL_UUID and order.family is Family.PRODUCTION:
        return _refused("service_without_identity", subject, "serverUUID() is zero", "a clickhouse-server")
    foreign = foreign_in_staging([table.name for table in observer.tables([STAGING_DATABASE], ())])
    if foreign:
        return _refused("foreign_objects", subject, f"in {STAGING_DATABASE}: {', '.join(foreign)}", "objects of ours")
    writers = writers_of(observer, order.database)
    if writers:
        return _refused("other_writers", subject, "; ".join(writers), "no writer but the controller")
    service_id = service_id_of(server_uuid, found[STAGING_DATABASE].uuid)
    return _marked(tables, order, subject, service_id=service_id, managed_uuid=found[order.database].uuid)


def _marked(
    tables: EnrolmentTables, order: EnrolmentOrder, subject: str, *, service_id: str, managed_uuid: str
) -> Marker | Refused | Failed:
    existing = tables.marker(order.database)
    wanted = Marker(
        authority_id=order.authority_id,
        authority_incarnation=order.authority_incarnation,
        service_id=service_id,
        family=order.family,
        managed_uuid=managed_uuid,
        generation=1 if existing is None else existing.generation,
    )
    if existing is not None and existing != wanted:
        return _refused("enrolled_otherwise", subject, existing, f"no marker, or {wanted}")
    if existing is None:
        tables.create()
        tables.add_marker(order, service_id=service_id, managed_uuid=managed_uuid, generation=1)
        existing = tables.marker(order.database)
    if existing != wanted:
        return fail(
            "marker_not_read_back", subject, found=existing, allowed=wanted, next_command="run the enrolment again"
        )
    return wanted


def foreign_in_staging(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the staging database that are not ours."""
    own = {relation.name for relation in _TABLES.values()}
    return tuple(sorted(name for name in names if name not in own and not _STAGED.fullmatch(name)))


def writers_of(observer: Observer, database: str) -> tuple[str, ...]:
    """Return in words everybody but us who could write the database or the staging database."""
    return other_writers(
        observer.grants(),
        observer.role_holders(),
        databases=(database, STAGING_DATABASE),
        staging=STAGING_DATABASE,
        controller=observer.current_user(),
    )


def service_id_of(server_uuid: str, staging_uuid: str) -> str:
    """Return the service's id: the server's UUID.

    What clickhouse-local serves (the lab's libchdb) has the zero UUID; there, the staging database's own UUID stands
    for it, which is as new for each new data directory.
    """
    return staging_uuid if server_uuid == NIL_UUID else server_uuid


def blind(server: ClickHouseServer, subject: str) -> Unknown:
    """Tell that the observer may not see everything, so that nothing can be concluded."""
    return unknown(
        "observer_blind",
        subject,
        found=f"user {server.credential.user} without SHOW ON *.*, or with something revoked",
        allowed="a user that holds SHOW ON *.* and SHOW ACCESS, with nothing revoked",
        next_command=f"GRANT SHOW ON *.* TO {server.credential.user}, then run the same command again",
    )


def _refused(reason: str, subject: str, found: object, allowed: str) -> Refused:
    return refuse(
        reason, subject, found=found, allowed=allowed, next_command="correct it, then run the enrolment again"
    )


def _sql(name: str) -> str:
    return with_names(_STATEMENTS[name], _TABLES)
