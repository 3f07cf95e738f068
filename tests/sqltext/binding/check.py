"""Every text of this project bound, each where it runs: what the scripts make is there for those after them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from dpone_provider.application.installation.tsql import batches
from tests.sqltext.binding import principals
from tests.sqltext.binding.definitions import make
from tests.sqltext.binding.forms import Other, Table
from tests.sqltext.binding.program import Program
from tests.sqltext.binding.statements import statements, within
from tests.sqltext.binding.world import CONTROL, DATABASES, MASTER, TARGET, Fault, Shape, World
from tests.sqltext.of_tests import statements_of_tests
from tests.sqltext.texts import Text, adapter_statements, ledger_batches, ledger_statements, scripts

IN_CONTROL = ("ledger", "adapters/ledger", "adapters/mssql/gate.sql")
"""How texts are called that run in the control database without naming it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A text that was bound: what is wrong, what results it may give, and the variables that it is given."""

    text: Text
    faults: tuple[Fault, ...]
    shapes: tuple[Shape, ...]
    wanted: frozenset[str]


@cache
def installed() -> tuple[World, tuple[Bound, ...]]:
    """Return what the scripts make, run one after the other, and what is wrong with each."""
    world = World()
    tables_of(world)
    return world, tuple(bind(world, text, MASTER, loose=False) for text in scripts())


def tables_of(world: World) -> None:
    """Take all tables as made: what a statement names need not be there before that statement runs."""
    for text in scripts():
        database = MASTER
        for batch in batches(text.sql):
            for one in within(statements(batch.tokens)):
                if isinstance(one, Other) and one.tokens[0].word == "USE":
                    database = DATABASES[one.tokens[1].name]
                if isinstance(one, Other):
                    principals.make(world, one)
                if isinstance(one, Table):
                    make(world, database, one)


def bind(world: World, text: Text, database: str, *, loose: bool, elsewhere: bool = False) -> Bound:
    """Bind one text in a database; `Binder` says what the two other words mean."""
    program = Program(world, database, loose=loose, elsewhere=elsewhere)
    for batch in batches(text.sql):
        each = Program(world, program.database, loose=loose, elsewhere=elsewhere)
        each.batch(batch.text, batch.line)
        program.database = each.database
        program.faults += each.faults
        program.shapes += each.shapes
        program.wanted |= each.wanted
    return Bound(text, tuple(program.faults), tuple(program.shapes), frozenset(program.wanted))


@cache
def all_bound() -> Mapping[str, Bound]:
    """Return every text that ships or is compiled, bound, by name."""
    world, of_scripts = installed()
    rest: Iterable[Text] = (*ledger_statements(), *ledger_batches(), *adapter_statements())
    bound = (*of_scripts, *(bind(world.copy(), text, place(text.name), loose=True) for text in rest))
    return {one.text.name: one for one in bound}


def place(name: str) -> str:
    """Return the database in which a statement of the program runs."""
    if name.startswith(IN_CONTROL):
        return CONTROL
    return MASTER if name.startswith("lab/") else TARGET


def bind_with(text: Text, given: Mapping[str, str]) -> list[Fault]:
    """Return what is wrong with a statement of the program when its values are of these types."""
    world, _ = installed()
    program = Program(world.copy(), place(text.name), loose=True)
    program.variables |= given
    program.batch(text.sql, 1)
    return program.faults


@cache
def anywhere() -> World:
    """Return a world in which everything that the scripts make stands in one database: a test says where it runs."""
    world, _ = installed()
    return World(
        {(CONTROL, schema, name): one for (_, schema, name), one in world.relations.items()},
        {(CONTROL, schema, name): one for (_, schema, name), one in world.procedures.items()},
        {(CONTROL, schema, name): one for (_, schema, name), one in world.functions.items()},
        {(CONTROL, schema, name) for _, schema, name in world.others},
        set(world.principals),
    )


def bound_of_tests() -> tuple[Bound, ...]:
    """Return what tests send to a given server, bound."""
    return tuple(bind(anywhere().copy(), text, CONTROL, loose=True, elsewhere=True) for text in statements_of_tests())
