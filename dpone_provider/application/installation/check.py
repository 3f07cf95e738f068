"""Compare what is installed on a SQL Server instance with what this version ships, object by object.

A difference is one object of ours that is missing, says something else, is switched off or cannot be seen, or one in
our schemas that nobody shipped. Digests of a module are over its tokens: layout and comments do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dpone_provider.application.installation.shipped import Names, Target, expected
from dpone_provider.application.installation.tsql import Unreadable, definition_digest
from dpone_provider.application.ports.installation import InstallationReader, InstalledObject, ObjectKind, Place
from dpone_provider.domain.outcomes import Refused, Unknown

OTHER_WAY: Final = frozenset(
    {
        ("ALTER ANY USER on database to dpone_ledger"),
        ("ALTER on role dpone_issued to dpone_ledger"),
        ("VIEW DEFINITION on database to dpone_ledger"),
    }
)
"""What 031_direct_grants.sql grants where procedures are not signed: allowed beside the rest."""
_WRITER: Final = "ALTER on role dpone_writer_"


class Difference(StrEnum):
    """In what way an object is not as shipped."""

    MISSING = "missing"
    ALTERED = "altered"
    DISABLED = "disabled or not trusted"
    UNREADABLE = "not visible to this login"
    NOT_OURS = "not shipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One object that is not as shipped; the digests are empty where there is nothing to digest."""

    place: Place
    kind: ObjectKind
    name: str
    difference: Difference
    shipped_digest: str = ""
    installed_digest: str = ""

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.place}: {self.kind} {self.name} is {self.difference}"


def check(
    reader: InstallationReader, names: Names, targets: Sequence[Target]
) -> tuple[Deviation, ...] | Refused | Unknown:
    """Return every object that is not as shipped, by place and name; empty when all are."""
    found: list[Deviation] = []
    for place, shipped in expected(names, targets).items():
        installed = reader.read(place)
        if isinstance(installed, Refused | Unknown):
            return installed
        found.extend(_deviations(place, shipped, installed))
    return tuple(found)


def digests(names: Names, targets: Sequence[Target]) -> tuple[tuple[Place, InstalledObject, str], ...]:
    """Return what is shipped with the digest of each definition, for an administrator to compare by hand."""
    return tuple((place, one, _digest(one)) for place, objects in expected(names, targets).items() for one in objects)


def _deviations(
    place: Place, shipped: Sequence[InstalledObject], installed: Sequence[InstalledObject]
) -> Iterator[Deviation]:
    wanted = {(one.kind, one.name): one for one in shipped}
    there = {(one.kind, one.name): one for one in installed}
    for key in sorted(wanted.keys() | there.keys()):
        difference = _difference(wanted.get(key), there.get(key))
        if difference is not None:
            yield Deviation(
                place=place,
                kind=key[0],
                name=key[1],
                difference=difference,
                shipped_digest=_digest(wanted.get(key)),
                installed_digest=_digest(there.get(key)),
            )


def _difference(wanted: InstalledObject | None, there: InstalledObject | None) -> Difference | None:
    if there is None:
        return Difference.MISSING
    if wanted is None:
        return None if _allowed_beside(there) else Difference.NOT_OURS
    if there.definition is None:
        return Difference.UNREADABLE
    if _digest(wanted) != _digest(there):
        return Difference.ALTERED
    return None if there.enabled else Difference.DISABLED


def _allowed_beside(one: InstalledObject) -> bool:
    direct = one.name in OTHER_WAY or (one.name.startswith(_WRITER) and one.name.endswith(" to dpone_ledger"))
    return one.kind is ObjectKind.GRANT and direct


def _digest(one: InstalledObject | None) -> str:
    """Return 64 hex digits over what a definition says; empty where there is none. Text without end counts as it is."""
    if one is None or not one.definition:
        return ""
    try:
        return definition_digest(one.definition)
    except Unreadable as error:
        return str(error)
