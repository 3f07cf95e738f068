"""Identity and enrolment of a database, over an open session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

from dpone_provider.adapters.mssql import features, gate_definition
from dpone_provider.adapters.mssql.names import filled, identifier
from dpone_provider.adapters.mssql.session import Session
from dpone_provider.application.ports.catalog import Enrolment
from dpone_provider.application.relational.enrolment import Facts, another_life, incomplete, unguarded
from dpone_provider.application.unenrolled import not_enrolled
from dpone_provider.domain.identity import EngineKind, Family, Incarnation, Relation, Service, ServiceId
from dpone_provider.domain.outcomes import DponeError, Refused, Unknown, refuse, unknown, unwind
from dpone_provider.sql_files import load

STATEMENTS: Final = load(Path(__file__).with_name("enrolment.sql"))
UNENROLLED: Final = UUID("7c1f5b0a-9a0e-5f0e-8a55-2d6a6a2f3b90")
"""Namespace of the service ids of instances that nobody enrolled: pure sources."""
INSTALLED_EDITIONS: Final = (2, 3, 4)
"""EngineEdition of Standard, Enterprise and Express; the others are Azure's and Fabric's."""
OLDEST_MAJOR: Final = 15
"""SQL Server 2019."""
OF_A_LIFE: Final = ("database_guid", "database_id", "recovery_fork_guid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What any database says of itself. The GUIDs are as the server writes them, in lower case."""

    instance_guid: str
    database: str
    facts: Facts
    enrolled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """What an administrator's enrolment left."""

    service_id: str
    enrolment_id: str
    authority_id: str
    authority_incarnation: str
    family: str
    mark: int
    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class CouldWrite:
    """Somebody who could write a managed schema, and why. ``trusted``: an administrator, whom nothing here can bind."""

    principal: str
    kind: str
    why: str
    trusted: bool

    def __str__(self) -> str:
        """Return words for a message."""
        return f"{self.kind} {self.principal}: {self.why}"


def could_write(session: Session) -> tuple[CouldWrite, ...]:
    """List everybody who could write the database, those first whom admission refuses."""
    return tuple(
        CouldWrite(principal=principal, kind=kind, why=why, trusted=counts != "writer")
        for principal, kind, why, counts in session.rows(STATEMENTS["writers"])
    )


def identity(session: Session) -> Identity:
    """Read who the instance and the database are.

    Raises:
        DponeError: Refused for a server that is not modelled, Unknown when the login may not see what tells a life.
    """
    instance, database, database_id, guid, fork, collation, edition, major, enrolled = session.row(
        STATEMENTS["identity"]
    )
    if edition not in INSTALLED_EDITIONS or major < OLDEST_MAJOR:
        unwind(_not_modelled(database, edition, major))
    if None in (instance, guid, fork):
        unwind(_invisible(database))
    facts = _facts(collation, guid, database_id, fork)
    return Identity(instance_guid=instance.lower(), database=database, facts=facts, enrolled=bool(enrolled))


def marker(session: Session) -> Marker:
    """Read the marker of an enrolled database."""
    service, enrolment_id, authority, incarnation_, family, mark, database_id, guid, fork, collation = session.row(
        STATEMENTS["marker"]
    )
    return Marker(
        service_id=service,
        enrolment_id=enrolment_id,
        authority_id=authority,
        authority_incarnation=incarnation_,
        family=family,
        mark=mark,
        facts=_facts(collation, guid, database_id, fork),
    )


def _facts(collation: str, guid: str, database_id: str, fork: str) -> Facts:
    return {
        "collation_name": collation,
        "database_guid": guid.lower(),
        "database_id": database_id,
        "recovery_fork_guid": fork.lower(),
    }


def require_life(session: Session, source: Relation, pinned: Facts | None) -> None:
    """Compare what tells one life of a database from another with the pinned facts; None is fine with any.

    Raises:
        DponeError: Refused ``incarnation_changed``.
    """
    if pinned is None:
        return
    found = identity(session)
    refused = another_life(source, found.database, {name: found.facts[name] for name in OF_A_LIFE}, pinned)
    if refused is not None:
        unwind(refused)


def incarnation(session: Session) -> Incarnation | Refused | Unknown:
    """Read who the service and the database are; an enrolled database adds its enrolment."""
    try:
        return _incarnation(session)
    except DponeError as error:
        if isinstance(error.failure, Refused | Unknown):
            return error.failure
        raise


def _incarnation(session: Session) -> Incarnation:
    found = identity(session)
    if not found.enrolled:
        service = ServiceId(str(uuid5(UNENROLLED, found.instance_guid)))
        return Incarnation(Service(EngineKind.MSSQL, service), found.database, tuple(sorted(found.facts.items())))
    enrolled = marker(session)
    if dict(enrolled.facts) != dict(found.facts):
        unwind(_enrolled_elsewhere(found, enrolled))
    facts = {**found.facts, "enrolment_id": enrolled.enrolment_id}
    service = ServiceId(enrolled.service_id)
    return Incarnation(Service(EngineKind.MSSQL, service), found.database, tuple(sorted(facts.items())))


def enrolment(session: Session, control: str, reader: str | None = None) -> Enrolment | Refused | Unknown:
    """Read the marker, what the database must not be, the gate, the rights needed and who else could write: among them
    ``reader``, the login that the binding reads with, whoever trusts it otherwise."""
    who = incarnation(session)
    if not isinstance(who, Incarnation):
        return who
    subject = f"database {who.database}"
    if "enrolment_id" not in dict(who.facts):
        return not_enrolled(who.database, EngineKind.MSSQL)
    enrolled = marker(session)
    feature = features.refusal_of(session.rows(STATEMENTS["features"], {"control": control})) or _authority_elsewhere(
        session, subject, enrolled, control
    )
    if feature is not None:
        return feature
    installed = gate_definition.installed(session, control)
    problems = [*gate_definition.problems(session, control), *gate_definition.missing(installed)]
    refused = unguarded(who.database, problems, EngineKind.MSSQL, gate="the gate as installed, enabled")
    if refused is None:
        lacks = [text for (text,) in session.rows(STATEMENTS["shortcomings"], {"control": control})]
        refused = incomplete(who.database, lacks, EngineKind.MSSQL)
    if refused is not None:
        return refused
    return Enrolment(
        incarnation=who,
        family=Family(enrolled.family),
        authority_id=enrolled.authority_id,
        authority_incarnation=enrolled.authority_incarnation,
        mark=enrolled.mark,
        managed_schemas=tuple(name for name, _, intact in session.rows(STATEMENTS["managed_schemas"]) if intact),
        gate_digest=gate_definition.digest(installed),
        other_writers=_other_writers(session, control, reader),
    )


def _other_writers(session: Session, control: str, reader: str | None) -> tuple[str, ...]:
    writers = session.rows(STATEMENTS["other_writers"], {"reader": reader})
    strangers = session.rows(filled(STATEMENTS["strangers"], control=identifier(control)))
    return tuple(text for (text,) in (*writers, *strangers))


def _authority_elsewhere(session: Session, subject: str, enrolled: Marker, control: str) -> Refused | None:
    (here,) = session.row(STATEMENTS["authority_here"], {"control": control})
    found = "no such database on this instance"
    if here:
        (service,) = session.row(filled(STATEMENTS["authority_service"], control=identifier(control)))
        found = f"the gate of service {service}"
        if service == enrolled.service_id:
            return None
    return refuse(
        "authority_on_another_instance",
        f"control database {control} of {subject}",
        found=found,
        allowed=f"the control database of service {enrolled.service_id}, on the target's own instance",
        next_command="enrol the database with an authority on its own instance",
    )


def _not_modelled(database: str, edition: int, major: int) -> Refused:
    return refuse(
        "server_not_modelled",
        f"the server of database {database}",
        found=f"engine edition {edition}, major version {major}",
        allowed="an installed SQL Server 2019, 2022 or 2025 (engine editions 2, 3 and 4); Azure SQL is not modelled",
        next_command="bind the alias to such a server",
    )


def _invisible(database: str) -> Unknown:
    return unknown(
        "unreadable",
        f"sys.database_recovery_status of database {database}",
        found="NULL: the login may not see it",
        allowed="VIEW ANY DATABASE (or VIEW SERVER STATE) for the login",
        next_command="have an administrator grant it, then run the same command again",
    )


def _enrolled_elsewhere(found: Identity, enrolled: Marker) -> Refused:
    changed = sorted(name for name in found.facts if found.facts[name] != enrolled.facts.get(name))
    return refuse(
        "enrolled_elsewhere",
        f"database {found.database}",
        found=", ".join(f"{name} {found.facts[name]}" for name in changed),
        allowed=", ".join(f"{name} {enrolled.facts.get(name)}, as it was enrolled" for name in changed),
        next_command="it was restored, copied or attached anew: adopt it with sql/mssql/070_adopt_copy.sql, or enrol"
        " another, fresh database in its place",
    )
