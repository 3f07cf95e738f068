"""The typed difference, aspect by aspect, and its algebra."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

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
    Stage,
    WidenType,
    apply,
    created,
)
from dpone_provider.domain.schema.diff import Conflict, ConflictKind, Difference, Unmanaged, difference
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.tables import (
    Absent,
    Column,
    ForeignKey,
    Index,
    Occupied,
    Present,
    RelationKind,
    Storage,
    Table,
)
from dpone_provider.domain.schema.types import Boolean, Integer, String
from tests.domain.schema.strategies import tables

ID = Column(name="id", type=Integer(32), nullable=False)
NAME = Column(name="name", type=String(40), nullable=True)
DECLARED = Table(schema="stage", name="t", columns=(ID, NAME))
OBSERVED = created(DECLARED)
PARENT = ForeignKey(name="f", columns=("id",), references=Relation("stage", "parent"), referenced_columns=("id",))


def compare(declared: Table, observed: Table) -> Difference:
    """The difference to a table that is there."""
    return difference(declared, Present(observed))


def actions(declared: Table, observed: Table = OBSERVED) -> tuple[Action, ...]:
    """The actions of a difference without conflicts."""
    found = compare(declared, observed)
    assert found.conflicts == ()
    return found.actions


def conflict(declared: Table, observed: Table = OBSERVED) -> Conflict:
    """The only conflict of a difference."""
    (found,) = compare(declared, observed).conflicts
    return found


def with_columns(*columns: Column, table: Table = DECLARED) -> Table:
    """The table with other columns."""
    return replace(table, columns=columns)


@given(tables())
def test_a_table_does_not_differ_from_what_its_creation_leaves(table: Table) -> None:
    assert compare(table, created(table)).in_sync
    assert compare(created(table), created(table)) == Difference(
        unmanaged=compare(created(table), created(table)).unmanaged
    )


def test_an_absent_table_is_created() -> None:
    found = difference(DECLARED, Absent(DECLARED.relation))
    assert found.actions == (CreateTable(DECLARED),)
    assert not found.in_sync


def test_a_view_at_the_name_is_a_conflict() -> None:
    found = difference(DECLARED, Occupied(DECLARED.relation, RelationKind.VIEW))
    assert found.conflicts == (
        Conflict(kind=ConflictKind.NOT_A_TABLE, subject="stage.t", observed="view", declared="table"),
    )
    assert not found.in_sync


def test_only_the_same_name_is_compared() -> None:
    with pytest.raises(InvalidSchemaValue, match=r"observed stage\.x"):
        difference(DECLARED, Absent(Relation("stage", "x")))
    with pytest.raises(InvalidSchemaValue, match=r"observed stage\.x"):
        compare(DECLARED, replace(OBSERVED, name="x"))


def test_columns_are_added_dropped_widened_and_relaxed() -> None:
    more = replace(NAME, name="more", comment="new")
    assert actions(with_columns(ID, NAME, more)) == (AddColumn(more),)
    assert actions(with_columns(ID)) == (DropColumn("name"),)
    wide = replace(ID, type=Integer(64))
    assert actions(with_columns(wide, NAME)) == (
        WidenType(column="id", old_type=Integer(32), new_type=Integer(64), nullable=False),
    )
    both = replace(wide, nullable=True)
    assert actions(with_columns(both, NAME)) == (
        WidenType(column="id", old_type=Integer(32), new_type=Integer(64), nullable=False),
        RelaxNullability("id", Integer(64)),
    )


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (replace(NAME, type=String(20)),
         Conflict(kind=ConflictKind.NARROWING, subject="column 'name'", observed="string(40)", declared="string(20)")),
        (replace(NAME, type=Boolean()),
         Conflict(kind=ConflictKind.INCOMPATIBLE_TYPE, subject="column 'name'", observed="string(40)",
                  declared="boolean")),
        (replace(NAME, nullable=False),
         Conflict(kind=ConflictKind.NULLABILITY_TIGHTENED, subject="column 'name'", observed="NULL allowed",
                  declared="NOT NULL")),
        (replace(NAME, name="Name"),
         Conflict(kind=ConflictKind.CASE_DRIFT, subject="column 'Name'", observed="'name'", declared="'Name'")),
        (replace(NAME, renamed_from="id"),
         Conflict(kind=ConflictKind.AMBIGUOUS_RENAME, subject="column 'name'", observed="'id' and 'name'",
                  declared="renamed from 'id'")),
        (replace(NAME, name="x", renamed_from="y"),
         Conflict(kind=ConflictKind.RENAME_SOURCE_MISSING, subject="column 'x'", observed="neither name",
                  declared="renamed from 'y'")),
    ],
)  # fmt: skip
def test_changes_of_a_column_that_are_conflicts(column: Column, expected: Conflict) -> None:
    declared = with_columns(column) if column.renamed_from == "id" else with_columns(ID, column)
    assert conflict(declared) == expected


def test_a_drifted_column_is_neither_dropped_nor_added() -> None:
    found = compare(with_columns(ID, replace(NAME, name="NAME")), OBSERVED)
    assert found.actions == ()
    both = with_columns(ID, NAME, replace(NAME, name="NAME"))
    assert actions(both) == (AddColumn(replace(NAME, name="NAME")),)


def test_a_rename_keeps_place_key_and_indexes() -> None:
    index = Index(name="i", columns=("number",))
    declared = replace(
        with_columns(replace(ID, name="number", renamed_from="id"), NAME), primary_key=("number",), indexes=(index,)
    )
    observed = replace(OBSERVED, primary_key=("id",), indexes=(replace(index, columns=("id",)),))
    assert actions(declared, observed) == (RenameColumn("id", "number"),)
    applied = apply(observed, RenameColumn("id", "number"))
    assert compare(declared, applied).in_sync  # the old name is gone: the rename was done


def test_a_rename_may_change_case() -> None:
    declared = with_columns(ID, replace(NAME, name="Name", renamed_from="name"))
    assert actions(declared) == (RenameColumn("name", "Name"),)


def test_a_renamed_column_is_compared_under_its_new_name() -> None:
    declared = with_columns(ID, replace(NAME, name="title", renamed_from="name", type=String(), comment="x"))
    assert actions(declared) == (
        RenameColumn("name", "title"),
        WidenType(column="title", old_type=String(40), new_type=String(), nullable=True),
        SetColumnComment("title", "x"),
    )


def test_a_new_column_that_is_declared_before_others_is_a_conflict_of_order() -> None:
    more = replace(NAME, name="more")
    found = compare(with_columns(more, ID, NAME), OBSERVED)
    assert found.conflicts == (
        Conflict(
            kind=ConflictKind.COLUMN_ORDER,
            subject="order of columns",
            observed="id, name, more",
            declared="more, id, name",
        ),
    )
    assert conflict(with_columns(NAME, ID)).kind is ConflictKind.COLUMN_ORDER


def test_primary_keys() -> None:
    keyed, keyless = replace(OBSERVED, primary_key=("id",), primary_key_name="t_pkey"), OBSERVED
    assert actions(replace(DECLARED, primary_key=("id",)), keyless) == (AddPrimaryKey(("id",)),)
    assert actions(replace(DECLARED, primary_key=()), keyed) == (DropPrimaryKey(("id",), "t_pkey"),)
    found = conflict(replace(DECLARED, primary_key=("id", "name")), keyed)
    assert (found.kind, found.observed, found.declared) == (ConflictKind.PRIMARY_KEY_CHANGED, "id", "id, name")
    assert compare(DECLARED, keyed) == Difference(unmanaged=(Unmanaged("primary key", "id"),))
    assert compare(DECLARED, keyless) == Difference()
    # An engine without keys gives None back, and nothing is compared.
    assert compare(replace(DECLARED, primary_key=("id",)), replace(OBSERVED, primary_key=None)).in_sync


def test_comments() -> None:
    commented = replace(OBSERVED, comment="old", columns=(replace(OBSERVED.columns[0], comment="old"), NAME))
    declared = replace(DECLARED, comment="new", columns=(replace(ID, comment="new"), replace(NAME, comment="x")))
    assert actions(declared, commented) == (SetTableComment("new"), SetColumnComment("id", "new"))
    found = compare(DECLARED, commented)
    assert found.unmanaged == (Unmanaged("comment of column 'id'", "'old'"), Unmanaged("comment of the table", "'old'"))
    assert found.in_sync


def test_indexes_and_foreign_keys_are_managed_by_name() -> None:
    index = Index(name="i", columns=("id",))
    declared = replace(DECLARED, indexes=(index,), foreign_keys=(PARENT,))
    assert actions(declared) == (CreateIndex(index), AddForeignKey(PARENT))
    other = replace(
        OBSERVED,
        indexes=(replace(index, unique=True), Index(name="j", columns=("name",))),
        foreign_keys=(replace(PARENT, columns=("name",)), replace(PARENT, name="g")),
    )
    found = compare(declared, other)
    assert found.actions == (DropForeignKey("f"), DropIndex("i"), CreateIndex(index), AddForeignKey(PARENT))
    assert found.unmanaged == (Unmanaged("index 'j'", "name"), Unmanaged("foreign key 'g'", "references stage.parent"))
    assert compare(declared, created(declared)) == Difference()


def test_storage_is_fixed_at_creation() -> None:
    plain, parted = Storage(engine="MergeTree", order_by=("id",)), Storage(engine="MergeTree", partition_by="day")
    found = conflict(replace(DECLARED, storage=plain), replace(OBSERVED, storage=parted))
    assert found == Conflict(
        kind=ConflictKind.STORAGE_CHANGED,
        subject="storage",
        observed="ENGINE MergeTree ORDER BY () PARTITION BY day",
        declared="ENGINE MergeTree ORDER BY (id)",
    )
    assert compare(DECLARED, replace(OBSERVED, storage=plain)).unmanaged == (
        Unmanaged("storage", "ENGINE MergeTree ORDER BY (id)"),
    )
    assert compare(replace(DECLARED, storage=plain), OBSERVED) == Difference()


@given(tables(), tables())
def test_actions_come_in_the_order_of_their_stages(declared: Table, observed: Table) -> None:
    stages = [action.stage for action in compare(declared, observed).actions]
    assert stages == sorted(stages)


def test_each_action_has_a_stage_of_its_own() -> None:
    assert len({stage.name for stage in Stage}) == 14
