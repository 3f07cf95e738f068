"""What stands where: identity of services and databases, collation classes, objects at and near the slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.effects import Effect
from dpone_provider.domain.identity import Digest, Family, Incarnation, OccurrenceId, Relation
from dpone_provider.domain.outcomes import Refused, Unknown


class ObjectKind(StrEnum):
    """What can stand at a name. Only TABLE and VIEW can be ours."""

    TABLE = "table"
    VIEW = "view"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedObject:
    """One object at a candidate slot, or at a name of the same class.

    ``identity`` is what survives a rename and changes at a drop (oid, object id, UUID). ``created_by_us`` tells whether
    its owner is the schema's writer role (SQL engines), or the staging journal knows its UUID (ClickHouse).
    ``dependants`` are objects outside the candidates that use it; ``unmodelled`` are effects that writing it would have
    beyond the table: triggers, rules, row policies, materialised views, TTL …
    """

    relation: Relation
    kind: ObjectKind
    engine_kind: str
    identity: str
    owner: str
    created_by_us: bool
    dependants: tuple[str, ...] = ()
    unmodelled: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseObservation:
    """What one look at one database showed; ``evidence_digest`` is over its canonical form.

    ``classes`` pairs each candidate, in the order asked, with its class: of the candidates and the registered slots
    that the database holds equal under its own collation, the first in the order (registered first, then as asked).
    """

    incarnation: Incarnation
    collation: str
    classes: tuple[tuple[Relation, Relation], ...]
    objects: tuple[ObservedObject, ...]
    evidence_digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """What a database says of itself: the marker that an administrator's enrolment left, as read now.

    ``mark`` is the highest ledger sequence number that it has seen. ``managed_schemas`` may be written by our logins,
    each through its own writer role. ``gate_digest`` is the digest of the installed gate's definition, None where the
    engine has no gate object (ClickHouse). ``other_writers`` could write a managed schema and are not ours.
    """

    incarnation: Incarnation
    family: Family
    authority_id: str
    authority_incarnation: str
    mark: int
    managed_schemas: tuple[str, ...]
    gate_digest: str | None
    other_writers: tuple[str, ...]


class PhysicalCatalog(Protocol):
    """One database through the controller's connection, or a source through the binding's.

    Total: what cannot be read is Unknown with reason ``unreadable``, never "absent" and never an empty list. Every call
    is its own read-only transaction with a lock time-out; the caller orders nothing.
    """

    def incarnation(self) -> Incarnation | Refused | Unknown:
        """Read the service's and the database's identity from the server itself."""

    def enrolment(self) -> Enrolment | Refused | Unknown:
        """Read the marker, the gate, the permissions needed and who else could write.

        Refused: not enrolled, gate missing, disabled or altered, a permission missing (each named).
        """

    def observe(
        self, candidates: Sequence[Relation], registered: Sequence[Relation], deadline: Deadline
    ) -> DatabaseObservation | Refused | Unknown:
        """Observe all candidate slots in a constant number of queries.

        Refused: the schema of a candidate is not managed or does not exist; the database holds an unsupported feature.
        """

    def raise_mark(self, sequence: int) -> Unknown | None:
        """Raise the target's mark to ``sequence`` if it is lower (ClickHouse; SQL engines do it in the ledger's own
        transaction where they share the instance)."""

    def take_receipt(self, occurrence: OccurrenceId) -> tuple[str, ...] | Unknown:
        """Return the ids of the attempts for which the target itself holds a receipt under ``occurrence``."""
