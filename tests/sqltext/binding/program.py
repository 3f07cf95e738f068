"""A batch bound statement by statement, in their order: what is declared before it is used, who is called with what.

What a batch builds and runs is bound where it runs, with the parameters that it is given there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpone_provider.application.installation.tsql import Kind, Token, batches, tokens
from tests.sqltext.binding import definitions, principals, queries, seeks, types, writes
from tests.sqltext.binding.binder import Binder, Outputs, Scope, Source, shape
from tests.sqltext.binding.calls import arguments_faults
from tests.sqltext.binding.forms import (
    Assign,
    Branch,
    Call,
    Declare,
    Loop,
    Module,
    Other,
    Query,
    Said,
    Statement,
    Table,
    Tokens,
    Tried,
    UnknownForm,
    Variable,
)
from tests.sqltext.binding.functions import function_faults
from tests.sqltext.binding.statements import named, statements, within
from tests.sqltext.binding.world import (
    DATABASES,
    OWN,
    TARGET,
    Fault,
    Procedure,
    Relation,
    Shape,
    World,
    server_procedures,
)
from tests.sqltext.dynamic import whole

EXECUTE_SQL = "sp_executesql"


@dataclass(slots=True)
class Program:
    """What is known at one place of a batch, and what was found wrong up to it."""

    world: World
    database: str
    loose: bool = False
    elsewhere: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    tables: dict[str, Relation] = field(default_factory=dict)
    built: dict[str, str] = field(default_factory=dict)
    moved: tuple[str, ...] = ()
    shapes: list[Shape] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    wanted: set[str] = field(default_factory=set)

    def fault(self, number: int | str, line: int, found: str) -> None:
        """Note what is wrong."""
        self.faults.append(Fault(str(number), line, found))

    def binder(self, line: int) -> Binder:
        """Return what binds queries here; its faults are this program's."""
        known = (self.world, self.database, self.variables, self.tables)
        return Binder(
            *known, loose=self.loose, elsewhere=self.elsewhere, line=line, faults=self.faults, wanted=self.wanted
        )

    def run(self, read: Sequence[Statement]) -> None:
        """Bind statements in their order; one that cannot be read is a fault."""
        for one in read:
            try:
                self._one(one)
            except UnknownForm as error:
                self.fault("unread", getattr(one, "line", 0), str(error))

    def _one(self, one: Statement) -> None:
        match one:
            case Declare():
                self._declare(one)
            case Assign():
                self._assign(one)
            case Query():
                self._query(one)
            case Call():
                self._call(one)
            case Branch():
                self._condition(one.condition, one.line)
                self.run(one.then)
                self.run(one.otherwise)
            case Loop():
                self._condition(one.condition, one.line)
                self.run(one.body)
            case Tried():
                self.run((*one.body, *one.handler))
            case Module():
                self._module(one)
            case Table():
                self._table(one)
            case Said():
                self._said(one)
            case Other():
                self._other(one)

    # Variables

    def _declare(self, one: Declare) -> None:
        for variable in one.variables:
            if variable.value:
                self._given(variable.name, variable.type, variable.value, variable.line)
            self.declare(variable)

    def declare(self, variable: Variable) -> None:
        """Take a variable or parameter as declared, once in a batch."""
        if variable.name in self.variables:
            self.fault("134", variable.line, f"{variable.name} is declared twice")
        self.variables[variable.name] = variable.type
        if variable.type == "table":
            columns = {one.name: one.type for one in variable.columns}
            self.tables[variable.name] = Relation(variable.name, columns, variable.columns)
        kinds = [variable.type, *(one.type for one in variable.columns)]
        self._unknown_types(kinds, variable.line, variable.name)

    def _unknown_types(self, kinds: Sequence[str], line: int, what: str) -> None:
        for kind in kinds:
            if kind and not types.is_known(kind):
                self.fault("2715", line, f"{what}: type {kind}")

    def _assign(self, one: Assign) -> None:
        if one.name not in self.variables and not self.loose:
            self.fault("137", one.line, f"{one.name} is not declared")
        self._given(one.name, self.variables.get(one.name, ""), one.value, one.line)

    def _given(self, name: str, kind: str, value: Tokens, line: int) -> None:
        given = self.value(value, line)
        self.taken(given, kind, line, name)
        text = next((whole(value, at) for at, token in enumerate(value) if token.kind is Kind.STRING), "")
        self.built[name] = text

    def taken(self, given: str, wanted: str, line: int, name: str) -> None:
        if types.refused(given, wanted):
            self.fault("257", line, f"{given} into {name} {wanted}")
        if types.too_long(given, wanted):
            self.fault("2628", line, f"{given} into {name} {wanted}")

    def value(self, found: Sequence[Token], line: int) -> str:
        """Bind an expression that stands by itself and return its type."""
        if not found:
            return types.UNKNOWN
        self._functions(found, line)
        outputs = self.binder(line).outputs(queries.values(found))
        return outputs[0][1] if outputs else types.UNKNOWN

    def _condition(self, found: Tokens, line: int) -> None:
        kept: list[Token] = []
        at = 0
        while at < len(found):
            if found[at].word == "UPDATE" and at + 3 < len(found) and found[at + 1].text == "(":
                self._moves(found[at + 2], line)
                kept += tokens("1 = 1")
                at += 4
            else:
                kept.append(found[at])
                at += 1
        self._functions(kept, line)
        self.asked(kept, queries.condition(kept), line)

    def asked(self, found: Sequence[Token], node: Any, line: int) -> Outputs:
        """Bind a query and return what it gives; what its hints force is possible."""
        binder = self.binder(line)
        outputs = binder.outputs(node)
        for seek in seeks.seeks(found):
            if why := seeks.unsought(node, seek, binder.kinds):
                self.fault("8622", line, why)
        return outputs

    def _moves(self, column: Token, line: int) -> None:
        if column.name not in self.moved:
            self.fault("207", line, f"UPDATE({column.name})")

    def _functions(self, found: Sequence[Token], line: int) -> None:
        self.faults += function_faults(queries.unhinted(found), line)

    def _table(self, one: Table) -> None:
        made = definitions.make(self.world, self.database, one)
        self.faults += definitions.constraint_faults(self.world, self.database, made, one.inner)
        self._unknown_types([column.type for column in one.columns], one.line, made.name)
        around = Scope([Source(made.name, made.columns)])
        for kind, found in definitions.expressions(one.inner):
            self._functions(found, one.line)
            node = queries.condition(found) if kind == "CHECK" else queries.values(found)
            self.binder(one.line).outputs(node, (around,))

    # Queries

    def _query(self, one: Query) -> None:
        self._functions(one.tokens, one.line)
        match one.tokens[0].word:
            case "INSERT":
                writes.insert(self, one)
            case "UPDATE":
                writes.update(self, one)
            case "DELETE":
                writes.delete(self, one)
            case _:
                outputs = self.asked(one.tokens, queries.query(one.tokens), one.line)
                if outputs:
                    self.shapes.append(shape(outputs))

    # Calls

    def _call(self, one: Call) -> None:
        if one.procedure[0] == "(":
            return
        if one.result:
            self._known(one.result, one.line)
        given = [
            self.value(argument.value, one.line) if not self._is_default(argument.value) else ""
            for argument in one.arguments
        ]
        shapes = self._called(one, given)
        if one.into:
            target, listed, _ = writes.into(self, one.into)
            if self._nests(one):
                self.fault("8164", one.line, f"INSERT of what {one.procedure[-1]} gives, which has one itself")
            for each in shapes:
                writes.put(self, target, listed, [kind for _, kind in each.columns], one.line)
        else:
            self.shapes += shapes

    def _nests(self, one: Call) -> bool:
        schema, name = ("", *one.procedure)[-2:]
        found = self.world.procedures.get((self.database, schema, name))
        return found is not None and found.nests

    def _is_default(self, value: Tokens) -> bool:
        return not value or value[0].word == "DEFAULT"

    def _known(self, name: str, line: int) -> None:
        if name not in self.variables and not self.loose:
            self.fault("137", line, f"{name} is not declared")

    def _called(self, one: Call, given: Sequence[str]) -> tuple[Shape, ...]:
        name = one.procedure
        if name[0].startswith("@"):
            self._known(name[0], one.line)
            text = self.built.get(name[0], "")
            if EXECUTE_SQL in text:
                return self._executed(one, TARGET)
            return ()
        if name[-1] == EXECUTE_SQL and name[-2:-1] in ((), ("sys",)):
            return self._executed(one, DATABASES.get(name[0], self.database) if len(name) > 2 else self.database)
        database, schema, last = ("", "", "", *name)[-3:]
        where = (not self.elsewhere and DATABASES.get(database, database)) or self.database
        found = server_procedures().get(last) if schema == "sys" else self.world.procedures.get((where, schema, last))
        if found is None and schema not in OWN and schema != "sys" and self.elsewhere:
            return ()
        if found is None:
            self.fault("2812", one.line, f"procedure {'.'.join(name)} in database {where}")
            return ()
        self.faults += arguments_faults(one, found, given)
        return found.shapes

    def _executed(self, one: Call, database: str) -> tuple[Shape, ...]:
        """Bind what a call of sp_executesql runs, with the parameters that are declared to it."""
        text, *rest = one.arguments or (None,)
        if text is None:
            self.fault("201", one.line, "sp_executesql without a statement")
            return ()
        written = text.value[0]
        sql = self.built.get(written.text, "") if written.kind is Kind.VARIABLE else whole(text.value, 0)
        inner = Program(self.world, database, elsewhere=self.elsewhere)
        for argument in (text, *rest[:1]):
            self._wide(argument.value[0], one.line)
        if rest and rest[0].value[0].kind is Kind.STRING:
            declared = statements(tokens(f"DECLARE {rest[0].value[0].value};"))
            parameters = declared[0].variables if declared and isinstance(declared[0], Declare) else ()
            for variable in parameters:
                inner.declare(variable)
            kinds = [self.value(argument.value, one.line) for argument in rest[1:]]
            passed = Call(line=one.line, procedure=one.procedure, arguments=tuple(rest[1:]))
            self.faults += arguments_faults(passed, Procedure(parameters), kinds)
        elif rest:
            self.fault("214", one.line, "sp_executesql: what it declares is no constant")
        if not sql and not self.loose:
            self.fault("unread", one.line, f"{written.text}: what runs is not built from constants")
        inner.batch(sql, one.line)
        self.faults += inner.faults
        return tuple(inner.shapes)

    def _wide(self, said: Token, line: int) -> None:
        """Both texts are nvarchar, constants too."""
        narrow = not said.text.startswith("N'") if said.kind is Kind.STRING else False
        kind = self.variables.get(said.text, "")
        if narrow or (kind and not kind.startswith("nvarchar")):
            self.fault("214", line, f"sp_executesql with {kind or 'a constant'} that is no nvarchar")

    def batch(self, sql: str, line: int) -> None:
        """Bind a text of one batch or more."""
        for each in batches(sql):
            try:
                read = statements(tokens(each.text, line + each.line - 1))
            except UnknownForm as error:
                self.fault("unread", line, str(error))
            else:
                self.run(read)

    # Modules

    def _module(self, one: Module) -> None:
        inner = Program(self.world, self.database, elsewhere=self.elsewhere)
        for parameter in one.parameters:
            inner.declare(parameter)
        if len(one.name) > 2:
            self.fault("166", one.line, f"{'.'.join(one.name)}: a module is made in its own database")
        schema, name = ("", *one.name)[-2:]
        key = (self.database, schema, name)
        match one.kind:
            case "VIEW":
                self._view(one, inner, key)
            case "TRIGGER":
                self._trigger(one, inner)
                self.world.others.add(key)
            case "FUNCTION":
                self.world.functions[key] = one.returns
                self._unknown_types([one.returns], one.line, one.name[-1])
                inner.run(one.body)
            case _:
                self.world.procedures[key] = Procedure(one.parameters)
                inner.run(one.body)
                nests = any(isinstance(each, Call) and bool(each.into) for each in within(one.body))
                self.world.procedures[key] = Procedure(one.parameters, tuple(inner.shapes), nests=nests)
        self.faults += inner.faults

    def _view(self, one: Module, inner: Program, key: tuple[str, str, str]) -> None:
        inner.run(one.body)
        for each in one.body:
            if isinstance(each, Query):
                inner.binder(one.line).unordered(queries.query(each.tokens), f"view {one.name[-1]}")
        columns = inner.shapes[0].columns if inner.shapes else ()
        names = [name for name, _ in columns]
        if "" in names:
            self.fault("4511", one.line, f"view {one.name[-1]}: column {names.index('') + 1} has no name")
        for name in {name for name in names if name and names.count(name) > 1}:
            self.fault("4506", one.line, f"view {one.name[-1]}: column {name} twice")
        self.world.relations[key] = Relation(one.name[-1], dict(columns))

    def _trigger(self, one: Module, inner: Program) -> None:
        if one.on and one.on[0] not in ("DATABASE", "ALL"):
            database, schema, name = ("", "", "", *one.on)[-3:]
            table = inner.binder(one.line).relation(database, schema, name)
            if table is not None:
                inner.moved = tuple(table.columns)
                inner.tables |= {each: Relation(each, table.columns) for each in ("inserted", "deleted")}
        inner.run(one.body)
        self.fault_results(one, inner)

    def fault_results(self, one: Module, inner: Program) -> None:
        """A trigger gives no rows: they would come to whoever wrote."""
        if inner.shapes:
            self.fault("524", one.line, f"trigger {one.name[-1]} gives rows")

    def _said(self, one: Said) -> None:
        kinds = [self.value(part, one.line) for part in one.arguments if part]
        self.faults += definitions.said_faults(one, kinds)

    def _other(self, one: Other) -> None:
        words = [token.word for token in one.tokens]
        if words[0] == "USE":
            self.database = DATABASES.get(one.tokens[1].name, one.tokens[1].name)
        elif words[:2] == ["CREATE", "SEQUENCE"]:
            schema, name = ("", *named(one.tokens, 2)[0])[-2:]
            self.world.others.add((self.database, schema, name))
        else:
            principals.make(self.world, one)
            self.faults += definitions.other_faults(self.world, self.database, one)
            if not (self.loose or self.elsewhere):
                self.faults += definitions.stray_faults(self.world, self.database, one)
                self.faults += principals.unknown(self.world, one)
