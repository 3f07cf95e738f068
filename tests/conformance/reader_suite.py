"""What every `TableReader` keeps. An engine subclasses `ReaderSuite` and gives the fixture ``stage``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa
import pytest

from dpone_provider.application.ports.tables import Bounds, TableReader
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import Integer, String

COLUMNS = (
    Column(name="id", type=Integer(64), nullable=False),
    Column(name="name", type=String(), nullable=True),
)
WIDE = Bounds(max_rows=1_000_000, max_bytes=1 << 30, batch_rows=1000)


class ReaderStage(Protocol):
    """One database with a reader through a read-only login."""

    reader: TableReader
    unreachable: TableReader
    """The same through an endpoint at which nobody listens."""

    def table(self, rows: int) -> Relation:
        """Return a new table with ``COLUMNS`` and ids from 1 to ``rows``; names are ``n<id>``, NULL for every third."""

    def change(self, relation: Relation) -> None:
        """Delete one row of a table and add two, committed."""


class ReaderSuite:
    """The port's contract."""

    @pytest.fixture
    def stage(self) -> ReaderStage:
        """The engine's own."""
        raise NotImplementedError

    def read(
        self, stage: ReaderStage, relation: Relation, bounds: Bounds = WIDE, columns: Sequence[Column] = COLUMNS
    ) -> tuple[int, list[pa.RecordBatch]]:
        """Return the snapshot's own count, and its batches."""
        with stage.reader.snapshot(relation, columns, ("id",), bounds) as snapshot:
            return snapshot.rows, list(snapshot.batches())

    def test_every_row_arrives_once_in_canonical_types(self, stage: ReaderStage) -> None:
        counted, batches = self.read(stage, stage.table(10))
        assert counted == 10
        assert all(batch.schema.equals(arrow_schema(COLUMNS)) for batch in batches)
        rows = sorted((row["id"], row["name"]) for batch in batches for row in batch.to_pylist())
        assert rows == [(each, None if each % 3 == 0 else f"n{each}") for each in range(1, 11)]

    def test_no_batch_is_larger_than_asked(self, stage: ReaderStage) -> None:
        _, batches = self.read(stage, stage.table(2500), replace(WIDE, batch_rows=700))
        assert max(len(batch) for batch in batches) <= 700
        assert sum(len(batch) for batch in batches) == 2500

    def test_an_empty_table_is_counted_as_empty(self, stage: ReaderStage) -> None:
        counted, batches = self.read(stage, stage.table(0))
        assert counted == 0
        assert sum(len(batch) for batch in batches) == 0

    def test_some_columns_in_another_order(self, stage: ReaderStage) -> None:
        _, batches = self.read(stage, stage.table(2), columns=tuple(reversed(COLUMNS)))
        assert batches[0].schema.names == ["name", "id"]
        _, batches = self.read(stage, stage.table(2), columns=COLUMNS[:1])
        assert batches[0].schema.names == ["id"]

    def test_more_rows_than_allowed_fail(self, stage: ReaderStage) -> None:
        with pytest.raises(DponeError) as raised:
            self.read(stage, stage.table(20), replace(WIDE, max_rows=19))
        assert isinstance(raised.value.failure, Failed)

    def test_more_bytes_than_allowed_fail(self, stage: ReaderStage) -> None:
        with pytest.raises(DponeError) as raised:
            self.read(stage, stage.table(2000), replace(WIDE, max_bytes=1000))
        assert isinstance(raised.value.failure, Failed)

    def test_a_missing_table_or_column_and_another_type_are_refused(self, stage: ReaderStage) -> None:
        there = stage.table(1)
        missing = Column(name="missing", type=Integer(64), nullable=True)
        other = replace(COLUMNS[1], type=Integer(64))
        for relation, columns in (
            (Relation(there.schema, "no_such_table"), COLUMNS),
            (there, (*COLUMNS, missing)),
            (there, (COLUMNS[0], other)),
        ):
            with pytest.raises(DponeError) as raised:
                self.read(stage, relation, columns=columns)
            assert isinstance(raised.value.failure, Refused)

    def test_a_reader_that_stops_early_leaves_nothing_open(self, stage: ReaderStage) -> None:
        relation = stage.table(3000)
        with stage.reader.snapshot(relation, COLUMNS, ("id",), WIDE) as snapshot:
            assert len(next(iter(snapshot.batches()))) <= 1000
        counted, _ = self.read(stage, relation)
        assert counted == 3000

    def test_a_server_that_does_not_answer_fails(self, stage: ReaderStage) -> None:
        with pytest.raises(DponeError), stage.unreachable.snapshot(Relation("a", "b"), COLUMNS, ("id",), WIDE):
            pass
