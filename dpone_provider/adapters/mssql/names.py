"""Names and literals in Transact-SQL: their limits, and the one way in which statements quote them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NewType

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused, refuse

Fragment = NewType("Fragment", str)
"""Text that may stand in a statement: quoted, or from a closed set."""
MAX_NAME_UNITS: Final = 128
"""sysname: nvarchar(128). A longer identifier is an error of the server (103), never cut."""
_SLOT: Final = re.compile(r"\{(?P<name>[a-z_]+)\}")


def identifier(name: str) -> Fragment:
    """Return a quoted name."""
    return Fragment("[" + name.replace("]", "]]") + "]")


def qualified(relation: Relation) -> Fragment:
    """Return a quoted ``schema.name``."""
    return Fragment(f"{identifier(relation.schema)}.{identifier(relation.name)}")


def literal(text: str) -> Fragment:
    """Return a quoted text, for the statements that take no parameters (CREATE LOGIN, extended properties)."""
    return Fragment("N'" + text.replace("'", "''") + "'")


def binary(data: bytes) -> Fragment:
    """Return a binary literal."""
    return Fragment("0x" + data.hex().upper())


def listed(names: Iterable[str]) -> Fragment:
    """Return quoted names with commas between them."""
    return Fragment(", ".join(identifier(name) for name in names))


def joined(fragments: Iterable[Fragment], separator: str = ", ") -> Fragment:
    """Return fragments with a separator between them."""
    return Fragment(separator.join(fragments))


def filled(statement: str, **parts: Fragment) -> Fragment:
    """Return a named statement with its braces filled in by fragments.

    Raises:
        KeyError: the statement has a brace for which nothing is given.
    """
    return Fragment(_SLOT.sub(lambda slot: parts[slot["name"]], statement))


def units(name: str) -> int:
    """Return how many UTF-16 code units a name has, which is what SQL Server counts."""
    return len(name.encode("utf-16-le")) // 2


def too_long(*relations: Relation) -> Refused | None:
    """Refuse the first name that SQL Server has no room for."""
    for relation in relations:
        for name in (relation.schema, relation.name):
            if units(name) > MAX_NAME_UNITS:
                return refuse(
                    "name_too_long",
                    f"relation {relation}",
                    found=f"{name!r} of {units(name)} UTF-16 code units",
                    allowed=f"at most {MAX_NAME_UNITS}",
                    next_command="choose a shorter name and release anew",
                )
    return None
