"""The catalogue of one database: its identity, its enrolment, and what stands at the slots.

Names are compared exactly: ClickHouse knows no collation of names, ``T`` and ``t`` are two tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dpone_provider.adapters.clickhouse.asking import ask
from dpone_provider.adapters.clickhouse.definitions import PLAIN_ENGINE, features
from dpone_provider.adapters.clickhouse.enrolment import (
    CHECK,
    NIL_UUID,
    STAGING_DATABASE,
    EnrolmentTables,
    Marker,
    service_id_of,
    writers_of,
)
from dpone_provider.adapters.clickhouse.names import refuse_long_name
from dpone_provider.adapters.clickhouse.observation import Observer, Reference, TableRow
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, ObjectKind, ObservedObject
from dpone_provider.application.ports.time import Deadline
from dpone_provider.application.unenrolled import not_enrolled
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.identity import (
    EngineKind,
    Incarnation,
    OccurrenceId,
    Relation,
    Service,
    ServiceId,
    digest_of,
)
from dpone_provider.domain.outcomes import Refused, Unknown, refuse

COLLATION: Final = "binary"


class ClickHouseCatalog:
    """``PhysicalCatalog`` of the endpoint's database, through the controller's user. Total."""

    def __init__(self, server: ClickHouseServer, reader: str | None = None) -> None:
        """Hold where the database is; every call is on its own connection.

        ``reader`` is the user that the binding reads with, if any: it must not be able to write.
        """
        self._server = server
        self._reader = reader
        self._session = Session(server)
        self._database = server.endpoint.database

    def incarnation(self) -> Incarnation | Refused | Unknown:
        """Read the server's and the database's UUIDs."""
        return ask(self._session, self._incarnation)

    def enrolment(self) -> Enrolment | Refused | Unknown:
        """Read marker and mark, and who else could write. Refused: not enrolled, or not as enrolled."""
        return ask(self._session, self._enrolment)

    def observe(
        self, candidates: Sequence[Relation], registered: Sequence[Relation], deadline: Deadline
    ) -> DatabaseObservation | Refused | Unknown:
        """Observe all candidates with seven statements, however many they are."""
        return ask(self._session, lambda session: self._observe(session, candidates))

    def raise_mark(self, sequence: int) -> Unknown | None:
        """Raise the mark if it is lower."""
        raised = ask(self._session, lambda session: EnrolmentTables(session).raise_mark(sequence))
        return raised if isinstance(raised, Unknown) else None

    def take_receipt(self, occurrence: OccurrenceId) -> tuple[str, ...] | Unknown:
        """Return the attempts that ever staged here under the occurrence: ClickHouse's trace of a spent attempt."""
        return ask(self._session, lambda session: EnrolmentTables(session).attempts_of(occurrence))

    def _incarnation(self, session: Session) -> Incarnation | Refused:
        server_uuid, databases = Observer(session).identity((self._database, STAGING_DATABASE))
        found = {row.name: row for row in databases}
        for name in (self._database, STAGING_DATABASE):
            if name not in found or found[name].engine != "Atomic":
                engine = found[name].engine if name in found else "none: no such database is visible"
                return self._refused("database_not_atomic", f"database {name}, engine {engine}", "engine Atomic")
        uuid, staging = found[self._database].uuid, found[STAGING_DATABASE].uuid
        facts = [("database_uuid", uuid), ("server_uuid", server_uuid)]
        if server_uuid == NIL_UUID:
            facts.append(("staging_uuid", staging))
        service = Service(EngineKind.CLICKHOUSE, ServiceId(service_id_of(server_uuid, staging)))
        return Incarnation(service, self._database, tuple(sorted(facts)))

    def _enrolment(self, session: Session) -> Enrolment | Refused:
        incarnation = self._incarnation(session)
        if isinstance(incarnation, Refused):
            return incarnation
        observer, tables = Observer(session), EnrolmentTables(session)
        marker = tables.marker(self._database)
        if marker is None:
            return not_enrolled(self._database, EngineKind.CLICKHOUSE)
        differing = _differs(marker, incarnation)
        if differing:
            return self._refused("enrolled_otherwise", differing, "the server and database that were enrolled")
        clusters = observer.clusters()
        if clusters:
            return self._refused("part_of_a_cluster", f"clusters {', '.join(clusters)}", "a single node")
        return Enrolment(
            incarnation=incarnation,
            family=marker.family,
            authority_id=marker.authority_id,
            authority_incarnation=marker.authority_incarnation,
            mark=tables.mark(),
            managed_schemas=(self._database,),
            gate_digest=None,
            other_writers=(*writers_of(observer, self._database), *self._writing_reader()),
        )

    def _writing_reader(self) -> tuple[str, ...]:
        own = self._reader == self._server.credential.user
        return (f"user {self._reader}: the controller's own (the binding reads with it)",) if own else ()

    def _observe(self, session: Session, candidates: Sequence[Relation]) -> DatabaseObservation | Refused:
        for candidate in candidates:
            if candidate.schema != self._database:
                return self._refused("schema_not_managed", f"{candidate}", f"tables of database {self._database}")
            too_long = refuse_long_name(candidate, moved_from=STAGING_DATABASE)
            if too_long is not None:
                return too_long
        incarnation = self._incarnation(session)
        if isinstance(incarnation, Refused):
            return incarnation
        objects = self._objects(session, frozenset(candidates))
        return DatabaseObservation(
            incarnation=incarnation,
            collation=COLLATION,
            classes=tuple((candidate, candidate) for candidate in candidates),
            objects=objects,
            evidence_digest=digest_of(_canonical(incarnation, objects)),
        )

    def _objects(self, session: Session, candidates: frozenset[Relation]) -> tuple[ObservedObject, ...]:
        observer = Observer(session)
        names = {candidate.name for candidate in candidates}
        standing = [row for row in observer.tables([self._database], names) if row.name in names]
        own = EnrolmentTables(session).journaled(self._database) if standing else frozenset()
        effects = _Effects(
            references=observer.references(),
            policies=observer.row_policies([self._database]),
            mutations=observer.mutations([self._database]),
        )
        return tuple(_observed(row, effects, created_by_us=row.uuid in own) for row in standing)

    def _refused(self, reason: str, found: str, allowed: str) -> Refused:
        subject = f"{self._server.endpoint}"
        return refuse(reason, subject, found=found, allowed=allowed, next_command=CHECK)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Effects:
    references: Sequence[Reference]
    policies: Sequence[tuple[str, str, str]]
    mutations: Sequence[tuple[str, str, str]]

    def on(self, relation: Relation) -> tuple[Effect, ...]:
        """Everything that would make writing the table more than writing the table."""
        using = (each for each in self._using(relation) if each.engine != "View")
        hiding = (name for _, table, name in self.policies if table in ("", relation.name))
        under_way = (name for _, table, name in self.mutations if table == relation.name)
        return (
            *(Effect(EffectKind.DEPENDENT, f"{each} reads or writes it") for each in using),
            *(Effect(EffectKind.ROW_SECURITY, f"row policy {name}") for name in hiding),
            *(Effect(EffectKind.MUTATION, f"mutation {name} in flight") for name in under_way),
        )

    def views_of(self, relation: Relation) -> tuple[str, ...]:
        """Plain views that read the table: they go on working, by its name."""
        return tuple(str(each) for each in self._using(relation) if each.engine == "View")

    def _using(self, relation: Relation) -> list[Reference]:
        return [each for each in self.references if each.may_use(relation)]


def _observed(row: TableRow, effects: _Effects, *, created_by_us: bool) -> ObservedObject:
    relation = Relation(row.database, row.name)
    kind = {PLAIN_ENGINE: ObjectKind.TABLE, "View": ObjectKind.VIEW}.get(row.engine, ObjectKind.OTHER)
    own = (Effect(EffectKind.DEFINITION, said) for said in features(row.definition))
    unmodelled = (*own, *effects.on(relation)) if kind is ObjectKind.TABLE else ()
    return ObservedObject(
        relation=relation,
        kind=kind,
        engine_kind=row.engine,
        identity=row.uuid,
        owner="none (ClickHouse has no owners)",
        created_by_us=created_by_us,
        dependants=effects.views_of(relation),
        unmodelled=unmodelled,
    )


def _differs(marker: Marker, incarnation: Incarnation) -> str:
    facts = dict(incarnation.facts)
    if marker.service_id != incarnation.service.service_id:
        return f"service {incarnation.service.service_id}, enrolled as {marker.service_id}"
    if marker.managed_uuid != facts["database_uuid"]:
        return f"database UUID {facts['database_uuid']}, enrolled as {marker.managed_uuid}"
    return ""


def _canonical(incarnation: Incarnation, objects: Sequence[ObservedObject]) -> bytes:
    seen = [
        [
            str(each.relation),
            each.engine_kind,
            each.identity,
            each.created_by_us,
            each.dependants,
            list(map(str, each.unmodelled)),
        ]
        for each in sorted(objects, key=lambda each: each.relation)
    ]
    return json.dumps([incarnation.incarnation_id, seen], ensure_ascii=False, separators=(",", ":")).encode()
