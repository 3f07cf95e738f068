"""Names in ClickHouse's SQL: how they are quoted, and how long they may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NewType
from uuid import UUID

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused, refuse

Sql = NewType("Sql", str)
"""Text that is SQL already: made by this module or by ``types`` and ``ddl``, never from outside."""

_PLACE: Final = re.compile(r"\$([a-z_]+)")
_KEPT: Final = re.compile(rb"[A-Za-z0-9_]")
_FILE_NAME_BYTES: Final = 255
_DROPPED_SUFFIX_BYTES: Final = len("..") + 36 + len(".sql")
"""A dropped table's definition is kept as ``database.table.uuid.sql``; that name has to fit as well."""


def quoted(name: str) -> Sql:
    """Return one identifier in backquotes, whatever it holds."""
    return Sql("`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`")


def qualified(relation: Relation) -> Sql:
    """Return ``database`.`table``, both quoted."""
    return Sql(f"{quoted(relation.schema)}.{quoted(relation.name)}")


def text_literal(text: str) -> Sql:
    """Return a string literal, for the few places of DDL that take no parameter (comments)."""
    return Sql("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")


def uuid_literal(text: str) -> Sql:
    """Return a UUID as a literal.

    Raises:
        ValueError: it is not a UUID.
    """
    return Sql(f"'{UUID(text)}'")


def with_names(statement: str, names: Mapping[str, Relation | Sql]) -> str:
    """Put names into the ``$places`` of a named statement; values stay ``{name:Type}`` parameters of the server.

    Raises:
        KeyError: the statement has a place that was not given.
    """

    def put(match: re.Match[str]) -> str:
        given = names[match[1]]
        return qualified(given) if isinstance(given, Relation) else given

    return _PLACE.sub(put, statement)


def escaped_bytes(name: str) -> int:
    """Return the length of the file name that ClickHouse makes of a name: three bytes for each byte but [A-Za-z0-9_].

    Source: ``escapeForFileName``.
    """
    return sum(1 if _KEPT.match(bytes([byte])) else 3 for byte in name.encode())


def longest_table_name(database: str) -> int:
    """Return how many escaped bytes a table's name may have in ``database``.

    The server answers the same to ``getMaxTableNameLengthForDatabase`` (25.4 and later) and error 69 to more.
    """
    return _FILE_NAME_BYTES - _DROPPED_SUFFIX_BYTES - escaped_bytes(database)


def refuse_long_name(relation: Relation, *, moved_from: str | None = None) -> Refused | None:
    """Refuse a table name that the server could not store, or could not drop again.

    A table that is renamed or exchanged into place must keep the limit of the database that it comes from as well:
    the server measures the new name there (seen on 26.7, error 69).
    """
    databases = {relation.schema, moved_from or relation.schema}
    allowed = min(longest_table_name(database) for database in databases)
    found = escaped_bytes(relation.name)
    if found <= allowed:
        return None
    return refuse(
        "name_too_long",
        f"ClickHouse table {relation}",
        found=f"{found} bytes once characters outside [A-Za-z0-9_] are escaped",
        allowed=f"at most {allowed} escaped bytes in database {' and '.join(sorted(databases))}",
        next_command="shorten the table's name in the transfer, then run dpone compile",
    )
