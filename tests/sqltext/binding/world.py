"""What statements may name: what the scripts make, and the server's own, by database and schema."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from tests.sqltext.binding.forms import Field, Variable

HERE = Path(__file__).parent
CONTROL, TARGET, MASTER = "control", "target", "master"
DATABASES = {"dpone": CONTROL, "control": CONTROL, "warehouse": TARGET, "master": MASTER}
"""Databases by the names that stand in for them in the texts."""
STAND_IN = "x"
"""What stands for a name that a statement is built with."""
OWN = frozenset({"dpone_control", "dpone_gate", "dpone_receipt"})
"""Our schemas: whatever is named in them is there."""
_COLUMN = re.compile(r"(\w+) (\w+(?:\([\w,]+\))?)")

Columns = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server would refuse, or take for something else: its own number where it has one."""

    number: str
    line: int
    found: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"line {self.line}: {self.number}: {self.found}"


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or view: its columns in order; of a table of ours, its fields, and the columns of its unique keys."""

    name: str
    columns: Columns
    fields: tuple[Field, ...] = ()
    keys: frozenset[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a result, each with its name, empty where it has none, and its type."""

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Procedure:
    """What one calls: its parameters in order, the results that it may give; it `nests` where it fills rows by EXEC."""

    parameters: tuple[Variable, ...]
    shapes: tuple[Shape, ...] = ()
    optional: frozenset[str] = frozenset()
    nests: bool = False


@dataclass(slots=True)
class World:
    """Objects by database, schema and name, as they are made."""

    relations: dict[tuple[str, str, str], Relation] = field(default_factory=dict)
    procedures: dict[tuple[str, str, str], Procedure] = field(default_factory=dict)
    functions: dict[tuple[str, str, str], str] = field(default_factory=dict)
    others: set[tuple[str, str, str]] = field(default_factory=set)
    principals: set[str] = field(default_factory=set)

    def relation(self, database: str, schema: str, name: str) -> Relation | None:
        """Return a table or view; the server's own stand in every database."""
        if schema == "sys":
            columns = server_views().get(f"sys.{name}")
            return Relation(name, columns) if columns is not None else None
        return self.relations.get((database, schema, name))

    def copy(self) -> World:
        """Return another world in which there is the same."""
        return World(
            dict(self.relations), dict(self.procedures), dict(self.functions), set(self.others), set(self.principals)
        )

    def knows(self, database: str, schema: str, name: str) -> bool:
        """Tell whether there is anything of that name."""
        key = (database, schema, name)
        return key in self.relations or key in self.procedures or key in self.functions or key in self.others


@cache
def server_views() -> Mapping[str, Columns]:
    """Return the server's views that are known, each with its columns."""
    found = tomllib.loads((HERE / "server_views.toml").read_text(encoding="utf-8"))
    views = {
        name: dict(_COLUMN.findall(" ".join(said["columns"].split())))
        for name, said in found.items()
        if name != "unconfirmed"
    }
    return MappingProxyType({name: MappingProxyType(columns) for name, columns in views.items()})


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the server: how many arguments it takes, what it gives (empty: what it is given)."""

    least: int
    most: int
    returns: str


@cache
def server_functions() -> Mapping[str, Function]:
    """Return the server's functions that are known, by name in capitals."""
    found = tomllib.loads((HERE / "server_functions.toml").read_text(encoding="utf-8"))
    return MappingProxyType({name: _function(said) for name, said in found["functions"].items()})


def _function(said: str) -> Function:
    least, most, *returns = said.split()
    return Function(int(least), int(most), "".join(returns))


@cache
def server_procedures() -> Mapping[str, Procedure]:
    """Return the server's procedures that are known."""
    found = tomllib.loads((HERE / "server_functions.toml").read_text(encoding="utf-8"))
    return MappingProxyType({name: _procedure(said) for name, said in found["procedures"].items()})


def _procedure(said: str) -> Procedure:
    listed = [one.split() for one in said.split(", ") if one]
    parameters = tuple(Variable(name=one[0], type=one[1], line=0, output="output" in one) for one in listed)
    return Procedure(parameters, (), frozenset(one[0] for one in listed if "optional" in one))
