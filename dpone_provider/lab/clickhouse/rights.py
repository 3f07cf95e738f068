"""Which of the rights that are needed a user lacks, by the server's own list of rights and their groups. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_OPTION: Final = " WITH GRANT OPTION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One right: ``name`` as in ``system.privileges``; no ``database`` means all of them."""

    name: str
    database: str
    with_option: bool

    def __str__(self) -> str:
        """Return it as GRANT says it."""
        return f"{self.name} ON {self.database or '*'}.*{_OPTION if self.with_option else ''}"


def rights_of(grants: Iterable[str]) -> tuple[Right, ...]:
    """Return the rights of grants as they stand between GRANT and TO, without those on table engines."""
    return tuple(right for grant in grants for right in _rights_of(grant))


def lacking(needed: Iterable[Right], held: Sequence[Right], groups: Mapping[str, str]) -> tuple[Right, ...]:
    """Return what is needed and not held. ``groups``: by right, the group that it belongs to, '' for none.

    A right is held with its group, and with everything that belongs to it. One that the server does not know is not
    needed there.
    """
    members: dict[str, list[str]] = {}
    for name, group in groups.items():
        members.setdefault(group, []).append(name)
    return tuple(one for one in needed if one.name in groups and not _held(one, held, groups, members))


def _rights_of(grant: str) -> Iterator[Right]:
    names, _, where = grant.removesuffix(_OPTION).partition(" ON ")
    database, dot, _ = where.partition(".")
    if dot:
        for name in names.split(","):
            yield Right(
                name=name.strip(),
                database="" if database == "*" else database,
                with_option=grant.endswith(_OPTION),
            )


def _held(needed: Right, held: Sequence[Right], groups: Mapping[str, str], members: Mapping[str, list[str]]) -> bool:
    enough = {
        one.name
        for one in held
        if one.database in ("", needed.database) and (one.with_option or not needed.with_option)
    }

    def whole(name: str) -> bool:
        parts = members.get(name, ())
        return name in enough or (bool(parts) and all(whole(part) for part in parts))

    return whole(needed.name) or any(group in enough for group in _groups_of(needed.name, groups))


def _groups_of(name: str, groups: Mapping[str, str]) -> Iterator[str]:
    while name := groups.get(name, ""):
        yield name
