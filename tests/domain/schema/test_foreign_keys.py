"""The order in which tables that refer to each other are brought about."""

from __future__ import annotations

import pytest

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.foreign_keys import Cycles, creation_order
from dpone_provider.domain.schema.rules import Rule
from dpone_provider.domain.schema.tables import Column, ForeignKey, Table
from dpone_provider.domain.schema.types import Integer

ID = Column(name="id", type=Integer(32), nullable=False)


def table(name: str, *references: str) -> Table:
    """A table that refers to others by its id."""
    keys = tuple(
        ForeignKey(name=f"to_{other}", columns=("id",), references=Relation("s", other), referenced_columns=("id",))
        for other in references
    )
    return Table(schema="s", name=name, columns=(ID,), foreign_keys=keys)


def test_referenced_tables_come_first() -> None:
    tables = [table("line", "order", "item"), table("order", "customer", "order"), table("item"), table("customer")]
    ordered = creation_order(tables)
    assert not isinstance(ordered, Cycles)
    names = [each.name for each in ordered]
    assert sorted(names) == ["customer", "item", "line", "order"]
    assert names.index("customer") < names.index("order") < names.index("line")
    assert names.index("item") < names.index("line")


def test_references_to_other_tables_bind_nothing() -> None:
    assert creation_order([table("a", "elsewhere")]) == (table("a", "elsewhere"),)
    assert creation_order([]) == ()


def test_every_cycle_is_named() -> None:
    found = creation_order([table("a", "b"), table("b", "a"), table("x", "y"), table("y", "z"), table("z", "x")])
    assert isinstance(found, Cycles)
    assert {each.rule for each in found.failures} == {Rule.FOREIGN_KEY_CYCLE}
    paths = sorted(each.observed for each in found.failures)
    assert len(paths) == 2
    assert set(paths[0].split(" → ")) == {"s.a", "s.b"}
    assert set(paths[1].split(" → ")) == {"s.x", "s.y", "s.z"}
    for path in paths:
        assert path.split(" → ")[0] == path.split(" → ")[-1]


def test_a_path_reads_in_the_direction_of_the_references() -> None:
    found = creation_order([table("x", "y"), table("y", "z"), table("z", "x")])
    assert isinstance(found, Cycles)
    assert found.failures[0].observed in "s.x → s.y → s.z → s.x → s.y → s.z → s.x"


def test_a_table_declared_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        creation_order([table("a"), table("a")])
