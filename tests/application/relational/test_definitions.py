"""What stands at a name, as the schema core knows it."""

from __future__ import annotations

from dataclasses import replace

from dpone_provider.application.relational.definitions import as_observed, countable, unusable
from dpone_provider.domain.schema.tables import Absent, Occupied, Present, RelationKind, Unreadable
from tests.application.relational.standing import PLACE, engine_column, standing


def test_a_plain_table_is_present_with_its_columns_and_keys() -> None:
    observed = standing(comment="of the day").observed(has_rows=False)
    assert isinstance(observed, Present)
    assert not observed.has_rows
    assert observed.table.column_names == ("number", "name")
    assert (observed.table.primary_key, observed.table.primary_key_name) == (("number",), "flights_pkey")
    assert observed.table.comment == "of the day"


def test_anything_else_occupies_the_name() -> None:
    assert standing(kind=RelationKind.VIEW).observed() == Occupied(PLACE, RelationKind.VIEW)


def test_a_type_outside_of_the_set_makes_the_table_unreadable_by_name() -> None:
    odd = engine_column("shape", engine_type="geometry", instead="a point")
    observed = standing(engine_column(), replace(odd, logical=None)).observed()
    assert isinstance(observed, Unreadable)
    assert "column 'shape'" in observed.failure.problem.subject
    assert observed.failure.problem.allowed == "a point; docs/reference-types lists them"


def test_a_table_without_columns_is_unreadable() -> None:
    observed = standing(columns=()).observed()
    assert isinstance(observed, Unreadable)


def test_rows_are_looked_for_where_the_answer_would_be_true_only() -> None:
    plain = standing()
    hidden = [standing(row_security=True), standing(readable=False), standing(kind=RelationKind.VIEW)]
    assert countable([Absent(PLACE), *hidden, plain]) == [plain]


def test_a_table_that_may_not_be_looked_into_may_hold_rows() -> None:
    empty, unknown, nothing = as_observed([standing(), standing(identity="18"), Absent(PLACE)], {"17": False})
    assert isinstance(empty, Present)
    assert not empty.has_rows
    assert isinstance(unknown, Present)
    assert unknown.has_rows
    assert nothing == Absent(PLACE)


def test_what_cannot_be_told_names_both_sides() -> None:
    problem = unusable(PLACE, "no such schema", "an existing one").problem
    assert (problem.reason, problem.found, problem.allowed) == (
        "relation_unreadable",
        "no such schema",
        "an existing one",
    )
