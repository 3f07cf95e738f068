"""Names in PostgreSQL: their one limit, and the one way in which statements quote them."""

from __future__ import annotations

from typing import Final

from psycopg import sql

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused, refuse

MAX_NAME_BYTES: Final = 63
"""NAMEDATALEN - 1. The server cuts a longer identifier with no more than a notice, so two names could become one."""


def identifier(name: str) -> sql.Identifier:
    """Return a quoted name."""
    return sql.Identifier(name)


def qualified(relation: Relation) -> sql.Identifier:
    """Return a quoted ``schema.name``."""
    return sql.Identifier(relation.schema, relation.name)


def literal(text: str) -> sql.Literal:
    """Return a quoted text, for the statements that take no parameters (CREATE ROLE, COMMENT)."""
    return sql.Literal(text)


def listed(names: list[str]) -> sql.Composed:
    """Return quoted names with commas between them."""
    return sql.SQL(", ").join(sql.Identifier(name) for name in names)


def filled(statement: str, **parts: sql.Composable) -> sql.Composed:
    """Return a named statement with its braces filled in by quoted parts."""
    return sql.SQL(statement).format(**parts)


def too_long(*relations: Relation) -> Refused | None:
    """Refuse the first name that PostgreSQL would cut."""
    for relation in relations:
        for name in (relation.schema, relation.name):
            size = len(name.encode())
            if size > MAX_NAME_BYTES:
                return refuse(
                    "name_too_long",
                    f"relation {relation}",
                    found=f"{name!r} of {size} bytes",
                    allowed=f"at most {MAX_NAME_BYTES} bytes; PostgreSQL would cut the rest",
                    next_command="choose a shorter name and release anew",
                )
    return None
