"""Who may change tables of a database, by the server's list of grants. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dpone_provider.domain.identity import PRINCIPAL_PREFIX

_CHANGING: Final = ("ALL", "INSERT", "ALTER", "CREATE", "DROP", "TRUNCATE", "UNDROP", "OPTIMIZE", "MOVE PARTITION")
"""First words of the rights by which a table's content or definition changes. Source: documentation of GRANT."""
_ADMINISTRATION: Final = (
    "ALL",
    "ACCESS MANAGEMENT",
    "CREATE USER",
    "ALTER USER",
    "CREATE ROLE",
    "ALTER ROLE",
    "ROLE ADMIN",
)
"""Rights by which a user can give itself the others."""
_HARMLESS: Final = ("CREATE TEMPORARY TABLE", "CREATE ARBITRARY TEMPORARY TABLE", "CREATE FUNCTION", "DROP FUNCTION")
_OWN_IN_STAGING: Final = frozenset({"INSERT", "SELECT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One row of ``system.grants``. ``holder`` is a user or a role; no ``database`` or ``table`` means all."""

    holder: str
    is_role: bool
    right: str
    database: str
    table: str
    column: str
    is_revoke: bool
    with_option: bool
    is_wildcard: bool = False


def other_writers(
    grants: Sequence[Grant],
    role_holders: Mapping[str, frozenset[str]],
    *,
    databases: Iterable[str],
    staging: str,
    controller: str,
) -> tuple[str, ...]:
    """Return in words everybody but the controller who could write one of the databases, or could come to.

    Logins of ours may INSERT into and SELECT from the staging database, and nothing else. ``role_holders`` maps a role
    to those who hold it, directly or through other roles.
    """
    own_roles = {role for role, holders in role_holders.items() if holders == frozenset({controller})}
    found = []
    for grant in grants:
        if grant.is_revoke or grant.holder == controller or (grant.is_role and grant.holder in own_roles):
            continue
        reached = [name for name in databases if _reaches(grant, name, staging) and not _revoked(grant, name, grants)]
        if reached or _administers(grant):
            found.append(_in_words(grant, reached, role_holders))
    return tuple(sorted(set(found)))


def closure(direct: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Return for each role everybody who holds it; ``direct`` are (role, user or role that it was granted to)."""
    held: dict[str, set[str]] = {}
    for role, holder in direct:
        held.setdefault(role, set()).add(holder)
    changed = True
    while changed:
        changed = False
        for holders in held.values():
            more = set().union(*(held.get(each, set()) for each in holders)) - holders
            holders |= more
            changed = changed or bool(more)
    return {role: frozenset(holders) for role, holders in held.items()}


def _reaches(grant: Grant, database: str, staging: str) -> bool:
    if not _covers(grant, database) or grant.right.startswith(_HARMLESS):
        return False
    ours = grant.holder.startswith(PRINCIPAL_PREFIX) and database == staging and not grant.with_option
    if ours and grant.database == staging and grant.right in _OWN_IN_STAGING:
        return False
    return grant.with_option or grant.right.startswith(_CHANGING)


def _covers(grant: Grant, database: str) -> bool:
    if grant.is_wildcard and not grant.table:
        return database.startswith(grant.database)
    return grant.database in ("", database)


def _administers(grant: Grant) -> bool:
    return grant.database == "" and grant.right.startswith(_ADMINISTRATION)


def _revoked(grant: Grant, database: str, grants: Iterable[Grant]) -> bool:
    """Tell whether the same holder's whole right on the database was taken away again."""
    return any(
        each.is_revoke
        and (each.holder, each.is_role) == (grant.holder, grant.is_role)
        and each.right in (grant.right, "ALL")
        and each.database == database
        and not each.table
        and not each.column
        for each in grants
    )


def _in_words(grant: Grant, reached: Sequence[str], role_holders: Mapping[str, frozenset[str]]) -> str:
    where = f"{grant.database or '*'}.{grant.table or '*'}"
    option = " with grant option" if grant.with_option else ""
    who = f"{'role' if grant.is_role else 'user'} {grant.holder}"
    holders = role_holders.get(grant.holder, frozenset()) if grant.is_role else frozenset()
    through = f" (held by {', '.join(sorted(holders))})" if holders else ""
    return f"{who}{through}: {grant.right} on {where}{option}"
