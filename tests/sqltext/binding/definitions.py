"""Definitions and rights: tables with their constraints and indexes, what is granted, dropped, thrown and raised."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from dpone_provider.application.installation.tsql import Kind, Token
from tests.sqltext.binding import keys, types
from tests.sqltext.binding.forms import Other, Said, Table
from tests.sqltext.binding.statements import closed, named, parts
from tests.sqltext.binding.world import DATABASES, MASTER, OWN, STAND_IN, Fault, Relation, World

RIGHTS = frozenset({"GRANT", "REVOKE", "DENY"})
SERVER = frozenset(
    {"ALTER ANY CONNECTION", "ALTER ANY LOGIN", "CONTROL SERVER", "VIEW ANY DEFINITION", "VIEW SERVER STATE"}
)
"""Rights on the whole server: given in master alone."""
ENDS_DEFAULT = frozenset({"CONSTRAINT", "NOT", "NULL", "PRIMARY", "UNIQUE", "CHECK", "REFERENCES"})
_PLACE = re.compile(r"%(?:%|[-+0 #]*\d*(?:\.\d+)?[sdiuxXo]|I64d)")
LEAST, MOST = 50_000, 2_147_483_647


def make(world: World, database: str, table: Table) -> Relation:
    """Take a table as made."""
    schema, name = ("", *table.name)[-2:]
    unique = frozenset(frozenset(key.columns) for key in keys.of_table(table.inner) if key.unique)
    made = Relation(name, {one.name: one.type for one in table.columns}, table.columns, unique)
    world.relations[database, schema, name] = made
    return made


def said_faults(one: Said, kinds: Sequence[str]) -> list[Fault]:
    """Return what is wrong with a THROW or RAISERROR, ``kinds`` the types of its arguments."""
    return [Fault(number, one.line, found) for number, found in _said(one, kinds)]


def _said(one: Said, kinds: Sequence[str]) -> Iterator[tuple[str, str]]:
    given = [part for part in one.arguments if part]
    if one.word == "THROW" and given:
        if len(given) != 3:
            yield "102", f"THROW with {len(given)} arguments"
            return
        if given[0][0].kind is Kind.NUMBER and not LEAST <= int(given[0][0].text) <= MOST:
            yield "35100", f"THROW {given[0][0].text}"
        if types.family(kinds[1]) not in ("char", ""):
            yield "257", f"THROW says {kinds[1]}"
    if one.word == "RAISERROR":
        text, level = given[0][0], given[1][0].text if len(given) > 1 else ""
        wanted = [place for place in _PLACE.findall(text.value) if place != "%%"]
        if text.kind is Kind.STRING and len(given) - 3 != len(wanted):
            yield "2786", f"RAISERROR of {len(wanted)} places with {len(given) - 3} arguments"
        if not level.isdigit() or not 11 <= int(level) <= 18:
            yield "2754", f"RAISERROR of severity {level}"
        if any("(max)" in kind for kind in kinds[3:]):
            yield "2748", "RAISERROR with a (max) argument"


def other_faults(world: World, database: str, one: Other) -> list[Fault]:
    """Return the names in a definition or grant that stand for nothing."""
    found = one.tokens
    faults = _index_faults(world, database, found)
    for name, at in _names(found):
        given, schema, last = ("", "", "", *name)[-3:]
        where = DATABASES.get(given, given) or database
        if schema in OWN and not world.knows(where, schema, last):
            if last != STAND_IN:
                faults.append(Fault("15151", found[0].line, f"{'.'.join(name)} in database {where}"))
        elif schema in OWN:
            faults += _columns(world.relation(where, schema, last), found, at)
    return faults


def stray_faults(world: World, database: str, one: Other) -> list[Fault]:
    """Return names in schemas that the scripts do not make, and triggers that are switched and not there."""
    found, words = one.tokens, [token.word for token in one.tokens]
    line = found[0].line
    faults = [
        Fault("15151", line, ".".join(name))
        for name, _ in _names(found)
        if len(name) > 1 and name[-2] not in OWN | {"sys"} and STAND_IN not in name
    ]
    if words[0] in RIGHTS:
        faults += [Fault("4604", line, ".".join(name)) for name, _ in _names(found) if len(name) > 2]
        if "ON" not in words and database != MASTER:
            given = " ".join(words[1 : next(at for at, word in enumerate(words) if word in ("TO", "FROM"))])
            faults += [Fault("4621", line, f"{one} in database {database}") for one in sorted(SERVER) if one in given]
    if words[:2] in (["ENABLE", "TRIGGER"], ["DISABLE", "TRIGGER"]):
        schema, name = ("", *named(found, 2)[0])[-2:]
        if not any(world.knows(where, schema, name) for where in (database, *DATABASES.values())):
            faults.append(Fault("4914", line, f"trigger {name}"))
    return faults


def _index_faults(world: World, database: str, found: Sequence[Token]) -> list[Fault]:
    indexed = keys.of_index(found)
    if indexed is None:
        return []
    name, key = indexed
    schema, last = ("", *name)[-2:]
    table = world.relation(database, schema, last)
    said = key.faults(table.columns) if table is not None else ()
    return [Fault(number, key.line, f"{last}: {words}") for number, words in said]


def _names(found: Sequence[Token]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each name of several parts, and where it ends; one that is made here is none."""
    made = found[0].word in ("CREATE", "DROP") and found[1].word == "SCHEMA"
    at = 0
    while at < len(found) and not made:
        if found[at].kind in (Kind.WORD, Kind.QUOTED) and at + 1 < len(found) and found[at + 1].text == ".":
            name, at = named(found, at)
            yield name, at
        else:
            at += 1


def _columns(table: Relation | None, found: Sequence[Token], at: int) -> Iterator[Fault]:
    if table is None or at >= len(found) or found[at].text != "(":
        return
    for part in parts(found[at + 1 : closed(found, at)]):
        if part and part[0].name and part[0].name not in table.columns:
            yield Fault("1911", found[0].line, f"{table.name}.{part[0].name}")


def constraint_faults(world: World, database: str, table: Relation, inner: Sequence[Token]) -> list[Fault]:
    """Return the columns of constraints that a table has not, and foreign keys of another type than their goal.

    ``inner`` is what stands between the parentheses of a CREATE TABLE, or behind the ADD of an ALTER TABLE.
    """
    faults = [
        Fault(number, key.line, f"{table.name}: {said}")
        for key in keys.of_table(inner)
        for number, said in key.faults(table.columns)
    ]
    for part in parts(inner):
        for at, token in enumerate(part[:-1]):
            if token.word in ("KEY", "UNIQUE", "CLUSTERED", "NONCLUSTERED") and part[at + 1].text == "(":
                faults += _columns(table, part, at + 1)
            if token.word == "REFERENCES":
                faults += _reference(world, database, table, part, at)
    return faults


def _reference(world: World, database: str, table: Relation, part: Sequence[Token], at: int) -> Iterator[Fault]:
    line = part[at].line
    name, end = named(part, at + 1)
    schema, last = ("", *name)[-2:]
    goal = world.relation(database, schema, last)
    if goal is None and not schema:
        return
    if goal is None:
        yield Fault("1767", line, f"REFERENCES {'.'.join(name)}")
        return
    there = [one[0].name for one in parts(part[end + 1 : closed(part, end)])]
    here = _referring(part[:at])
    if frozenset(there) not in goal.keys:
        yield Fault("1776", line, f"{', '.join(there)} is no key of {goal.name}")
    if len(here) != len(there):
        yield Fault("8139", line, f"{len(here)} columns refer to {len(there)} of {goal.name}")
    for one, other in zip(here, there, strict=False):
        kind = table.columns.get(one)
        if other not in goal.columns:
            yield Fault("1770", line, f"{goal.name}.{other}")
        elif kind != goal.columns[other]:
            yield Fault("1778", line, f"{one} {kind} refers to {goal.name}.{other} {goal.columns[other]}")


def _referring(part: Sequence[Token]) -> list[str]:
    """Return the columns that a foreign key is of: those behind FOREIGN KEY, or the column that the part defines."""
    for at, (token, after) in enumerate(pairwise(part)):
        if token.word == "FOREIGN" and after.word == "KEY":
            return [one[0].name for one in parts(part[at + 3 : closed(part, at + 2)])]
    return [part[0].name]


def expressions(inner: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token]]]:
    """Yield the conditions of CHECK constraints and the values of defaults that stand in a table."""
    for part in parts(inner):
        for at, token in enumerate(part[:-1]):
            if token.word == "CHECK" and part[at + 1].text == "(":
                yield "CHECK", part[at + 2 : closed(part, at + 1)]
            if token.word == "DEFAULT":
                end = next((end for end in range(at + 1, len(part)) if part[end].word in ENDS_DEFAULT), len(part))
                yield "DEFAULT", part[at + 1 : end]
