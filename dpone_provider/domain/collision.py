"""Who collides with whom, and why: every relation that may be written, in each physical database, against every other.

The database's own collation decides which names are one (their *class*); this module never guesses it. But names that
another collation, a person or a file system would take for one are refused too: such a pair is one restore away from
being the same table.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar, assert_never

from dpone_provider.domain.footprint import Role
from dpone_provider.domain.identity import EngineKind, IncarnationId, Relation
from dpone_provider.domain.outcomes import Refused, refuse

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class WorkloadRelation:
    """A relation that a workload may write in one physical database.

    ``relation_class`` is its class there; before anything was observed, the relation itself. ``node`` is the dbt node
    that writes it. For a slot of another environment ``workload_id`` says whose it is, in words.
    """

    incarnation_id: IncarnationId
    relation_class: Relation
    relation: Relation
    workload_id: str
    node: str = ""
    role: Role = Role.TARGET

    def __str__(self) -> str:
        """Return ``schema.name, role of workload (node)``."""
        node = f" ({self.node})" if self.node else ""
        return f"{self.relation}, {self.role} of {self.workload_id}{node}"


class CollisionKind(StrEnum):
    """Why two writers, or a writer and a name that is not its own, cannot both be; the value is the reason."""

    SAME_RELATION = "two_workloads_write_one_relation"
    THROUGH_HELPER = "helper_relation_collides"
    OTHER_ENVIRONMENT = "slot_of_another_environment"
    UNSAFE_PAIR = "names_unsafe_together"
    TRUNCATED = "names_truncate_to_one"
    TOO_LONG = "name_too_long"
    RESERVED = "name_is_reserved"


RESERVED_SCHEMAS: Final = frozenset({"dpone_control", "dpone_gate", "dpone_receipt"})
"""Ours in every enrolled database; staging databases are reserved by the caller."""

_STAGING_NAME: Final = re.compile(r"dpone_[0-9a-f]{16}(_[0-9a-f]{16})?")
_ALLOWED: Final = MappingProxyType(
    {
        CollisionKind.SAME_RELATION: "one writer for each relation",
        CollisionKind.THROUGH_HELPER: "no relation that is another one's helper; rename one of them",
        CollisionKind.OTHER_ENVIRONMENT: "relations that no other environment owns; its slots are never drained",
        CollisionKind.UNSAFE_PAIR: "names that differ by more than case, blanks at the end or compatible characters",
        CollisionKind.TRUNCATED: "names that differ within the engine's limit",
        CollisionKind.TOO_LONG: "names within the engine's limit, helpers included",
        CollisionKind.RESERVED: "names outside dpone's own schemas and staging names",
    }
)
_RANK: Final = MappingProxyType({kind: rank for rank, kind in enumerate(CollisionKind)})
CHANGE_ONE: Final = "change one of the workloads, then compile, compose and build again"
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Collision:
    """One collision. ``second`` is None where a single name is at fault."""

    kind: CollisionKind
    first: WorkloadRelation
    second: WorkloadRelation | None = None

    def __str__(self) -> str:
        """Return both sides in words."""
        return f"{self.first}" if self.second is None else f"{self.first}; and {self.second}"

    def refusal(self) -> Refused:
        """Return the refusal that names both owners; its reason is the kind."""
        return _refusal((self,))


def refusal_of(found: Sequence[Collision]) -> Refused | None:
    """Return one refusal for all collisions (the first ones named, the reason that of the first), or None."""
    return _refusal(found) if found else None


def collisions(owned: Iterable[WorkloadRelation], elsewhere: Iterable[WorkloadRelation] = ()) -> tuple[Collision, ...]:
    """Return every collision between writers, the gravest kind first.

    Two entries of one class collide, whoever they belong to: one workload whose two nodes write one table as well. Two
    classes whose names are unsafe together collide. ``elsewhere`` are the slots that other environments own. The cost
    is that of sorting; n writers of one relation give n − 1 collisions.
    """
    ours = sorted(set(owned))
    found = [*_of_one_class(ours), *_elsewhere(ours, elsewhere), *_unsafe(ours)]
    return _in_order(found)


def name_faults(
    engine: EngineKind, owned: Iterable[WorkloadRelation], staging_schemas: Iterable[str] = ()
) -> tuple[Collision, ...]:
    """Return every name that cannot be a target in ``engine``: reserved, too long, or cut to another one's name.

    ``staging_schemas`` are where staged tables live, reserved as a whole. These faults need no observation.
    """
    ours = sorted(set(owned))
    reserved = {_folded(schema) for schema in RESERVED_SCHEMAS.union(staging_schemas)}
    return _in_order([*_single(engine, ours, reserved), *_truncated(engine, ours)])


def name_limit(engine: EngineKind) -> int:
    """Return how long a name may be, in the unit of ``name_length``.

    Sources: PostgreSQL NAMEDATALEN − 1; SQL Server sysname; ClickHouse's file name limit, measured as 209.
    """
    return {EngineKind.POSTGRES: 63, EngineKind.MSSQL: 128, EngineKind.CLICKHOUSE: 209}[engine]


def name_length(engine: EngineKind, name: str) -> int:
    """Return the length that the engine counts: UTF-8 bytes, UTF-16 units, or bytes of the escaped file name."""
    match engine:
        case EngineKind.POSTGRES:
            return len(name.encode())
        case EngineKind.MSSQL:
            return len(name.encode("utf-16-le")) // 2
        case EngineKind.CLICKHOUSE:
            return sum(1 if _kept_as_is(byte) else 3 for byte in name.encode())
        case _:
            assert_never(engine)


def safety_key(relation: Relation) -> tuple[str, str]:
    """Return what relations that are unsafe together have in common: case, width and blanks at the end are gone."""
    return _folded(relation.schema), _folded(relation.name)


def _kept_as_is(byte: int) -> bool:
    return byte < 128 and (chr(byte).isalnum() or byte == ord("_"))


def _folded(name: str) -> str:
    compatible = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", compatible).rstrip()


def _in_order(found: Iterable[Collision]) -> tuple[Collision, ...]:
    return tuple(sorted(set(found), key=lambda each: (_RANK[each.kind], each.first, each.second or each.first)))


def _refusal(found: Sequence[Collision]) -> Refused:
    first = found[0]
    shown = " | ".join(str(each) for each in found[:_SHOWN])
    more = f" | and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    subject = f"relation {first.first.relation}"
    return refuse(first.kind.value, subject, found=shown + more, allowed=_ALLOWED[first.kind], next_command=CHANGE_ONE)


def _of_one_class(ours: Sequence[WorkloadRelation]) -> Iterator[Collision]:
    groups: dict[tuple[IncarnationId, Relation], list[WorkloadRelation]] = defaultdict(list)
    for each in ours:
        groups[each.incarnation_id, each.relation_class].append(each)
    for first, *others in groups.values():
        for second in others:
            both_targets = first.role is Role.TARGET and second.role is Role.TARGET
            yield Collision(
                CollisionKind.SAME_RELATION if both_targets else CollisionKind.THROUGH_HELPER, first, second
            )


def _elsewhere(ours: Sequence[WorkloadRelation], elsewhere: Iterable[WorkloadRelation]) -> Iterator[Collision]:
    theirs = sorted(set(elsewhere), reverse=True)
    by_class = {(each.incarnation_id, each.relation_class): each for each in theirs}
    by_key = {(each.incarnation_id, safety_key(each.relation)): each for each in theirs}
    for each in ours:
        owned = by_class.get((each.incarnation_id, each.relation_class))
        near = by_key.get((each.incarnation_id, safety_key(each.relation)))
        if owned is not None:
            yield Collision(CollisionKind.OTHER_ENVIRONMENT, each, owned)
        elif near is not None:
            yield Collision(CollisionKind.UNSAFE_PAIR, each, near)


def _unsafe(ours: Sequence[WorkloadRelation]) -> Iterator[Collision]:
    keyed = (((each.incarnation_id, safety_key(each.relation)), each.relation_class, each) for each in ours)
    return _pairs(CollisionKind.UNSAFE_PAIR, keyed)


def _truncated(engine: EngineKind, ours: Sequence[WorkloadRelation]) -> Iterator[Collision]:
    keyed = (((each.incarnation_id, _cut(engine, each.relation)), each.relation, each) for each in ours)
    return _pairs(CollisionKind.TRUNCATED, keyed)


def _pairs(kind: CollisionKind, keyed: Iterable[tuple[_Key, Relation, WorkloadRelation]]) -> Iterator[Collision]:
    """Yield one collision for each further distinct relation under one key."""
    groups: dict[_Key, dict[Relation, WorkloadRelation]] = defaultdict(dict)
    for key, distinct, each in keyed:
        groups[key].setdefault(distinct, each)
    for group in groups.values():
        first, *others = group.values()
        for second in others:
            yield Collision(kind, first, second)


def _single(engine: EngineKind, ours: Sequence[WorkloadRelation], reserved: set[str]) -> Iterator[Collision]:
    limit = name_limit(engine)
    for each in ours:
        schema, name = safety_key(each.relation)
        if schema in reserved or _STAGING_NAME.fullmatch(name):
            yield Collision(CollisionKind.RESERVED, each)
        if max(name_length(engine, each.relation.schema), name_length(engine, each.relation.name)) > limit:
            yield Collision(CollisionKind.TOO_LONG, each)


def _cut(engine: EngineKind, relation: Relation) -> tuple[str, str]:
    limit = name_limit(engine)
    schema, name = relation.schema, relation.name
    while name_length(engine, schema) > limit:
        schema = schema[:-1]
    while name_length(engine, name) > limit:
        name = name[:-1]
    return schema, name
