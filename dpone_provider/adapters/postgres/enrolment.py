"""Identity and enrolment of a database, over an open session."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

from dpone_provider.adapters.postgres import gate_definition
from dpone_provider.adapters.postgres.session import Session
from dpone_provider.adapters.postgres.target import OBSERVATION
from dpone_provider.application.ports.catalog import Enrolment
from dpone_provider.application.relational.enrolment import Facts, another_life, incomplete, unguarded
from dpone_provider.application.unenrolled import not_enrolled
from dpone_provider.domain.identity import EngineKind, Family, Incarnation, Relation, Service, ServiceId
from dpone_provider.domain.outcomes import Refused, refuse, unwind
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("enrolment.sql"))
UNENROLLED: Final = UUID("0f5c0d3e-4a39-5d3a-9d0a-6c1f8f1f6b11")
"""Namespace of the service ids of clusters that nobody enrolled: pure sources."""


def service_id_of(system_identifier: str) -> ServiceId:
    """Return the id of a cluster that is not enrolled: it follows from the cluster's own identifier."""
    return ServiceId(str(uuid5(UNENROLLED, system_identifier)))


def require_life(session: Session, source: Relation, pinned: Facts | None) -> None:
    """Compare what tells one life of a database from another with the pinned facts; None is fine with any.

    Raises:
        DponeError: Refused ``incarnation_changed``.
    """
    if pinned is None:
        return
    system_identifier, database_oid, database, _ = session.row(STATEMENTS["identity"])
    found = {"database_oid": database_oid, "system_identifier": system_identifier}
    refused = another_life(source, database, found, pinned)
    if refused is not None:
        unwind(refused)


def incarnation(session: Session) -> Incarnation | Refused:
    """Read who the service and the database are.

    An enrolled database adds its enrolment and the cluster's timeline; any other is told by cluster and database alone.
    """
    system_identifier, database_oid, database, enrolled = session.row(STATEMENTS["identity"])
    facts = {"database_oid": database_oid, "system_identifier": system_identifier}
    if not enrolled:
        service = Service(EngineKind.POSTGRES, service_id_of(system_identifier))
        return Incarnation(service, database, tuple(sorted(facts.items())))
    service_id, pinned_system, enrolment_id, pinned_database, *_, timeline = session.row(STATEMENTS["marker"])
    if (pinned_system, pinned_database) != (system_identifier, database_oid):
        return refuse(
            "enrolled_elsewhere",
            f"database {database}",
            found=f"the marker of cluster {pinned_system}, database {pinned_database}",
            allowed=f"that of cluster {system_identifier}, database {database_oid}",
            next_command="it was copied: remove the enrolment with sql/postgres/090_remove.sql, then enrol it anew",
        )
    facts |= {"enrolment_id": enrolment_id, "timeline": timeline}
    return Incarnation(Service(EngineKind.POSTGRES, ServiceId(service_id)), database, tuple(sorted(facts.items())))


def enrolment(session: Session, control_schema: str, reader: str | None = None) -> Enrolment | Refused:
    """Read the marker, the gate, the rights needed and who else could write: among them ``reader``, the login that the
    binding reads with, whoever trusts it otherwise."""
    who = incarnation(session)
    if isinstance(who, Refused):
        return who
    if "enrolment_id" not in dict(who.facts):
        return not_enrolled(who.database, EngineKind.POSTGRES)
    installed = gate_definition.installed(session)
    problems = [*_gate_problems(session), *gate_definition.differences(installed, control_schema)]
    refused = unguarded(who.database, problems, EngineKind.POSTGRES, gate="the gate as shipped")
    if refused is None:
        lacks = [text for (text,) in session.rows(STATEMENTS["shortcomings"])]
        refused = incomplete(who.database, lacks, EngineKind.POSTGRES)
    return refused or _enrolment(session, who, gate_definition.digest(installed), reader)


def _gate_problems(session: Session) -> list[str]:
    return [text for (text,) in session.rows(gate_definition.STATEMENTS["hindrances"], {"schemas": []})]


def _enrolment(session: Session, who: Incarnation, gate_digest: str, reader: str | None) -> Enrolment:
    *_, authority_id, authority_incarnation, family, mark, _ = session.row(STATEMENTS["marker"])
    return Enrolment(
        incarnation=who,
        family=Family(family),
        authority_id=authority_id,
        authority_incarnation=authority_incarnation,
        mark=mark,
        managed_schemas=tuple(name for name, _, intact in session.rows(OBSERVATION["managed_schemas"]) if intact),
        gate_digest=gate_digest,
        other_writers=tuple(text for (text,) in session.rows(STATEMENTS["other_writers"], {"reader": reader})),
    )
