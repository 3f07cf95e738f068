"""Logins, users and roles: whoever is given a right, or joins a role, was made before, or is the server's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dpone_provider.application.installation.tsql import Kind, Token
from tests.sqltext.binding.forms import Other
from tests.sqltext.binding.world import STAND_IN, Fault, World

MAKES = frozenset({"LOGIN", "ROLE", "USER"})
GIVEN = frozenset({"dbo", "public", "guest", "dpone_controller", "warehouse_reader", "sysadmin"})
"""The server's own, and logins that an administrator makes before."""


def make(world: World, one: Other) -> None:
    """Take a login, user or role as made."""
    if len(one.tokens) > 2 and one.tokens[0].word == "CREATE" and one.tokens[1].word in MAKES:
        world.principals.add(one.tokens[2].name)


def unknown(world: World, one: Other) -> list[Fault]:
    """Return who is named in a statement about rights, roles or principals and was not made (15151)."""
    line = one.tokens[0].line
    known = world.principals | GIVEN | {STAND_IN}
    return [Fault("15151", line, f"principal {name}") for name in _named(one.tokens) if name not in known]


def _named(found: Sequence[Token]) -> Iterator[str]:
    rights = found[0].word in ("GRANT", "REVOKE", "DENY")
    roles = [token.word for token in found[:2]] in (
        ["ALTER", "ROLE"],
        ["DROP", "ROLE"],
        ["DROP", "USER"],
        ["DROP", "LOGIN"],
    )
    for at in range(len(found) - 3):
        if found[at].word == "ROLE" and found[at + 1].text == ":":
            yield found[at + 3].name
    for token, after in pairwise(found):
        named = (rights and token.word in ("TO", "FROM")) or (roles and token.word in (*MAKES, "MEMBER", "EXISTS"))
        if named and after.kind in (Kind.WORD, Kind.QUOTED) and after.word != "IF":
            yield after.name
        if token.word == "AUTHORIZATION" and after.word != "ON":
            yield after.name
