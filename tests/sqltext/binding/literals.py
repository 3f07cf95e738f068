"""Names and properties inside of constants: a wrong one is no error to the server, but NULL, or no row.

`OBJECT_ID(N'dpone_control.stettle')` never finds what it asks for, `SERVERPROPERTY('EngineEditon')` is NULL.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from dpone_provider.application.installation.tsql import Kind, Token, tokens
from tests.sqltext.binding.world import CONTROL, HERE, OWN, TARGET, Fault, World

ASKING = frozenset(
    {
        *("DATABASEPROPERTYEX", "HASHBYTES", "HAS_PERMS_BY_NAME", "IS_ROLEMEMBER", "IS_SRVROLEMEMBER"),
        *("OBJECTPROPERTY", "SERVERPROPERTY"),
    }
)
SAID = frozenset({*OWN, "dpone_controller", "dpone_fence", "dpone_gate_was_enabled"})
"""Our schemas, a sample's login and the keys of the session's context."""
_NAME = re.compile(r"dpone_[a-z_]*[a-z]")
_OBJECT = re.compile(r"(?:\[\w+\]\.)?(dpone_\w+)\.(\w+)")
_WORD = re.compile(r"[A-Za-z_ 0-9]+")


@cache
def documented() -> Mapping[str, frozenset[str]]:
    """Return the words that each function is documented to take."""
    found = tomllib.loads((HERE / "server_functions.toml").read_text(encoding="utf-8"))
    return {name: frozenset(one.strip() for one in said.split(",")) for name, said in found["constants"].items()}


def literal_faults(world: World, found: Sequence[Token]) -> Iterator[Fault]:
    """Yield constants that name nothing of ours, and properties that no function has; those inside constants too."""
    yield from _properties(found)
    for token in found:
        if token.kind is Kind.STRING:
            if not _stands(world, token.value):
                yield Fault("named", token.line, f"{token.text} stands for nothing")
            yield from literal_faults(world, tokens(token.value, token.line))


def _stands(world: World, text: str) -> bool:
    whole = _OBJECT.fullmatch(text)
    if whole is not None:
        return any(world.knows(database, whole[1], whole[2]) for database in (CONTROL, TARGET))
    if _NAME.fullmatch(text) is None or text in SAID | world.principals:
        return True
    known = (*world.relations, *world.procedures, *world.functions, *world.others)
    return any(name == text for _, _, name in known)


def _properties(found: Sequence[Token]) -> Iterator[Fault]:
    for at, token in enumerate(found):
        if token.word not in ASKING or at + 1 >= len(found) or found[at + 1].text != "(":
            continue
        depth = 0
        for end in range(at + 1, len(found)):
            depth += {"(": 1, ")": -1}.get(found[end].text, 0)
            one = found[end]
            alone = found[end - 1].text in ("(", ",") and end + 1 < len(found) and found[end + 1].text in (",", ")")
            whole = depth == 1 and one.kind is Kind.STRING and alone and _WORD.fullmatch(one.value)
            if whole and one.value not in documented()[token.word] | SAID:
                yield Fault("property", one.line, f"{token.word}({one.text})")
            if depth == 0:
                break
