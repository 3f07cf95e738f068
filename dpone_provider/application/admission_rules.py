"""What admission refuses, one function per rule, each with its own reason and every name that a person needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dpone_provider.application.jobs import cell_of
from dpone_provider.application.parent import Footprint, Parent
from dpone_provider.application.ports.catalog import DatabaseObservation, Enrolment, ObjectKind, ObservedObject
from dpone_provider.application.ports.ledger import Authority
from dpone_provider.application.ports.readmission import READMIT, WENT_BACK
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.domain import effects
from dpone_provider.domain.collision import safety_key
from dpone_provider.domain.identity import Incarnation, Relation
from dpone_provider.domain.outcomes import Failure, Refused, refuse, type_of_failure, unwind

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """A workload with the cell of the support matrix that it falls into."""

    footprint: Footprint
    cell: str
    is_dbt: bool


def require_supported(parent: Parent, footprints: Iterable[Footprint], authority: Authority) -> tuple[Landing, ...]:
    """Return each workload with its cell; one unsupported workload refuses the whole parent."""
    if parent.family is not authority.family:
        unwind(_other_family(f"deployment of environment {parent.environment}", parent.family, authority))
    landings: list[Landing] = []
    for mark in footprints:
        for connection in (mark.target, mark.source):
            if connection is not None and connection.family is not authority.family:
                unwind(_other_family(f"connection {connection.reference}", connection.family, authority))
        is_dbt = isinstance(parent.packs[mark.workload_id], ExecutionPackV2)
        cell = cell_of(parent.packs[mark.workload_id], authority.family)
        if isinstance(cell, Refused):
            unwind(cell)
        landings.append(Landing(footprint=mark, cell=str(cell), is_dbt=is_dbt))
    return tuple(landings)


def require_enrolled_as_pinned(
    connection: Connection, enrolment: Enrolment, authority: Authority, ledger_sequence: int
) -> None:
    """Refuse a database that is not the one that was pinned, belongs to another authority, or others can write."""
    where = f"database {connection.endpoint.database} of connection {connection.reference}"
    require_source_as_pinned(connection, enrolment.incarnation)
    if enrolment.family is not connection.family:
        unwind(_other_family(where, enrolment.family, authority))
    require_obeyed(where, enrolment, authority, ledger_sequence)
    require_no_other_writers(where, enrolment.other_writers)


def require_obeyed(where: str, enrolment: Enrolment, authority: Authority, ledger_sequence: int) -> None:
    """Refuse a database that obeys another authority, or this one in another incarnation or from a later time."""
    named = (enrolment.authority_id, enrolment.authority_incarnation)
    if named != (authority.authority_id, authority.incarnation) or enrolment.mark > ledger_sequence:
        unwind(
            refuse(
                WENT_BACK,
                where,
                found=f"authority {named[0]} in incarnation {named[1]}, mark {enrolment.mark}",
                allowed=f"authority {authority.authority_id} in incarnation {authority.incarnation}, and a mark of at"
                f" most {ledger_sequence}",
                next_command=READMIT,
            )
        )


def require_no_other_writers(where: str, writers: Sequence[str]) -> None:
    """Refuse a database that somebody else could write, naming everybody who could, and why."""
    if writers:
        unwind(
            refuse(
                "other_writers",
                where,
                found="; ".join(writers),
                allowed="no principal but the issued logins and the trusted administrators",
                next_command="revoke these rights, or choose another database; then run the same command again",
            )
        )


def read_of(connection: Connection, result: Result | Failure) -> Result:
    """Return what was read of a connection's database.

    Raises:
        DponeError: the failure, naming the connection and where it leads beside what the catalog named.
    """
    if not isinstance(result, type_of_failure):
        return result
    problem = result.problem
    where = f"connection {connection.reference} at {connection.address}"
    unwind(replace(result, problem=replace(problem, subject=f"{where}: {problem.subject}")))


def require_source_as_pinned(connection: Connection, observed: Incarnation) -> None:
    """Refuse a service or database that is not the one that the registry pins."""
    where = f"connection {connection.reference} at {connection.address}"
    if observed.service.service_id != connection.composition_service_id:
        unwind(
            refuse(
                "another_service",
                where,
                found=f"service {observed.service.service_id}",
                allowed=f"service {connection.composition_service_id}",
                next_command="correct the endpoint, or enrol this service and build the deployment anew",
            )
        )
    pinned = {database.name: database for database in connection.databases}.get(connection.endpoint.database)
    if pinned is None or pinned.incarnation_id != observed.incarnation_id:
        facts = dict(observed.facts)
        was = {fact.name: fact.value for fact in pinned.facts} if pinned else {}
        changed = [f"{name} {facts.get(name)}" for name in sorted(facts) if facts.get(name) != was.get(name)]
        unwind(
            refuse(
                "incarnation_changed",
                where,
                found=", ".join(changed) or "another incarnation",
                allowed=", ".join(f"{name} {was[name]}" for name in sorted(was)) or "a database pinned in the registry",
                next_command="if the database was really replaced: enrol it again, pin it and build anew",
            )
        )


def require_ours(
    connection: Connection,
    observation: DatabaseObservation,
    writers: Mapping[Relation, Landing],
    registered: frozenset[Relation],
) -> None:
    """Refuse what stands at a written slot and is not ours, is of the wrong kind, or has effects beyond itself.

    Ours was created under a writer role of ours and stands at a slot that is registered.
    """
    classes = dict(observation.classes)
    known = {classes[relation]: landing for relation, landing in writers.items()}
    # An object may stand at a third spelling of a name that the database holds equal: then it is at no candidate.
    alike = {safety_key(relation_class): relation_class for relation_class in known}
    for one in observation.objects:
        relation_class = classes.get(one.relation, alike.get(safety_key(one.relation), one.relation))
        landing = known.get(relation_class)
        if landing is None:
            continue
        where = f"{one.engine_kind} {one.relation} of connection {connection.reference}"
        _require_kind(where, one, landing)
        _require_not_foreign(where, one, landing, relation_class in registered)
        _require_contained(where, one, landing)


def _require_kind(where: str, one: ObservedObject, landing: Landing) -> None:
    allowed = (ObjectKind.TABLE, ObjectKind.VIEW) if landing.is_dbt else (ObjectKind.TABLE,)
    if one.kind not in allowed:
        unwind(
            refuse(
                "target_of_another_kind",
                where,
                found=f"a {one.engine_kind} at a target of workload {landing.footprint.workload_id}",
                allowed=" or ".join(str(kind) for kind in allowed),
                next_command="move it away, or choose another target; then build the deployment anew",
            )
        )


def _require_not_foreign(where: str, one: ObservedObject, landing: Landing, registered: bool) -> None:
    if not (one.created_by_us and registered):
        unwind(
            refuse(
                "foreign_object",
                where,
                found=f"an object of owner {one.owner} that no workload of ours made",
                allowed=f"nothing, or what workload {landing.footprint.workload_id} left there",
                next_command="rename or drop it, or choose another target",
            )
        )


def _require_contained(where: str, one: ObservedObject, landing: Landing) -> None:
    refused = effects.refusal_of(f"{where}, which workload {landing.footprint.workload_id} writes", one.unmodelled)
    if refused is not None:
        unwind(refused)
    # dbt drops what it replaces, and what hangs on it too. A refill drops nothing; ClickHouse's views go by name.
    if one.dependants and landing.is_dbt:
        unwind(
            refuse(
                "dependants_outside",
                where,
                found=f"{', '.join(one.dependants)} over a relation of workload {landing.footprint.workload_id}",
                allowed="no object outside the parent's own slots that depends on it (replacing it would drop them)",
                next_command="drop them, or make them models of the project",
            )
        )


def _other_family(where: str, found: str, authority: Authority) -> Refused:
    return refuse(
        "another_family",
        where,
        found=f"family {found}",
        allowed=f"family {authority.family}, that of the authority",
        next_command="promote it with an authority of its own family",
    )
