"""Actions as pure functions on tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.actions import (
    Action,
    AddColumn,
    AddForeignKey,
    AddPrimaryKey,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropForeignKey,
    DropIndex,
    DropPrimaryKey,
    RelaxNullability,
    RenameColumn,
    SetColumnComment,
    SetTableComment,
    WidenType,
    after_creating,
    apply,
    created,
)
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.tables import Column, ForeignKey, Index, Table
from dpone_provider.domain.schema.types import Integer

ID = Column(name="id", type=Integer(32), nullable=False, comment="")
INDEX = Index(name="i", columns=("id",))
PARENT = ForeignKey(name="f", columns=("id",), references=Relation("stage", "parent"), referenced_columns=("id",))
BARE = Table(schema="stage", name="t", columns=(ID,), primary_key=(), comment="")
FULL = replace(
    BARE, primary_key=("id",), primary_key_name="t_pkey", comment="x", indexes=(INDEX,), foreign_keys=(PARENT,)
)

EFFECTS: list[tuple[Table, Action, Table]] = [
    (FULL, DropForeignKey("f"), replace(FULL, foreign_keys=())),
    (FULL, DropIndex("i"), replace(FULL, indexes=())),
    (FULL, DropPrimaryKey(("id",), "t_pkey"), replace(FULL, primary_key=())),
    (BARE, AddColumn(replace(ID, name="b", comment=None)), replace(BARE, columns=(ID, replace(ID, name="b")))),
    (replace(BARE, columns=(ID, replace(ID, name="b"))), DropColumn("b"), BARE),
    (BARE, WidenType(column="id", old_type=Integer(32), new_type=Integer(64), nullable=False),
     replace(BARE, columns=(replace(ID, type=Integer(64)),))),
    (BARE, RelaxNullability("id", Integer(32)), replace(BARE, columns=(replace(ID, nullable=True),))),
    (BARE, AddPrimaryKey(("id",)), replace(BARE, primary_key=("id",))),
    (BARE, CreateIndex(INDEX), replace(BARE, indexes=(INDEX,))),
    (BARE, AddForeignKey(PARENT), replace(BARE, foreign_keys=(PARENT,))),
    (BARE, SetTableComment("y"), replace(BARE, comment="y")),
    (replace(BARE, columns=(ID, replace(ID, name="b"))), SetColumnComment("b", "y"),
     replace(BARE, columns=(ID, replace(ID, name="b", comment="y")))),
]  # fmt: skip


@pytest.mark.parametrize(("before", "action", "after"), EFFECTS)
def test_effects(before: Table, action: Action, after: Table) -> None:
    assert apply(before, action) == after


def test_dropping_a_key_forgets_its_name() -> None:
    assert apply(FULL, DropPrimaryKey(("id",), "t_pkey")).primary_key_name is None


def test_a_rename_reaches_everything_that_mentions_the_column() -> None:
    after = apply(FULL, RenameColumn("id", "number"))
    assert after.column_names == ("number",)
    assert after.primary_key == ("number",)
    assert after.indexes == (replace(INDEX, columns=("number",)),)
    assert after.foreign_keys == (replace(PARENT, columns=("number",)),)
    assert apply(replace(BARE, primary_key=None), RenameColumn("id", "n")).primary_key is None


def test_creation_leaves_what_is_declared_and_nothing_else() -> None:
    declared = Table(schema="stage", name="t", columns=(replace(ID, comment=None, renamed_from="old"),))
    assert apply(None, CreateTable(declared)) == created(declared) == BARE


@pytest.mark.parametrize(
    ("table", "action", "message"),
    [
        (BARE, CreateTable(BARE), "stage.t exists"),
        (None, DropIndex("i"), "found no table"),
        (BARE, DropColumn("x"), "no column 'x'"),
        (BARE, RenameColumn("x", "y"), "no column 'x'"),
        (BARE, RelaxNullability("x", Integer(8)), "no column 'x'"),
        (BARE, AddColumn(ID), "column 'id' twice"),
    ],
)
def test_an_action_that_does_not_fit_is_refused(table: Table | None, action: Action, message: str) -> None:
    with pytest.raises(InvalidSchemaValue, match=message):
        apply(table, action)


def test_what_creating_alone_does_not_say_comes_after_it() -> None:
    told = replace(FULL, columns=(replace(ID, comment="the number"), replace(ID, name="b")))
    bare = replace(told, columns=(ID, replace(ID, name="b")), comment="", indexes=(), foreign_keys=())
    after = bare
    for action in after_creating(told):
        after = apply(after, action)
    assert after == created(told)
    assert after_creating(BARE) == ()
