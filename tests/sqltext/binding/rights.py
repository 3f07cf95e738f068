"""Rights that statements need, compared with what the scripts grant: a missing one fails in the first run (229, 230).

What a view, procedure or trigger of ours does is not looked at: it belongs to the owner of what it touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from dpone_provider.application.installation.tsql import Token, batches
from tests.sqltext.binding import queries
from tests.sqltext.binding.forms import Call, Other, Query
from tests.sqltext.binding.statements import closed, named, parts, statements, within
from tests.sqltext.binding.world import OWN
from tests.sqltext.texts import Text, scripts

WHOLE = ""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A right on an object, its schema before it; on a column of it, or on the whole."""

    verb: str
    schema: str
    name: str
    column: str = WHOLE


@cache
def granted(role: str) -> frozenset[Right]:
    """Return what the scripts grant to a role, on objects and on whole schemas."""
    return frozenset(right for text in scripts() for one in _others(text.sql) for right in _granted(one.tokens, role))


def _others(sql: str) -> Iterator[Other]:
    for batch in batches(sql):
        yield from (one for one in within(statements(batch.tokens)) if isinstance(one, Other))


def _granted(found: Sequence[Token], role: str) -> Iterator[Right]:
    words = [token.word for token in found]
    if words[0] != "GRANT" or "ON" not in words or found[-1].name != role:
        return
    on = words.index("ON")
    verbs = ["".join(token.word for token in part) for part in parts(found[1:on])]
    name, end = named(found, on + 4)
    schema, last = ("", *name)[-2:] if words[on + 1] == "OBJECT" else (name[-1], WHOLE)
    columns = [WHOLE]
    if found[end].text == "(":
        columns = [part[0].name for part in parts(found[end + 1 : closed(found, end)])]
    for verb in verbs:
        yield from (Right(verb, schema, last, column) for column in columns)


def needed(text: Text) -> Iterator[Right]:
    """Yield what a text needs on objects of ours, by itself."""
    for batch in batches(text.sql):
        for one in within(statements(batch.tokens)):
            match one:
                case Query():
                    yield from _of_query(one)
                case Call() if len(one.procedure) > 1 and one.procedure[-2] in OWN:
                    yield Right("EXECUTE", one.procedure[-2], one.procedure[-1])
                case _:
                    pass


def _of_query(one: Query) -> Iterator[Right]:
    found = queries.unhinted(one.tokens)
    verb = found[0].word
    begins = next((at for at, token in enumerate(found) if token.name in OWN), len(found))
    if verb in ("INSERT", "DELETE", "UPDATE") and begins < min(4, len(found)):
        (*_, schema, name), _ = named(found, begins)
        if verb == "UPDATE":
            yield from (Right(verb, schema, name, column) for column in _set(found))
        else:
            yield Right(verb, schema, name)
    for at, token in enumerate(found):
        if token.word in ("FROM", "JOIN") and not (verb == "DELETE" and at == 1):
            schema, name = ("", "", *named(found, at + 1)[0])[-2:]
            if schema in OWN:
                yield Right("SELECT", schema, name)


def _set(found: Sequence[Token]) -> Iterator[str]:
    words = [token.word for token in found]
    ends = next((at for at, word in enumerate(words) if word in ("WHERE", "FROM")), len(found))
    for part in parts(found[words.index("SET") + 1 : ends]):
        yield part[0].name


def missing(text: Text, roles: Sequence[str]) -> list[Right]:
    """Return what a text needs and none of these roles has."""
    held = frozenset(right for role in roles for right in granted(role))
    return sorted(right for right in set(needed(text)) if not _held(right, held))


def _held(right: Right, held: frozenset[Right]) -> bool:
    wider = (right, Right(right.verb, right.schema, right.name), Right(right.verb, right.schema, WHOLE))
    return any(one in held for one in wider)
