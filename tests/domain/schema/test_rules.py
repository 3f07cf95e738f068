"""The rules: every failure at once, each with its subject, both values and the way out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.actions import created
from dpone_provider.domain.schema.diff import Conflict, ConflictKind, Difference, difference
from dpone_provider.domain.schema.rules import EngineFacts, NameUnit, Rule, RuleFailure, failures, lossy_types
from dpone_provider.domain.schema.tables import Absent, Column, ForeignKey, Index, Present, Table
from dpone_provider.domain.schema.types import Integer, String, Timestamp

ID = Column(name="id", type=Integer(32), nullable=False)
NAME = Column(name="name", type=String(40), nullable=True)
DECLARED = Table(schema="stage", name="t", columns=(ID, NAME))
OBSERVED = created(DECLARED)


def broken(
    declared: Table,
    observed: Table = OBSERVED,
    *,
    consents: frozenset[str] = frozenset(),
    facts: EngineFacts | None = None,
    has_rows: bool = True,
) -> list[RuleFailure]:
    """The rules that a change to ``declared`` breaks."""
    present = Present(observed, has_rows)
    return list(failures(declared, present, difference(declared, present), consents, facts))


def test_nothing_to_do_breaks_nothing() -> None:
    assert broken(DECLARED) == []


def test_a_new_not_null_column_needs_an_empty_table() -> None:
    declared = replace(DECLARED, columns=(ID, NAME, replace(ID, name="n")))
    assert broken(declared) == [
        RuleFailure(
            rule=Rule.NOT_NULL_NEEDS_EMPTY_TABLE,
            subject="column 'n'",
            observed="a table with rows",
            declared="a new column, NOT NULL and without a value for them",
            way_out="declare the column nullable",
        )
    ]
    assert broken(declared, has_rows=False) == []
    assert broken(replace(DECLARED, columns=(ID, NAME, replace(NAME, name="n")))) == []


def test_dropping_needs_consent_for_that_very_column() -> None:
    declared = replace(DECLARED, columns=(ID,))
    (failure,) = broken(declared, consents=frozenset({"NAME"}))
    assert failure.rule is Rule.DROP_NEEDS_CONSENT
    assert failure.way_out == "declare the column, or consent to drop exactly 'name'"
    assert broken(declared, consents=frozenset({"name"})) == []


def test_a_consent_for_a_column_that_stays_is_a_contradiction() -> None:
    (failure,) = broken(DECLARED, consents=frozenset({"name", "long gone"}))
    assert (failure.rule, failure.subject) == (Rule.CONSENT_WITHOUT_DROP, "column 'name'")


def test_a_column_in_use_is_not_dropped() -> None:
    references = Relation("stage", "parent")
    used = replace(
        OBSERVED,
        primary_key=("name",),
        indexes=(Index(name="i", columns=("id", "name")), Index(name="j", columns=("id",))),
        foreign_keys=(ForeignKey(name="f", columns=("name",), references=references, referenced_columns=("id",)),),
    )
    declared = replace(DECLARED, columns=(ID,))
    found = broken(declared, used, consents=frozenset({"name"}))
    assert [(each.rule, each.observed) for each in found] == [
        (Rule.DROPPED_COLUMN_IN_USE, "used by the primary key"),
        (Rule.DROPPED_COLUMN_IN_USE, "used by index 'i'"),
        (Rule.DROPPED_COLUMN_IN_USE, "used by foreign key 'f'"),
    ]
    keyless = replace(OBSERVED, primary_key=("name",))
    assert broken(replace(declared, primary_key=()), keyless, consents=frozenset({"name"})) == []


def test_key_columns_are_not_null() -> None:
    declared = replace(DECLARED, primary_key=("id", "name"))
    absent = Absent(DECLARED.relation)
    (failure,) = failures(declared, None, difference(declared, absent), frozenset(), None)
    assert (failure.rule, failure.subject) == (Rule.KEY_COLUMN_NULLABLE, "column 'name'")


def test_every_conflict_is_a_failure_with_a_way_out() -> None:
    conflicts = tuple(Conflict(kind=kind, subject="s", observed="o", declared="d") for kind in ConflictKind)
    found = failures(DECLARED, None, Difference(conflicts=conflicts), frozenset(), None)
    assert [each.rule for each in found] == list(ConflictKind)
    assert all(each.way_out for each in found)


@pytest.mark.parametrize(
    ("unit", "maximum", "expected"),
    [
        (NameUnit.BYTES, 8, ["9 bytes of UTF-8", "9 bytes of UTF-8"]),
        (NameUnit.UTF16_UNITS, 8, ["9 UTF-16 code units"]),
        (NameUnit.UTF16_UNITS, 5, ["9 UTF-16 code units", "6 UTF-16 code units"]),
        (NameUnit.BYTES, 9, []),
    ],
)
def test_names_within_the_limit_of_the_engine(unit: NameUnit, maximum: int, expected: list[str]) -> None:
    index = Index(name="ninechars", columns=("id",))
    key = ForeignKey(name="ñandú😀", columns=("id",), references=Relation("s", "p"), referenced_columns=("id",))
    key = replace(key, name="ñand😀")  # 5 code points, 6 UTF-16 code units, 9 bytes
    declared = replace(DECLARED, indexes=(index,), foreign_keys=(key,))
    facts = EngineFacts(engine="Tiny", max_name_length=maximum, name_unit=unit)
    found = broken(declared, facts=facts)
    assert [each.observed for each in found] == expected
    assert all(each.rule is Rule.NAME_TOO_LONG for each in found)


def test_names_that_collide_under_the_database_s_collation() -> None:
    declared = replace(DECLARED, columns=(ID, NAME, replace(NAME, name="Name")))
    groups = (frozenset({"name", "Name", "NAME"}), frozenset({"id", "ID"}))
    facts = EngineFacts(engine="SQL Server", max_name_length=128, name_unit=NameUnit.UTF16_UNITS, equal_names=groups)
    (failure,) = broken(declared, facts=facts)
    assert (failure.rule, failure.subject) == (Rule.NAMES_COLLIDE, "columns 'name', 'Name'")


def test_types_that_the_engine_would_not_give_back() -> None:
    nanoseconds = Column(name="at", type=Timestamp(9), nullable=True)
    facts = EngineFacts(
        engine="PostgreSQL",
        max_name_length=63,
        name_unit=NameUnit.BYTES,
        lossy_types=((Timestamp(9), "timestamp(6)"),),
    )
    (failure,) = broken(replace(DECLARED, columns=(ID, NAME, nanoseconds)), facts=facts)
    assert (failure.rule, failure.observed, failure.declared) == (
        Rule.LOSSY_TYPE,
        "PostgreSQL would give back timestamp(6)",
        "timestamp(9)",
    )


def test_a_type_of_which_no_key_can_be_made_is_refused_in_the_key_and_nowhere_else() -> None:
    word, text = (Column(name=name, type=String(), nullable=False) for name in ("word", "text"))
    facts = EngineFacts(
        engine="SQL Server",
        max_name_length=128,
        name_unit=NameUnit.UTF16_UNITS,
        keyless_types=((String(), "no key is made of it"),),
    )
    declared = replace(DECLARED, columns=(word, text), primary_key=("word",))
    (failure,) = failures(declared, None, difference(declared, Absent(declared.relation)), frozenset(), facts)
    assert (failure.rule, failure.subject) == (Rule.KEY_COLUMN_TYPE, "column 'word'")
    assert "no key is made of it" in failure.observed
    assert "key: []" in failure.way_out


def test_comments_within_the_limit_of_the_engine() -> None:
    """In UTF-16 code units: a character outside of the first plane is two."""
    facts = EngineFacts(engine="Tiny", max_name_length=99, name_unit=NameUnit.BYTES, max_comment_units=4)
    declared = replace(DECLARED, comment="😀😀", columns=(replace(ID, comment="four"), replace(NAME, comment=None)))
    assert broken(declared, facts=facts) == []
    longer = replace(declared, comment="😀😀.", columns=(replace(ID, comment="fives"), NAME))
    found = broken(longer, facts=facts)
    assert [(each.rule, each.subject, each.observed) for each in found] == [
        (Rule.COMMENT_TOO_LONG, "comment of table", "5 UTF-16 code units"),
        (Rule.COMMENT_TOO_LONG, "comment of column 'id'", "5 UTF-16 code units"),
    ]


def test_all_failures_come_at_once() -> None:
    declared = replace(
        DECLARED,
        columns=(replace(ID, nullable=True, type=Integer(8)), replace(ID, name="n")),
        primary_key=("id",),
    )
    assert [each.rule for each in broken(declared)] == [
        ConflictKind.NARROWING,
        Rule.KEY_COLUMN_NULLABLE,
        Rule.NOT_NULL_NEEDS_EMPTY_TABLE,
        Rule.DROP_NEEDS_CONSENT,
    ]


def test_a_failure_reads_as_a_message() -> None:
    (failure,) = broken(replace(DECLARED, columns=(ID, replace(NAME, type=String(20)))))
    assert str(failure.problem) == (
        "narrowing: column 'name': found string(40), declared string(20); "
        "allowed: both the same, or a change that loses nothing. "
        "Next: declare the observed type or a wider one, or declare a new column and drop this one"
    )


def test_types_that_an_engine_has_no_own_for_are_told_once_with_what_would_be() -> None:
    kept = {Integer(32): "integer"}
    found = lossy_types((ID, NAME, replace(NAME, name="other")), kept.get, lambda logical: f"not {logical}")
    assert found == ((String(40), "not string(40)"),)
