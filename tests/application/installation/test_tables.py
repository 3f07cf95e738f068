"""`CREATE TABLE` and `CREATE INDEX` taken apart."""

from __future__ import annotations

import pytest

from dpone_provider.application.installation.tables import Column, Constraint, Index, UnknownForm, indexes, tables
from dpone_provider.application.installation.tsql import tokens

SQL = """
CREATE TABLE s.parent (id int NOT NULL CONSTRAINT parent_pkey PRIMARY KEY);
CREATE TABLE s.child (
    id       bigint         NOT NULL IDENTITY CONSTRAINT child_number UNIQUE,
    parent   int            NULL CONSTRAINT child_parent REFERENCES s.parent (id),
    [rows]   decimal(10, 2) NOT NULL CONSTRAINT child_rows CHECK ([rows] > 0),
    at       datetime2(3)   NOT NULL CONSTRAINT child_at DEFAULT SYSDATETIME(),
    CONSTRAINT child_pkey PRIMARY KEY NONCLUSTERED (parent, id) WITH (ALLOW_PAGE_LOCKS = OFF),
    INDEX child_by_parent (parent)
);
ALTER TABLE s.parent ADD CONSTRAINT parent_child FOREIGN KEY (id, other) REFERENCES s.child (id, [rows]);
CREATE UNIQUE INDEX one_child ON s.child (parent) WHERE id = 1;
CREATE INDEX child_at ON s.child (at, id);
"""


def test_a_table_with_everything() -> None:
    """Columns with their types and nullability, constraints of every kind, indexes within."""
    parent, child = tables(tokens(SQL))
    assert (child.schema, child.name) == ("s", "child")
    assert child.columns == (
        Column("id", "bigint", False),
        Column("parent", "int", False),  # part of the primary key
        Column("rows", "decimal(10,2)", False),
        Column("at", "datetime2(3)", False),
    )
    assert child.of("unique") == {"child_number": Constraint(name="child_number", kind="unique", columns=("id",))}
    assert child.of("primary key")["child_pkey"].columns == ("parent", "id")
    assert child.of("foreign key")["child_parent"].refers_to == "parent"
    assert set(child.of("check")) == {"child_rows"}
    assert set(child.of("default")) == {"child_at"}
    assert child.of("index")["child_by_parent"].columns == ("parent",)
    added = Constraint(name="parent_child", kind="foreign key", columns=("id", "other"), refers_to="child")
    assert parent.of("foreign key") == {"parent_child": added}


def test_indexes_of_their_own() -> None:
    """Unique or not, filtered or not."""
    assert indexes(tokens(SQL)) == (
        Index("one_child", "s", "child", True, ("parent",), True),
        Index("child_at", "s", "child", False, ("at", "id"), False),
    )


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t",
        "CREATE TABLE t (a int",
        "CREATE TABLE t (CONSTRAINT c EXCLUDE (a))",
        "CREATE TABLE t ('a' int)",
    ],
)
def test_an_unknown_form_is_named(sql: str) -> None:
    """Rather than read as something else."""
    with pytest.raises(UnknownForm, match="line 1"):
        tables(tokens(sql))
