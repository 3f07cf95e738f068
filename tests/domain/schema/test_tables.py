"""Tables as values: what cannot be built, and what equality leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.tables import Column, ForeignKey, Index, Present, Storage, Table
from dpone_provider.domain.schema.types import Integer, String

ID = Column(name="id", type=Integer(64), nullable=False)
NAME = Column(name="name", type=String(40), nullable=True)
TABLE = Table(schema="stage", name="planes", columns=(ID, NAME), primary_key=("id",))
PLANES = Relation("stage", "planes")

INVALID: list[tuple[str, Callable[[], object]]] = [
    ("an empty name", lambda: replace(ID, name="")),
    ("without NUL", lambda: replace(ID, name="a\x00b")),
    ("NFC form", lambda: replace(ID, name="cafe\u0301")),
    ("an empty name", lambda: replace(ID, renamed_from="")),
    ("another name", lambda: replace(ID, renamed_from="id")),
    ("an empty name", lambda: replace(TABLE, schema="")),
    ("an empty name", lambda: replace(TABLE, name="")),
    ("control characters", lambda: replace(TABLE, name="a\tb")),
    ("no column", lambda: replace(TABLE, columns=())),
    ("column 'id' twice", lambda: replace(TABLE, columns=(ID, ID))),
    ("column 'id' twice", lambda: replace(TABLE, primary_key=("id", "id"))),
    ("column 'no'", lambda: replace(TABLE, primary_key=("no",))),
    ("no column", lambda: Index(name="i", columns=())),
    ("column 'a' twice", lambda: Index(name="i", columns=("a", "a"))),
    ("an empty name", lambda: Index(name="", columns=("a",))),
    ("index 'i' twice", lambda: replace(TABLE, indexes=(Index(name="i", columns=("id",)),) * 2)),
    ("column 'no'", lambda: replace(TABLE, indexes=(Index(name="i", columns=("no",)),))),
    ("0 columns", lambda: ForeignKey(name="f", columns=(), references=PLANES, referenced_columns=())),
    ("1 columns against 2",
     lambda: ForeignKey(name="f", columns=("a",), references=PLANES, referenced_columns=("a", "b"))),
    ("column 'no'",
     lambda: replace(
         TABLE, foreign_keys=(ForeignKey(name="f", columns=("no",), references=PLANES, referenced_columns=("id",)),)
     )),
    ("empty expression", lambda: Storage(engine="")),
    ("empty expression", lambda: Storage(engine="MergeTree", order_by=("",))),
    ("empty expression", lambda: Storage(engine="MergeTree", partition_by="")),
    ("also declared as a column", lambda: replace(TABLE, columns=(ID, replace(NAME, renamed_from="id")))),
    ('"renamed_from" \'old\' twice',
     lambda: replace(TABLE, columns=(replace(ID, renamed_from="old"), replace(NAME, renamed_from="old")))),
]  # fmt: skip


@pytest.mark.parametrize(("message", "build"), INVALID)
def test_wrong_values_cannot_be_built(message: str, build: Callable[[], object]) -> None:
    with pytest.raises(InvalidSchemaValue) as caught:
        build()
    assert message in str(caught.value)


def test_a_table_finds_its_columns_by_exact_name() -> None:
    assert TABLE.column("name") is NAME
    assert TABLE.column("Name") is None
    assert TABLE.column_names == ("id", "name")
    assert TABLE.relation == PLANES


def test_keys_over_columns_that_are_there_can_be_built() -> None:
    key = ForeignKey(name="f", columns=("id",), references=PLANES, referenced_columns=("id",))
    index = Index(name="i", columns=("name",))
    renamed = replace(NAME, renamed_from="title")
    assert replace(TABLE, columns=(ID, renamed), foreign_keys=(key,), indexes=(index,)).foreign_keys == (key,)
    assert Storage(engine="MergeTree", order_by=("id",), partition_by="toYYYYMM(day)").order_by == ("id",)


def test_the_name_that_an_engine_gave_a_key_is_not_part_of_equality() -> None:
    assert replace(TABLE, primary_key_name="PK__planes__3213E83F") == TABLE


def test_a_present_table_is_taken_to_have_rows_unless_seen_empty() -> None:
    assert Present(TABLE).has_rows
