"""What reading a table requires of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dpone_provider.application.ports.tables import Bounds
from dpone_provider.application.relational.definitions import EngineColumn, Found
from dpone_provider.application.relational.source import (
    bounded,
    broken,
    fitting_columns,
    holds_no_more,
    require_rows,
    require_same,
    standing_source,
)
from dpone_provider.domain.outcomes import DponeError, Failed, Refused, refuse
from dpone_provider.domain.schema.tables import Absent, Column, RelationKind, Unreadable
from dpone_provider.domain.schema.types import Integer, String
from tests.application.relational.standing import DECLARED, PLACE, engine_column, standing
from tests.application.relational.test_answers import Said

BOUNDS = Bounds(max_rows=3, max_bytes=100, batch_rows=2)


@pytest.mark.parametrize(
    "kind", [None, RelationKind.VIEW, RelationKind.MATERIALIZED_VIEW, RelationKind.PARTITIONED_TABLE]
)
def test_tables_and_what_reads_like_one_are_sources(kind: RelationKind | None) -> None:
    assert standing_source(standing(kind=kind)).kind is kind


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (standing(readable=False), "a table that this login may not read"),
        (standing(kind=RelationKind.FOREIGN_TABLE), "another kind of object"),
        (standing(kind=RelationKind.OTHER, readable=False), "another kind of object"),
        (Absent(PLACE), "nothing of that name"),
        (Unreadable(PLACE, refuse("r", "s", found="no such schema", allowed="a", next_command="n")), "no such schema"),
    ],
)
def test_anything_else_is_none(found: Found, words: str) -> None:
    with pytest.raises(DponeError) as refused:
        standing_source(found)
    assert isinstance(refused.value.failure, Refused)
    assert refused.value.failure.problem.found == words


def test_a_definition_that_changed_meanwhile_is_a_failure_that_a_retry_may_lift() -> None:
    require_same(standing(), standing())
    with pytest.raises(DponeError) as failed:
        require_same(standing(comment="new"), standing())
    assert isinstance(failed.value.failure, Failed)


def test_declared_columns_are_found_by_name_in_any_order() -> None:
    there = standing(engine_column("x"), engine_column("name", String(20)), engine_column())
    pairs = fitting_columns(DECLARED.columns, there, holds_no_more)
    assert [(column.name, one.name) for column, one in pairs] == [("number", "number"), ("name", "name")]


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (engine_column("other"), "no such column"),
        (engine_column(nullable=True), "int32, nullable"),
        (engine_column(logical=Integer(64)), "int64"),
    ],
)
def test_a_column_that_may_hold_more_than_declared_is_refused(there: EngineColumn, words: str) -> None:
    with pytest.raises(DponeError) as refused:
        list(fitting_columns(DECLARED.columns[:1], standing(there), holds_no_more))
    assert refused.value.failure.problem.found == words
    assert refused.value.failure.problem.allowed == "int32, NOT NULL"


def test_a_column_that_holds_less_fits() -> None:
    declared = Column(name="number", type=Integer(64), nullable=True)
    assert holds_no_more(declared, engine_column())


def test_more_rows_than_declared_are_a_failure() -> None:
    require_rows(PLACE, 3, BOUNDS)
    with pytest.raises(DponeError):
        require_rows(PLACE, 4, BOUNDS)


def test_bytes_are_counted_over_the_whole_stream() -> None:
    batch = pa.record_batch([pa.array([1, 2], pa.int32())], names=["number"])
    assert batch.nbytes < 100 < 20 * batch.nbytes
    passed: list[pa.RecordBatch] = []
    with pytest.raises(DponeError) as failed:
        passed.extend(bounded([batch] * 20, PLACE, BOUNDS))
    assert failed.value.failure.problem.reason == "bounds_passed"
    assert list(bounded([batch], PLACE, BOUNDS)) == [batch]


def test_a_login_that_is_refused_is_told_from_a_source_that_broke() -> None:
    assert broken(PLACE, Said(reason="login_refused")).problem.reason == "login_refused"
    assert broken(PLACE, Said(reason="fence_gate")).problem.reason == "source_broke"
    assert broken(PLACE, Said(answered=False)).problem.reason == "source_broke"
