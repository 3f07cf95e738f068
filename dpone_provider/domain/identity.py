"""Who and what: services, databases, relations, slots, principals, attempts, and how their ids are made."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NewType
from uuid import UUID

OccurrenceId = NewType("OccurrenceId", str)
"""A UUID in text form, kept through every retry of one promotion."""
AttemptId = NewType("AttemptId", str)
"""64 lower-case hex digits: the digest of the attempt's whole binding."""
SlotId = NewType("SlotId", str)
"""64 lower-case hex digits: the digest of incarnation, schema and relation class."""
IncarnationId = NewType("IncarnationId", str)
"""64 lower-case hex digits: the digest of a service and a database's changing facts."""
ServiceId = NewType("ServiceId", str)
"""The UUID pinned at enrolment and read back from the server, in text form."""
Digest = NewType("Digest", str)
"""``sha256:`` and 64 lower-case hex digits, over a document's canonical bytes."""

PRINCIPAL_PREFIX = "dpone_v3_"
"""Every login of ours carries it; SQL Server has a tag in the SID's bytes as well."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HEX64 = re.compile(r"[0-9a-f]{64}")


class EngineKind(StrEnum):
    """The database engines that the product knows."""

    POSTGRES = "postgres"
    MSSQL = "mssql"
    CLICKHOUSE = "clickhouse"


class Family(StrEnum):
    """Which world a database belongs to; pinned at enrolment, never changed."""

    PRODUCTION = "production"
    NONPRODUCTION = "nonproduction"


def digest_of(data: bytes) -> Digest:
    """Return the digest of ``data`` in its one textual form."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


def parse_digest(text: str) -> Digest:
    """Return ``text`` as a digest.

    Raises:
        ValueError: it is not ``sha256:`` and 64 lower-case hex digits.
    """
    if not _DIGEST.fullmatch(text):
        raise ValueError(f"not a digest: {text!r}; allowed: sha256:<64 lower-case hex digits>")
    return Digest(text)


@lru_cache(maxsize=4096)
def hex_id(*parts: str) -> str:
    """Return 64 hex digits that no other sequence of parts gives: each part is framed by its length."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode()
        hasher.update(len(data).to_bytes(8, "big"))
        hasher.update(data)
    return hasher.hexdigest()


def short(identifier: str) -> str:
    """Return the first 12 digits of an id or digest, for a message that a person reads."""
    return identifier.removeprefix("sha256:")[:12]


@dataclass(frozen=True, slots=True, order=True)
class Service:
    """One running database server."""

    kind: EngineKind
    service_id: ServiceId

    def __post_init__(self) -> None:
        """Refuse an id that is not a UUID."""
        UUID(self.service_id)


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One life of one database: the facts change when it is dropped, restored or recreated.

    ``facts`` are (name, value) pairs in name order, exactly as the server gave them.
    """

    service: Service
    database: str
    facts: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        """Refuse facts that are empty or out of order: the id must not depend on how they were read."""
        if not self.facts or list(self.facts) != sorted(self.facts):
            raise ValueError("an incarnation needs facts, in name order")

    @property
    def incarnation_id(self) -> IncarnationId:
        """The id: a digest over service, database and every fact."""
        flat = [text for fact in self.facts for text in fact]
        return IncarnationId(hex_id(self.service.kind, self.service.service_id, self.database, *flat))


@dataclass(frozen=True, slots=True, order=True)
class Relation:
    """A table or view by name, inside a database that the context gives."""

    schema: str
    name: str

    def __post_init__(self) -> None:
        """Refuse empty names and control characters; every engine's own limits are its adapter's."""
        for part in (self.schema, self.name):
            if not part or not part.isprintable():
                raise ValueError(f"not a relation name: {part!r}")

    def __str__(self) -> str:
        """Return ``schema.name``, for messages only."""
        return f"{self.schema}.{self.name}"


def slot_id(incarnation: IncarnationId, relation_class: Relation) -> SlotId:
    """Return the id of the slot of ``relation_class`` (the first registered spelling of the name)."""
    return SlotId(hex_id("slot", incarnation, relation_class.schema, relation_class.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowTry:
    """One try of one Airflow task instance, in Airflow's words; ``task_instance_id`` is new per retry and per clear."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    task_instance_id: UUID

    @property
    def task_key(self) -> str:
        """The same for every try of one task of one run."""
        return hex_id("task", self.dag_id, self.run_id, self.task_id, str(self.map_index))

    @property
    def run_key(self) -> str:
        """The same for every task of one run."""
        return hex_id("run", self.dag_id, self.run_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptBinding:
    """Everything that an attempt is bound to; its digest is the attempt's id."""

    occurrence_id: OccurrenceId
    constituent: str
    workload_id: str
    pack_digest: Digest
    plan_digest: Digest
    airflow: AirflowTry

    @property
    def attempt_id(self) -> AttemptId:
        """The id: a digest over every field."""
        return _attempt_id(self)


@lru_cache(maxsize=1024)
def _attempt_id(bound: AttemptBinding) -> AttemptId:
    """Made once of each binding: every record of an attempt is compared with it."""
    tried = bound.airflow
    return AttemptId(
        hex_id(
            "attempt",
            bound.occurrence_id,
            bound.constituent,
            bound.workload_id,
            bound.pack_digest,
            bound.plan_digest,
            tried.dag_id,
            tried.run_id,
            tried.task_id,
            str(tried.map_index),
            str(tried.try_number),
            str(tried.task_instance_id),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The login issued for one attempt on one service.

    ``sid`` is what the server's own sessions can be matched by: the tagged SID in hex on SQL Server, the name itself
    where the engine gives the id only at creation (role oid, user UUID).
    """

    service_id: ServiceId
    name: str
    sid: str

    def __post_init__(self) -> None:
        """Refuse a name without our tag: recovery collects by it."""
        if not self.name.startswith(PRINCIPAL_PREFIX):
            raise ValueError(f"a principal's name starts with {PRINCIPAL_PREFIX}: {self.name!r}")

    @property
    def gate_name(self) -> GateName:
        """What its gate is named by."""
        return GateName(self.service_id, self.name)


@dataclass(frozen=True, slots=True, order=True)
class GateName:
    """What a proof names a gate by: its service, and the login's name there. Two services may know the same name."""

    service_id: ServiceId
    principal: str

    def __str__(self) -> str:
        """Return both, for messages."""
        return f"{self.principal} on service {self.service_id}"


def principal_name(attempt_id: AttemptId) -> str:
    """Return the name of an attempt's login: 41 characters, within every engine's limit (PostgreSQL: 63 bytes)."""
    if not _HEX64.fullmatch(attempt_id):
        raise ValueError(f"not an attempt id: {attempt_id!r}")
    return PRINCIPAL_PREFIX + attempt_id[:32]


def staged_name(slot: SlotId, attempt: AttemptId) -> str:
    """Return the name of an attempt's own staged table: ``dpone_<16 hex slot>_<16 hex attempt>``."""
    return f"dpone_{slot[:16]}_{attempt[:16]}"


def stage_name(slot: SlotId) -> str:
    """Return the name of a slot's staging table beside its target: ``dpone_<16 hex slot>``."""
    return f"dpone_{slot[:16]}"
