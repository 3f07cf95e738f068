"""The reader over both real drivers, on an instance of the tests' own: the port's suite, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from multiprocessing import get_context

import pytest

from dpone_provider.adapters.mssql.reader import MssqlReader
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError, Refused
from tests.adapters.mssql.fake_instance import GUIDS, MANAGED, InstanceProcess, ServedInstance
from tests.adapters.mssql.odbc import needs_odbc, server_at
from tests.conformance.reader_suite import COLUMNS, WIDE, ReaderSuite

pytestmark = needs_odbc
LIFE = {"database_guid": GUIDS["database"].lower(), "database_id": "7", "recovery_fork_guid": GUIDS["fork"].lower()}


@pytest.fixture(scope="module")
def served() -> Iterator[ServedInstance]:
    """Give an instance in a process of its own."""
    with InstanceProcess(ctx=get_context("spawn")) as process:
        yield process.ServedInstance()  # type: ignore[attr-defined]


class Stage:
    """One source database."""

    def __init__(self, served: ServedInstance) -> None:
        self.instance = served
        self.names = count(1)
        self.at = server_at(served.reset())
        self.reader = MssqlReader(self.at, pinned=LIFE, seconds=10)
        self.unreachable = MssqlReader(replace(self.at, endpoint=replace(self.at.endpoint, port=1)), seconds=1)

    def table(self, rows: int) -> Relation:
        relation = Relation(MANAGED, f"t{next(self.names)}")
        filled = [(each, None if each % 3 == 0 else f"n{each}") for each in range(1, rows + 1)]
        self.instance.table(relation, filled)
        return relation

    def change(self, relation: Relation) -> None:
        self.instance.table(relation, [(1001, "x"), (1002, "y")])


@pytest.fixture
def stage(served: ServedInstance) -> Stage:
    """Give a source."""
    return Stage(served)


class TestMssqlReader(ReaderSuite):
    """The port's own suite."""

    @pytest.fixture
    def stage(self, served: ServedInstance) -> Stage:  # type: ignore[override]
        """Give a source."""
        return Stage(served)


def refused(stage: Stage, reader: MssqlReader) -> str:
    """Return the reason for which a table of one row is not read."""
    with pytest.raises(DponeError) as raised, reader.snapshot(stage.table(1), COLUMNS, ("id",), WIDE):
        pass
    assert isinstance(raised.value.failure, Refused)
    return raised.value.failure.problem.reason


def test_count_and_rows_are_read_inside_one_snapshot_transaction(stage: Stage) -> None:
    with stage.reader.snapshot(stage.table(2), COLUMNS, ("id",), WIDE) as snapshot:
        list(snapshot.batches())
    sent = stage.instance.sent()
    began = next(place for place, text in enumerate(sent) if "ISOLATION LEVEL SNAPSHOT; BEGIN" in text)
    assert [place > began for place, text in enumerate(sent) if "COUNT_BIG" in text or " AS [id]" in text] == [
        True,
        True,
    ]


def test_a_database_without_snapshots_is_refused(stage: Stage) -> None:
    stage.instance.put(snapshots=(0, "OFF"))
    assert refused(stage, stage.reader) == "snapshot_not_allowed"


def test_a_table_that_is_kept_in_memory_is_refused_before_it_is_read(stage: Stage) -> None:
    stage.instance.put(memory_optimised=True)
    assert refused(stage, stage.reader) == "source_is_memory_optimised"
    assert not [text for text in stage.instance.sent() if "ISOLATION LEVEL SNAPSHOT" in text]


def test_a_login_that_could_write_is_refused(stage: Stage) -> None:
    stage.instance.put(writable=True)
    assert refused(stage, stage.reader) == "source_login_could_write"


def test_another_life_than_the_pinned_one_is_refused(stage: Stage) -> None:
    stage.instance.put(identity={"fork": "6E1B5F0E-0000-4000-8000-00000000000F"})
    assert refused(stage, stage.reader) == "incarnation_changed"
