"""A stream of batches against the declared columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dpone_provider.columnar.exact_stream import exact_stream, require_exact, sliced
from dpone_provider.columnar.exactness import RowContract
from dpone_provider.columnar.offence import asked_row_text
from dpone_provider.columnar.target_limits import POSTGRES
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Refused
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import Integer

CONTRACT = RowContract(
    relation=Relation("stage", "t"), columns=(Column(name="n", type=Integer(16), nullable=False),), limits=POSTGRES
)


def batch(*numbers: int) -> pa.RecordBatch:
    """Return rows of one column, wide enough for a value that does not fit."""
    return pa.record_batch([pa.array(numbers, pa.int64())], names=["n"])


def test_values_come_in_the_declared_type() -> None:
    (exact,) = exact_stream([batch(1, 2)], CONTRACT)
    assert exact.column(0).to_pylist() == [1, 2]
    assert exact.schema.field(0).type == pa.int16()


def test_the_first_value_that_does_not_fit_ends_it_and_is_named_by_its_place_in_the_stream() -> None:
    stream = exact_stream([batch(1, 2), batch(3, 70_000), batch(4)], CONTRACT)
    assert next(stream).num_rows == 2
    with pytest.raises(DponeError) as refused:
        next(stream)
    assert isinstance(refused.value.failure, Refused)
    assert "row 3" in refused.value.failure.problem.subject


def test_one_batch_is_refused_alike() -> None:
    assert require_exact(batch(1), CONTRACT).num_rows == 1
    with pytest.raises(DponeError, match="row 10"):
        require_exact(batch(70_000), CONTRACT, 10)


def test_slices_hold_the_same_rows_in_the_same_order() -> None:
    slices = list(sliced([batch(1, 2, 3), batch(), batch(4)], 2))
    assert [one.column(0).to_pylist() for one in slices] == [[1, 2], [3], [4]]


def test_a_row_that_a_server_was_asked_for_is_named_by_its_key() -> None:
    assert asked_row_text(["a", "b"], [1, "x"]) == "key (a=1, b=x)"
    assert asked_row_text([], []) == "a row of a table without a declared key"
