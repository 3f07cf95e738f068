"""Physical admission: steps 3 and 4 of a promotion, and the request that they end in.

Resolve every alias, read every identity, compare with what was pinned; then observe each physical database once and
refuse what cannot be owned. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from dpone_provider.application.admission_rules import (
    Landing,
    read_of,
    require_enrolled_as_pinned,
    require_ours,
    require_source_as_pinned,
    require_supported,
)
from dpone_provider.application.ledger.calls import nothing_changed, require, settled
from dpone_provider.application.ledger.promotion import ObservedIncarnation
from dpone_provider.application.left_behind import left_behind
from dpone_provider.application.parent import Footprint, Parent, footprints
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, PhysicalCatalog
from dpone_provider.application.ports.ledger import Authority, Ledger, LedgerTransaction, Lock, WorkloadRow
from dpone_provider.application.ports.services import Services
from dpone_provider.application.ports.time import Deadline
from dpone_provider.documents.activation_request import (
    CompositionActivationRequestV1,
    RequestContext,
    RequestedDatabase,
    RequestedSlot,
    RequestedWorkload,
)
from dpone_provider.documents.connection_registry import Connection, Fact
from dpone_provider.domain.collision import WorkloadRelation, collisions, refusal_of
from dpone_provider.domain.identity import (
    Digest,
    Incarnation,
    IncarnationId,
    OccurrenceId,
    Relation,
    SlotId,
    slot_id,
)
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.slot import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedTarget:
    """One physical database that the parent writes: how it is reached, and what was read of it."""

    connection: Connection
    catalog: PhysicalCatalog
    enrolment: Enrolment
    observation: DatabaseObservation
    classes: Mapping[Relation, Relation]
    registered: frozenset[Relation]

    @property
    def incarnation(self) -> Incarnation:
        """The database's present life."""
        return self.enrolment.incarnation

    def slot_of(self, relation: Relation) -> SlotId:
        """Return the id of the slot of a relation: that of its class."""
        return slot_id(self.incarnation.incarnation_id, self.classes[relation])


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Everything that a request is made of: the observed databases, and each workload's slots."""

    parent: Parent
    targets: Mapping[IncarnationId, ObservedTarget]
    landings: tuple[Landing, ...]
    writes: Mapping[str, tuple[SlotId, ...]]
    reads: Mapping[str, tuple[SlotId, ...]]

    def databases(self) -> tuple[ObservedIncarnation, ...]:
        """Return the databases as the request's transaction registers and claims them."""
        written = {one for slots in self.writes.values() for one in slots}
        read = {one for slots in self.reads.values() for one in slots} - written
        return tuple(
            ObservedIncarnation(
                incarnation=target.incarnation,
                registered=target.registered,
                slots=tuple(slot for slot in _slots(target) if slot.slot_id in written),
                read_only=tuple(slot for slot in _slots(target) if slot.slot_id in read),
            )
            for _, target in sorted(self.targets.items())
        )

    def workload_rows(self, occurrence_id: OccurrenceId) -> tuple[WorkloadRow, ...]:
        """Return the request's workloads as the ledger holds them."""
        plans = {task.workload_id: task.plan_digest for dag in self.parent.dags.values() for task in dag.tasks}
        kinds = {pack.workload_id: each.kind for each in self.parent.release.constituents for pack in each.packs}
        return tuple(
            WorkloadRow(
                occurrence_id=occurrence_id,
                workload_id=workload_id,
                constituent=kinds[workload_id],
                cell=landing.cell,
                pack_digest=self.parent.packs[workload_id].digest,
                plan_digest=plans[workload_id],
                services=(landing.footprint.target.service.service_id,),
                writes=self.writes[workload_id],
                reads=self.reads[workload_id],
            )
            for landing in self.landings
            for workload_id in (landing.footprint.workload_id,)
        )

    def slot_names(self) -> dict[SlotId, str]:
        """Return every slot that the parent writes, with its name for a person."""
        written = {one for slots in self.writes.values() for one in slots}
        return {
            slot.slot_id: slot_name(target.incarnation, slot)
            for target in self.targets.values()
            for slot in _slots(target)
            if slot.slot_id in written
        }

    def request(
        self, occurrence_id: OccurrenceId, predecessor_id: OccurrenceId | None
    ) -> CompositionActivationRequestV1:
        """Return the immutable request document."""
        rows = self.workload_rows(occurrence_id)
        named = {one for row in rows for one in (*row.writes, *row.reads)}
        slots = [slot for target in self.targets.values() for slot in _slots(target) if slot.slot_id in named]
        return CompositionActivationRequestV1(
            context=RequestContext(
                occurrence_id=occurrence_id,
                environment=self.parent.environment,
                release_id=self.parent.deployment.release,
                deployment_id=self.parent.deployment_id,
                predecessor_id=predecessor_id,
            ),
            workloads=tuple(_requested_workload(row) for row in rows),
            databases=tuple(_requested_database(target) for _, target in sorted(self.targets.items())),
            slots=tuple(_requested_slot(slot) for slot in sorted(slots, key=lambda one: one.slot_id)),
            evidence=tuple(sorted({target.observation.evidence_digest for target in self.targets.values()})),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitter:
    """Resolves and observes parents against one authority."""

    ledger: Ledger
    services: Services

    def admit(self, parent: Parent, deadline: Deadline) -> Admission:
        """Return the admission of ``parent``.

        Raises:
            DponeError: Refused with the first reason, or Unknown when something cannot be read. Nothing was changed.
        """
        try:
            return self._admit(parent, deadline)
        except DponeError as error:
            raise DponeError(nothing_changed(error.failure)) from error

    def _admit(self, parent: Parent, deadline: Deadline) -> Admission:
        authority = settled(self.ledger.authority())
        landings = require_supported(parent, footprints(parent), authority)
        enrolments = self._enrolments(landings, authority, deadline)
        self._require_sources(landings)
        targets = self._observe(landings, enrolments, deadline)
        return self._admission(parent, landings, targets, deadline)

    def _enrolments(
        self, landings: Iterable[Landing], authority: Authority, deadline: Deadline
    ) -> dict[str, tuple[Connection, PhysicalCatalog, Enrolment]]:
        found: dict[str, tuple[Connection, PhysicalCatalog, Enrolment]] = {}
        for landing in landings:
            connection = landing.footprint.target
            if connection.reference not in found:
                catalog = self.services.catalog(connection)
                found[connection.reference] = (connection, catalog, read_of(connection, catalog.enrolment()))
        # Taken after the marks were read: whoever raised them had taken a lower number of this ledger.
        sequence = require(self.ledger, "read", lambda tx: tx.next_sequence(), deadline)
        for connection, _, enrolment in found.values():
            require_enrolled_as_pinned(connection, enrolment, authority, sequence)
        return found

    def _require_sources(self, landings: Iterable[Landing]) -> None:
        seen: set[str] = set()
        for landing in landings:
            source = landing.footprint.source
            if source is not None and source.reference not in seen:
                seen.add(source.reference)
                require_source_as_pinned(source, read_of(source, self.services.catalog(source).incarnation()))

    def _observe(
        self,
        landings: tuple[Landing, ...],
        enrolments: Mapping[str, tuple[Connection, PhysicalCatalog, Enrolment]],
        deadline: Deadline,
    ) -> dict[IncarnationId, ObservedTarget]:
        targets: dict[IncarnationId, ObservedTarget] = {}
        for connection, catalog, enrolment in enrolments.values():
            incarnation_id = enrolment.incarnation.incarnation_id
            if incarnation_id in targets:
                continue
            wanted = _candidates(landings, incarnation_id, enrolments)
            registered = require(self.ledger, "read", _registered(incarnation_id), deadline)
            observation = read_of(connection, catalog.observe(wanted, registered, deadline))
            targets[incarnation_id] = ObservedTarget(
                connection=connection,
                catalog=catalog,
                enrolment=enrolment,
                observation=observation,
                classes=dict(observation.classes),
                registered=frozenset(registered),
            )
        return targets

    def _admission(
        self,
        parent: Parent,
        landings: tuple[Landing, ...],
        targets: Mapping[IncarnationId, ObservedTarget],
        deadline: Deadline,
    ) -> Admission:
        by_database = {_database_key(target.connection): target for target in targets.values()}
        writes: dict[str, tuple[SlotId, ...]] = {}
        reads: dict[str, tuple[SlotId, ...]] = {}
        for landing in landings:
            mark = landing.footprint
            target = by_database[_database_key(mark.target)]
            writes[mark.workload_id] = tuple(sorted({target.slot_of(one) for one in mark.writes}))
            source = by_database.get(_database_key(mark.read_from))
            reads[mark.workload_id] = _read_slots(source, mark) if source is not None else ()
        _require_no_collision(landings, by_database, self._elsewhere(parent.environment, targets, deadline))
        for target in targets.values():
            classes = set(target.classes.values())
            left = require(self.ledger, "read", partial(left_behind, target.incarnation, classes), deadline)
            registered = target.registered | left
            require_ours(target.connection, target.observation, _writers(landings, target), registered)
        return Admission(parent=parent, targets=targets, landings=landings, writes=writes, reads=reads)

    def _elsewhere(
        self, environment: str, targets: Mapping[IncarnationId, ObservedTarget], deadline: Deadline
    ) -> tuple[WorkloadRelation, ...]:
        """Return every slot of these databases that another environment owns: theirs is never drained."""
        ids = {slot_id(one, relation) for one, target in targets.items() for relation in target.registered}

        def read(tx: LedgerTransaction) -> tuple[tuple[Slot, Occurrence | None], ...]:
            owned = [slot for slot in tx.slots(ids, Lock.NONE) if slot.owner_id is not None]
            owners = {one: tx.occurrence(one, Lock.NONE) for one in {slot.owner_id for slot in owned} if one}
            return tuple((slot, owners.get(OccurrenceId(str(slot.owner_id)))) for slot in owned)

        return tuple(
            WorkloadRelation(
                workload_id=str(owner),
                incarnation_id=slot.incarnation_id,
                relation=slot.relation,
                relation_class=slot.relation,
            )
            for slot, owner in require(self.ledger, "read", read, deadline)
            if owner is not None and owner.environment != environment
        )


def slot_name(incarnation: Incarnation, slot: Slot) -> str:
    """Return ``kind database: schema.relation``: the same relation name may stand in several databases."""
    return f"{incarnation.service.kind} {incarnation.database}: {slot.relation}"


def _registered(incarnation_id: IncarnationId) -> Callable[[LedgerTransaction], tuple[Relation, ...]]:
    return lambda tx: tx.registered(incarnation_id)


def _database_key(connection: Connection) -> tuple[str, str]:
    return (connection.composition_service_id, connection.endpoint.database)


def _candidates(
    landings: Iterable[Landing],
    incarnation_id: IncarnationId,
    enrolments: Mapping[str, tuple[Connection, PhysicalCatalog, Enrolment]],
) -> tuple[Relation, ...]:
    keys = {
        _database_key(connection)
        for connection, _, enrolment in enrolments.values()
        if enrolment.incarnation.incarnation_id == incarnation_id
    }
    managed = {
        schema
        for _, _, enrolment in enrolments.values()
        if enrolment.incarnation.incarnation_id == incarnation_id
        for schema in enrolment.managed_schemas
    }
    wanted: set[Relation] = set()
    for landing in landings:
        mark = landing.footprint
        if _database_key(mark.target) in keys:
            wanted |= set(mark.writes)
        if _database_key(mark.read_from) in keys:
            wanted |= {one for one in mark.reads if one.schema in managed}
    return tuple(sorted(wanted))


def _read_slots(source: ObservedTarget, mark: Footprint) -> tuple[SlotId, ...]:
    managed = [one for one in mark.reads if one.schema in source.enrolment.managed_schemas]
    own = {source.slot_of(one) for one in mark.writes} if mark.source is None else set()
    return tuple(sorted({source.slot_of(one) for one in managed} - own))


def _writers(landings: Iterable[Landing], target: ObservedTarget) -> dict[Relation, Landing]:
    key = _database_key(target.connection)
    return {
        relation: landing
        for landing in landings
        if _database_key(landing.footprint.target) == key
        for relation in landing.footprint.writes
    }


def _require_no_collision(
    landings: Iterable[Landing],
    by_database: Mapping[tuple[str, str], ObservedTarget],
    elsewhere: Iterable[WorkloadRelation],
) -> None:
    owned: list[WorkloadRelation] = []
    for landing in landings:
        target = by_database[_database_key(landing.footprint.target)]
        for written in landing.footprint.writes:
            owned.append(
                WorkloadRelation(
                    workload_id=landing.footprint.workload_id,
                    incarnation_id=target.incarnation.incarnation_id,
                    relation=written,
                    relation_class=target.classes[written],
                )
            )
    refused = refusal_of(collisions(owned, elsewhere))
    if refused is not None:
        raise DponeError(refused)


def _slots(target: ObservedTarget) -> tuple[Slot, ...]:
    incarnation_id = target.incarnation.incarnation_id
    classes = sorted({relation_class for _, relation_class in target.observation.classes})
    return tuple(
        Slot(slot_id=slot_id(incarnation_id, one), incarnation_id=incarnation_id, relation=one, owner_id=None, epoch=0)
        for one in classes
    )


def _requested_workload(row: WorkloadRow) -> RequestedWorkload:
    return RequestedWorkload.model_validate(
        {
            "workload_id": row.workload_id,
            "constituent": row.constituent,
            "cell": row.cell,
            "pack_digest": row.pack_digest,
            "plan_digest": row.plan_digest,
            "services": row.services,
            "writes": row.writes,
            "reads": row.reads,
        }
    )


def _requested_database(target: ObservedTarget) -> RequestedDatabase:
    incarnation = target.incarnation
    return RequestedDatabase(
        incarnation_id=incarnation.incarnation_id,
        kind=incarnation.service.kind,
        service_id=incarnation.service.service_id,
        database=incarnation.database,
        facts=tuple(Fact(name=name, value=value) for name, value in incarnation.facts),
        family=target.enrolment.family,
        gate_digest=Digest(target.enrolment.gate_digest) if target.enrolment.gate_digest else None,
    )


def _requested_slot(slot: Slot) -> RequestedSlot:
    return RequestedSlot(
        slot_id=slot.slot_id,
        incarnation_id=slot.incarnation_id,
        schema_name=slot.relation.schema,
        name=slot.relation.name,
    )
