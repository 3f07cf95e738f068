"""Names in a query brought to what they stand for, as SQL Server does when it compiles the statement.

Names are compared as they are written: the control database's collation is binary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tests.sqltext.binding import aggregates, types
from tests.sqltext.binding.aggregates import ordered
from tests.sqltext.binding.expressions import type_of
from tests.sqltext.binding.world import DATABASES, OWN, STAND_IN, Columns, Fault, Relation, Shape, World, server_views

OPEN_JSON: Columns = {"key": "nvarchar(4000)", "value": "nvarchar(max)", "type": "int"}
"""What OPENJSON gives without WITH. Source: "OPENJSON"."""
SET_OPERATION = (exp.Union, exp.Intersect, exp.Except)
Outputs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Source:
    """What stands in a FROM: `columns` is None for what a statement leaves open."""

    alias: str
    columns: Columns | None
    schema: str = ""


@dataclass(slots=True)
class Scope:
    """The sources of one SELECT; a CTE stands in those around it."""

    sources: list[Source] = field(default_factory=list)


Scopes = tuple[Scope, ...]


@dataclass(slots=True)
class Binder:
    """Binds queries of one batch. `variables` are the types of what is declared, `tables` the rows of table variables.

    A `loose` text is one of the program's: it binds variables that nobody declares, and fills in names in brackets. One
    that is from `elsewhere` names relations and procedures that the scripts do not make.
    """

    world: World
    database: str
    variables: Mapping[str, str]
    tables: Mapping[str, Relation]
    loose: bool = False
    elsewhere: bool = False
    line: int = 0
    faults: list[Fault] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)
    bound: dict[int, tuple[Scope, str]] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    ctes: list[dict[str, Columns]] = field(default_factory=list)

    def fault(self, number: int | str, found: str) -> None:
        """Note what is wrong."""
        self.faults.append(Fault(str(number), self.line, found))

    # What a query gives

    def outputs(self, node: Any, outer: Scopes = ()) -> Outputs:
        """Return the columns of a query; ``outer`` are the scopes that it may refer to, the nearest first."""
        if isinstance(node, exp.Subquery):
            return self.outputs(node.this, outer)
        listed = self._with(node, outer)
        try:
            if isinstance(node, SET_OPERATION):
                return self._set_operation(node, outer)
            return self._select(node, outer)
        finally:
            if listed:
                self.ctes.pop()

    def _with(self, node: Any, outer: Scopes) -> bool:
        clause = node.args.get("with_")
        if clause is None:
            return False
        self.ctes.append({})
        for one in clause.expressions:
            given = self._named(self.outputs(one.this, outer), one.args.get("alias"), f"CTE {one.alias}")
            self.ctes[-1][one.alias] = given
            self.unordered(one.this, f"CTE {one.alias}")
        return True

    def _named(self, outputs: Outputs, alias: Any, what: str) -> dict[str, str]:
        """Return columns by name, as a derived table, CTE or view must have them."""
        renamed = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
        if renamed and len(renamed) != len(outputs):
            self.fault("8158", f"{what} names {len(renamed)} columns of {len(outputs)}")
        names = renamed or [name for name, _ in outputs]
        if "" in names:
            self.fault("8155", f"{what}: column {names.index('') + 1} has no name")
        for name in {name for name in names if name and names.count(name) > 1}:
            self.fault("8156", f"{what}: column {name} twice")
        return {name: kind for name, (_, kind) in zip(names, outputs, strict=False)}

    def unordered(self, node: Any, what: str) -> None:
        """Look at a query within another, which has no order of its own."""
        kept = ("limit", "offset", "for_")
        if node.args.get("order") is not None and not any(node.args.get(one) is not None for one in kept):
            self.fault("1033", f"{what} has an ORDER BY without TOP")

    def _set_operation(self, node: Any, outer: Scopes) -> Outputs:
        left, right = self.outputs(node.this, outer), self.outputs(node.expression, outer)
        if len(left) != len(right):
            self.fault("205", f"{len(left)} and {len(right)} columns in {type(node).__name__.upper()}")
        merged = []
        for (name, one), (_, other) in zip(left, right, strict=False):
            if types.mixed(one, other):
                self.fault("mixed", f"column {name or '?'} of a {type(node).__name__.upper()}: {one} and {other}")
            merged.append((name, types.common((one, other)) or one or other))
        for one in ordered(node):
            self._ordinal_or_name(one, merged, "104")
        return merged

    def _ordinal_or_name(self, node: Any, outputs: Outputs, number: str) -> None:
        if isinstance(node, exp.Literal) and not node.is_string:
            if not 1 <= int(node.name) <= len(outputs):
                self.fault("108", f"ORDER BY {node.name} of {len(outputs)} columns")
        elif not (isinstance(node, exp.Column) and not node.table and node.name in [name for name, _ in outputs]):
            self.fault(number, f"ORDER BY {node.sql('tsql')} is no column of the result")

    # One SELECT

    def _select(self, node: Any, outer: Scopes) -> Outputs:
        scope = Scope()
        self.sources(node, scope, outer)
        scopes = (scope, *outer)
        if (where := node.args.get("where")) is not None:
            self.visit(where.this, scopes)
            aggregates.outside(self, where.this)
        grouped = node.args.get("group")
        keys = list(grouped.expressions) if grouped is not None else []
        for key in keys:
            self.visit(key, scopes)
        outputs = self._listed(node, scopes)
        if (having := node.args.get("having")) is not None:
            self.visit(having.this, scopes)
        if (limit := node.args.get("limit")) is not None:
            self.visit(limit, scopes)
        self._order(node, scopes, outputs)
        aggregates.grouped(self, node, scope, keys)
        return self._as_json(node, outputs)

    def _listed(self, node: Any, scopes: Scopes) -> Outputs:
        outputs: Outputs = []
        assigned = 0
        for one in node.expressions:
            if isinstance(one, exp.EQ) and isinstance(one.this, exp.Parameter):
                assigned += 1
                self.assign(one.this, self.visit(one.expression, scopes))
            elif isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)):
                for source in scopes[0].sources:
                    outputs += list((source.columns or {}).items())
            else:
                name = one.alias if isinstance(one, exp.Alias) else one.name if isinstance(one, exp.Column) else ""
                outputs.append((name, self.visit(one, scopes)))
        if assigned and outputs:
            self.fault("141", "a SELECT that sets variables and gives columns")
        return outputs

    def assign(self, target: Any, kind: str) -> None:
        """Look at a value of type ``kind`` that a variable is given."""
        wanted = self.visit(target, ())
        if types.refused(kind, wanted):
            self.fault("257", f"{kind} into @{target.name} {wanted}")
        if types.too_long(kind, wanted):
            self.fault("2628", f"{kind} into @{target.name} {wanted}")

    def _order(self, node: Any, scopes: Scopes, outputs: Outputs) -> None:
        names = [name for name, _ in outputs]
        listed = [one.this if isinstance(one, exp.Alias) else one for one in node.expressions]
        for one in ordered(node):
            if isinstance(one, exp.Literal) and not one.is_string:
                self._ordinal_or_name(one, outputs, "108")
                continue
            by_name = isinstance(one, exp.Column) and not one.table and one.name in names
            if not by_name:
                self.visit(one, scopes)
            if node.args.get("distinct") is not None and not by_name and one not in listed:
                self.fault("145", f"ORDER BY {one.sql('tsql')} of a SELECT DISTINCT that has it not")

    def _as_json(self, node: Any, outputs: Outputs) -> Outputs:
        if node.args.get("for_") is None:
            return outputs
        names = [name for name, _ in outputs]
        if "" in names:
            self.fault("13605", f"FOR JSON: column {names.index('') + 1} has no name")
        for name in {name for name in names if name and names.count(name) > 1}:
            self.fault("13601", f"FOR JSON: column {name} twice")
        return [("", "nvarchar(max)")]

    # FROM

    def sources(self, node: Any, scope: Scope, outer: Scopes) -> None:
        """Put what stands in the FROM of a statement into a scope."""
        clause = node.args.get("from_")
        if clause is not None:
            self._source(clause.this, scope, outer)
        for join in node.args.get("joins") or ():
            self._join(join, scope, outer)
        for lateral in node.args.get("laterals") or ():
            self._source(lateral, scope, outer)

    def _join(self, join: Any, scope: Scope, outer: Scopes) -> None:
        self._source(join.this, scope, outer)
        if (condition := join.args.get("on")) is not None:
            self.visit(condition, (scope, *outer))
            aggregates.outside(self, condition)

    def _source(self, node: Any, scope: Scope, outer: Scopes) -> None:
        alias = node.alias if node.args.get("alias") is not None else ""
        schema = "" if alias else getattr(node, "db", "") or ""
        source = Source(alias or node.name, self.columns(node, scope, outer), schema)
        if any(one.alias == source.alias and one.schema == source.schema for one in scope.sources):
            self.fault("1011", f"{source.alias} twice in a FROM")
        scope.sources.append(source)
        for join in node.args.get("joins") or ():
            self._join(join, scope, outer)

    def columns(self, node: Any, scope: Scope, outer: Scopes) -> Columns | None:
        """Return the columns of what stands in a FROM; None where a statement leaves it open."""
        alias, what = node.args.get("alias"), f"derived table {node.alias}"
        match node:
            case exp.Lateral():
                inner = node.this
                if isinstance(inner, exp.Subquery):
                    return self._derived(inner, alias, what, (scope, *outer))
                return self._of_function(inner, (scope, *outer))
            case exp.Subquery():
                return self._derived(node, alias, what, outer)
            case exp.Values():
                rows = [[self.visit(one, outer) for one in row.expressions] for row in node.expressions]
                for row in rows:
                    if len(row) != len(rows[0]):
                        self.fault("10709", f"{what}: rows of {len(rows[0])} and {len(row)} values")
                kinds = [types.common(column) for column in zip(*rows, strict=False)]
                return self._named([("", kind) for kind in kinds], alias, what)
            case exp.Table():
                if isinstance(node.this, exp.Func | exp.Anonymous | exp.OpenJSON):
                    return self._of_function(node.this, (scope, *outer))
                return self._of_table(node)
            case _:
                self.fault("unread", f"{type(node).__name__} in a FROM")
                return None

    def _derived(self, node: Any, alias: Any, what: str, outer: Scopes) -> Columns:
        self.unordered(node.this, what)
        return self._named(self.outputs(node.this, outer), alias, what)

    def _of_function(self, node: Any, scopes: Scopes) -> Columns | None:
        if isinstance(node, exp.OpenJSON):
            self.visit(node.this, scopes)
            given = node.args.get("expressions") or ()
            return {one.this.name: one.args["kind"].sql("tsql").lower() for one in given} or OPEN_JSON
        known = server_views().get(f"sys.{node.name}")
        for one in node.expressions if known is not None else ():
            self.visit(one, scopes)
        if known is None:
            self.fault("208", f"{node.sql('tsql')} in a FROM")
        return known

    def _of_table(self, node: Any) -> Columns | None:
        if isinstance(node.this, exp.Parameter):
            table = self.tables.get(f"@{node.this.name}")
            if table is None:
                self.fault("1087", f"table variable @{node.this.name} is not declared")
            return table.columns if table is not None else None
        if not node.db:
            for named in reversed(self.ctes):
                if node.name in named:
                    return named[node.name]
        found = self.relation(node.catalog, node.db, node.name, quoted=bool(node.this.args.get("quoted")))
        return found.columns if found is not None else None

    def relation(self, database: str, schema: str, name: str, *, quoted: bool = False) -> Relation | None:
        """Return what a name stands for; None where it is left open, or is not there, which is a fault."""
        if not schema and name in self.tables:
            return self.tables[name]
        if (quoted and self.loose and not schema) or (self.elsewhere and (quoted or name == STAND_IN)):
            return None
        where = "" if self.elsewhere else DATABASES.get(database, database)
        found = self.world.relation(where or self.database, schema, name)
        if found is None and (schema in OWN or schema == "sys" or not self.elsewhere):
            self.fault("208", f"{'.'.join(filter(None, (database, schema, name)))} in database {self.database}")
        return found

    # Expressions

    def visit(self, node: Any, scopes: Scopes) -> str:
        """Bind an expression and return its type, empty where it is not known."""
        self.kinds[id(node)] = kind = self._visit(node, scopes)
        return kind

    def _visit(self, node: Any, scopes: Scopes) -> str:
        match node:
            case exp.Column():
                return self._column(node, scopes)
            case exp.Exists():
                self.outputs(node.this, scopes)
                return types.UNKNOWN
            case exp.Subquery() | exp.Select() | exp.Union() | exp.Intersect() | exp.Except():
                return self._scalar(node, scopes)
            case exp.In() if node.args.get("query") is not None:
                return self._in_query(node, scopes)
            case exp.Parameter():
                return self._variable(node)
            case exp.NextValueFor():
                self._sequence(node.this)
                return "bigint"
            case exp.Dot():
                return self._own_function(node, scopes)
            case exp.DataType() | exp.Identifier() | exp.Var() | exp.Star():
                return types.UNKNOWN
            case _:
                for one in node.iter_expressions():
                    self.visit(one, scopes)
                if isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window):
                    aggregates.plain(self, node)
                kind, faults = type_of(node, self.kinds)
                for number, found in faults:
                    self.fault(number, found)
                return kind

    def _scalar(self, node: Any, scopes: Scopes) -> str:
        given = self.outputs(node, scopes)
        self.unordered(node.this if isinstance(node, exp.Subquery) else node, "a subquery")
        if len(given) != 1:
            self.fault("116", f"a subquery of {len(given)} columns where one value belongs")
        return given[0][1] if given else types.UNKNOWN

    def _in_query(self, node: Any, scopes: Scopes) -> str:
        asked = self.visit(node.this, scopes)
        given = self._scalar(node.args["query"], scopes)
        if types.mixed(asked, given):
            self.fault("mixed", f"{node.this.sql('tsql')} {asked} IN a query of {given}")
        return types.UNKNOWN

    def _variable(self, node: Any) -> str:
        if isinstance(node.this, exp.Parameter):
            return "int"
        name = f"@{node.name}"
        if name not in self.variables:
            self.wanted.add(name)
            if not self.loose:
                self.fault("137", f"{name} is not declared")
        return self.variables.get(name, types.UNKNOWN)

    def _sequence(self, node: Any) -> None:
        if (self.database, node.table, node.name) not in self.world.others:
            self.fault("208", f"sequence {node.table}.{node.name}")

    def _own_function(self, node: Any, scopes: Scopes) -> str:
        named, called = node.this, node.expression
        for one in called.expressions if isinstance(called, exp.Anonymous) else ():
            self.visit(one, scopes)
        name = called.name
        kind = self.world.functions.get((self.database, named.name, name))
        if kind is None and (named.name in OWN or not self.elsewhere):
            self.fault("4121", f"function {named.sql()}.{name}")
        return kind or types.UNKNOWN

    def _column(self, node: Any, scopes: Scopes) -> str:
        for scope in scopes:
            found = [one for one in scope.sources if self._has(one, node)]
            if len(found) > 1 and not node.table:
                closed = [one for one in found if one.columns is not None]
                if len(closed) > 1:
                    self.fault("209", f"{node.name} is in {' and '.join(one.alias for one in closed)}")
            if found:
                columns = found[0].columns
                self.bound[id(node)] = (scope, found[0].alias)
                if columns is not None and node.name not in columns:
                    self.fault("207", f"{node.table}.{node.name}")
                return (columns or {}).get(node.name, types.UNKNOWN)
        if not (self.elsewhere and node.name == STAND_IN):
            self.fault("4104" if node.table else "207", node.sql("tsql"))
        return types.UNKNOWN

    def _has(self, source: Source, node: Any) -> bool:
        if node.table:
            return source.alias == node.table and (not node.db or source.schema == node.db)
        return source.columns is None or node.name in source.columns


def shape(outputs: Outputs) -> Shape:
    """Return a result's shape."""
    return Shape(tuple(outputs))
