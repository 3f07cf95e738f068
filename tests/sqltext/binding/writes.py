"""INSERT, UPDATE and DELETE: what is written to, which columns, with as many values and of types that they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpone_provider.application.installation.tsql import Kind, Token
from tests.sqltext.binding import queries, types
from tests.sqltext.binding.binder import Outputs, Scope, Source
from tests.sqltext.binding.forms import Query
from tests.sqltext.binding.statements import closed, named, parts
from tests.sqltext.binding.world import Relation

if TYPE_CHECKING:
    from tests.sqltext.binding.program import Program


def into(program: Program, found: Sequence[Token]) -> tuple[Relation | None, list[str], int]:
    """Return what rows are put into, the columns that are named, and where their source begins."""
    found = queries.unhinted(found)
    name, at = named(found, 2)
    target = _target(program, name, found[0].line, quoted=found[2].kind is Kind.QUOTED)
    listed: list[str] = []
    if at < len(found) and found[at].text == "(":
        end = closed(found, at)
        listed = [part[0].name for part in parts(found[at + 1 : end])]
        at = end + 1
    return target, listed, at


def _target(program: Program, name: tuple[str, ...], line: int, *, quoted: bool) -> Relation | None:
    if name[0] in program.tables:
        return program.tables[name[0]]
    database, schema, last = ("", "", "", *name)[-3:]
    return program.binder(line).relation(database, schema, last, quoted=quoted)


def insert(program: Program, one: Query) -> None:
    found = queries.unhinted(one.tokens)
    target, listed, at = into(program, found)
    rows: list[Outputs]
    binder = program.binder(one.line)
    at = next(end for end in range(at, len(found)) if found[end].word in ("SELECT", "VALUES", "WITH"))
    if found[at].word == "VALUES":
        rows = [binder.outputs(queries.values(part[1:-1])) for part in parts(found[at + 1 :])]
    else:
        rows = [program.asked(one.tokens, queries.query(found[at:]), one.line)]
    for row in rows:
        put(program, target, listed, [kind for _, kind in row], one.line)


def put(program: Program, target: Relation | None, listed: Sequence[str], given: Sequence[str], line: int) -> None:
    names = list(listed) or list(target.columns if target is not None else ())
    if names and len(names) != len(given):
        program.fault("213", line, f"{len(given)} values for {len(names)} columns")
    if target is None:
        return
    for name in {name for name in names if names.count(name) > 1}:
        program.fault("264", line, f"column {name} twice")
    for name, kind in zip(names, given, strict=False):
        if name not in target.columns:
            program.fault("207", line, f"{target.name}.{name}")
        else:
            program.taken(kind, target.columns[name], line, f"{target.name}.{name}")
    for one in target.fields:
        if not one.nullable and not one.filled and one.name not in names:
            program.fault("515", line, f"{target.name}.{one.name} takes no NULL and is given nothing")


def update(program: Program, one: Query) -> None:
    if len(one.tokens) > 1 and one.tokens[1].word == "STATISTICS":
        return
    node = queries.query(one.tokens)
    binder, scope = program.binder(one.line), Scope()
    binder.sources(node, scope, ())
    goal = node.this
    source = next((each for each in scope.sources if not goal.db and each.alias == goal.name), None)
    if source is None:
        source = Source(goal.name, binder.columns(goal, scope, ()), goal.db)
        scope.sources.append(source)
    for pair in node.expressions:
        value = binder.visit(pair.expression, (scope,))
        kind = _set(program, source, pair.this.name, one.line)
        program.taken(value, kind, one.line, f"{source.alias}.{pair.this.name}")
    if (where := node.args.get("where")) is not None:
        binder.visit(where.this, (scope,))


def _set(program: Program, source: Source, column: str, line: int) -> str:
    if source.columns is None:
        return types.UNKNOWN
    if column not in source.columns:
        program.fault("207", line, f"{source.alias}.{column}")
    return source.columns.get(column, types.UNKNOWN)


def delete(program: Program, one: Query) -> None:
    node = queries.query(one.tokens)
    binder, scope = program.binder(one.line), Scope()
    scope.sources.append(Source(node.this.alias or node.this.name, binder.columns(node.this, scope, ()), node.this.db))
    if (where := node.args.get("where")) is not None:
        binder.visit(where.this, (scope,))
