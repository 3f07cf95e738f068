"""Transfers from end to end with the given SQL Server as warehouse and authority: what is published, and what stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from dpone_provider.application.promotion import PromotionReport
from dpone_provider.domain.outcomes import Failed
from tests.acceptance.commands import dpone
from tests.acceptance.given_world import GivenPlace, GivenWorld, given_world
from tests.acceptance.test_transfers import failed
from tests.acceptance.wire import Message, Wire
from tests.acceptance.world import succeeded

pytestmark = [pytest.mark.mssql, pytest.mark.timeout(900)]
GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")


@pytest.fixture(scope="module")
def the_given_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GivenWorld]:
    """Hold the lab for this module."""
    with given_world(tmp_path_factory.mktemp("given-world")) as made:
        yield made


@pytest.fixture
def place(the_given_world: GivenWorld, tmp_path: Path) -> Iterator[GivenPlace]:
    """Give an environment of the test's own; at its end the invariants hold and every gate is CLOSED."""
    made = GivenPlace(the_given_world, tmp_path)
    yield made
    assert the_given_world.violations() == []
    assert set(made.gates()) <= {"CLOSED"}


def in_shop(place: GivenPlace) -> list[tuple[object, ...]]:
    """Return the source's rows."""
    return place.in_shop("SELECT * FROM {orders} ORDER BY 1")


WITHOUT_A_KEY = "id int, word text, n numeric(12, 2)"
"""A staging table has no keys, and SWITCH wants both sides alike."""


@pytest.mark.parametrize(
    ("way", "columns"), [("replace", WITHOUT_A_KEY.replace("id int", "id int PRIMARY KEY")), ("switch", WITHOUT_A_KEY)]
)
def test_each_refresh_is_the_source_as_it_is_and_has_a_receipt(place: GivenPlace, way: str, columns: str) -> None:
    """PostgreSQL to SQL Server: first load, changed, new and deleted rows, an empty source."""
    place.source("orders", rows=3, columns=columns)
    transfer = place.transfer("orders", way=way)
    promoted = place.promote(place.release(transfer))
    assert succeeded(place.run(promoted, "orders")).metrics["rows"] == 3
    assert place.target("orders") == in_shop(place)

    place.in_shop("DELETE FROM {orders} WHERE id = 2")
    place.in_shop("UPDATE {orders} SET word = 'other' WHERE id = 3")
    place.fill("orders", rows=2, first=4)
    succeeded(place.run(promoted, "orders"))
    assert place.target("orders") == in_shop(place)
    assert dpone(place, "reconcile").code == 0

    place.in_shop("DELETE FROM {orders}")
    assert succeeded(place.run(promoted, "orders")).metrics["rows"] == 0
    assert place.target("orders") == []
    assert dpone(place, "reconcile").code == 0
    assert [rows for _, rows in place.receipts()] == [3, 4, 0]
    assert [attempt for attempt, _ in place.receipts()] == [attempt for attempt, _ in place.attempts()]
    assert {state for _, state in place.attempts()} == {"SUCCEEDED"}


def test_a_pass_of_the_bounds_publishes_nothing_and_leaves_no_receipt(place: GivenPlace) -> None:
    place.source("orders")
    bounds = {"max_rows": 5, "max_bytes": 10_000, "batch_rows": 2}
    promoted = place.promote(place.release(place.transfer("orders", bounds=bounds)))
    succeeded(place.run(promoted, "orders"))
    before = place.target("orders")
    place.fill("orders", rows=1, first=6)
    problem = failed(place.run(promoted, "orders"))
    assert isinstance(problem, Failed)
    assert problem.problem.reason == "bounds_passed"
    assert place.target("orders") == before
    assert [rows for _, rows in place.receipts()] == [5]
    assert [state for _, state in place.attempts()] == ["SUCCEEDED", "FAILED"]


def test_a_reader_that_holds_the_target_keeps_the_old_rows(place: GivenPlace) -> None:
    """The publication waits for it as long as it may, and leaves nothing behind."""
    place.source("orders")
    promoted = place.promote(place.release(place.transfer("orders", timeout_seconds=20)))
    succeeded(place.run(promoted, "orders"))
    before = place.target("orders")
    place.fill("orders", rows=1, first=6)
    world = place.there
    with world.given.at(world.names.target_database).session() as own:
        own.run(f"BEGIN TRANSACTION; SELECT COUNT(*) FROM stage.[{place.table('orders')}] WITH (TABLOCK, HOLDLOCK);")
        assert isinstance(failed(place.run(promoted, "orders")), Failed)
        own.run("ROLLBACK TRANSACTION;")
    assert place.target("orders") == before
    succeeded(place.run(promoted, "orders"))
    assert place.target("orders") == in_shop(place)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table of the warehouse that was loaded with five rows; the source has a sixth."""

    place: GivenPlace
    promoted: PromotionReport
    before: list[tuple[object, ...]]

    @property
    def target(self) -> str:
        """Its name in the warehouse, quoted."""
        return f"[stage].[{self.place.table('orders')}]"


def loaded(place: GivenPlace) -> Loaded:
    """Load a table once, and give the source another row."""
    place.source("orders")
    promoted = place.promote(place.release(place.transfer("orders")))
    succeeded(place.run(promoted, "orders"))
    before = place.target("orders")
    place.fill("orders", rows=1, first=6)
    return Loaded(place, promoted, before)


def test_a_worker_that_is_killed_while_it_publishes_leaves_the_old_rows(place: GivenPlace) -> None:
    """While its transaction waits for the target; the next run finds nothing in its way."""
    table = loaded(place)
    process = place.process(table.promoted, "orders")
    with place.holding(table.target) as own:
        process.begin()
        place.wait_for_a_publisher(own)
        worker = process.worker()
        assert worker is not None
        os.kill(worker, signal.SIGKILL)
        problem = failed(process.result())
    assert isinstance(problem, Failed)
    assert problem.problem.reason == "worker_died"
    assert place.target("orders") == table.before
    assert [rows for _, rows in place.receipts()] == [5]
    succeeded(place.run(table.promoted, "orders"))
    assert place.target("orders") == in_shop(place)


def test_a_commit_whose_answer_nobody_heard_is_told_by_its_receipt(place: GivenPlace) -> None:
    """COMMIT is done when worker and controller die of its answer; ``dpone recover --attempt`` reads the receipt."""
    at = place.there.given.at(place.there.names.target_database).endpoint
    with Wire(at.port, at.host) as wire:
        place.behind(wire)
        table = loaded(place)
        process = place.process(table.promoted, "orders")

        def dies_of_the_next_answer(message: Message) -> bool:
            wire.after_bytes(0, process.kill)
            return False

        with place.holding(table.target) as first:
            process.begin()
            place.wait_for_a_publisher(first)
            with place.holding("dpone_receipt.receipt") as second:
                first.run("ROLLBACK TRANSACTION;")
                place.wait_for_a_publisher(second)
                # The receipt is written once this lock is gone, and the next thing that is asked is COMMIT.
                moment = wire.at_message(1, dies_of_the_next_answer)
        assert process.result() is None
        assert moment.came()
        wire.up()
    (_, (attempt_id, state)) = place.attempts()
    assert state == "RUNNING"
    said = dpone(place, "recover", "--attempt", attempt_id)
    assert said.code == 0, said.everything
    assert [state for _, state in place.attempts()] == ["SUCCEEDED", "SUCCEEDED"]
    assert place.target("orders") == in_shop(place)
    assert place.receipts()[-1] == (attempt_id, 6)


def odd_table(place: GivenPlace) -> None:
    """Make a table of values that drivers get wrong, in a managed schema."""
    place.in_warehouse(
        "CREATE TABLE stage.{odd} (id bigint NOT NULL PRIMARY KEY, exact decimal(38,10) NULL,"
        " guid uniqueidentifier NULL, word nvarchar(100) NULL, at datetime2(6) NULL);"
    )
    for row in (
        f"1, 9999999999999999999999999999.9999999999, N'{GUID}', N'\U0001f600 ', '9999-12-31T23:59:59.999999'",
        "2, -0.0000000001, NULL, NULL, NULL",
        "3, NULL, NULL, N'', NULL",
    ):
        place.in_warehouse(f"INSERT INTO stage.{place.table('odd')} VALUES ({row});")


def test_decimals_guids_and_null_go_through_sql_server_to_clickhouse_exactly(place: GivenPlace) -> None:
    odd_table(place)
    promoted = place.promote(place.release(place.from_warehouse("odd")))
    assert succeeded(place.run(promoted, "odd")).metrics["rows"] == 3
    columns = "id, toString(exact), toString(guid), word"
    assert [line.split("\t") for line in place.mart("odd", columns)] == [
        ["1", "9999999999999999999999999999.9999999999", str(GUID), "\U0001f600 "],
        ["2", "-0.0000000001", "\\N", "\\N"],
        ["3", "\\N", "\\N", ""],
    ]
    assert dpone(place, "reconcile").code == 0


def test_rows_that_disappear_and_an_empty_source_in_sql_server(place: GivenPlace) -> None:
    odd_table(place)
    promoted = place.promote(place.release(place.from_warehouse("odd")))
    succeeded(place.run(promoted, "odd"))
    place.in_warehouse("DELETE FROM stage.{odd} WHERE id = 2;")
    place.in_warehouse("UPDATE stage.{odd} SET exact = 0.5 WHERE id = 3;")
    succeeded(place.run(promoted, "odd"))
    assert place.mart("odd", "id, toString(exact)") == ["1\t9999999999999999999999999999.9999999999", "3\t0.5"]
    place.in_warehouse("DELETE FROM stage.{odd};")
    assert succeeded(place.run(promoted, "odd")).metrics["rows"] == 0
    assert place.mart("odd", "id") == []


def test_the_warehouses_rows_are_exactly_the_shops(place: GivenPlace) -> None:
    """PostgreSQL to SQL Server: decimals of any scale, text of any characters, NULL, dates and times."""
    columns = (
        "id bigint PRIMARY KEY, exact numeric(38,10), word text, raw bytea, day date, at timestamp(6),"
        " zoned timestamptz(6), guid uuid, yes boolean"
    )
    place.source("orders", rows=0, columns=columns)
    place.in_shop(
        "INSERT INTO {orders} VALUES (1, 9999999999999999999999999999.9999999999, E'\\U0001F600 ', '\\x00ff',"
        " '0001-01-01', '9999-12-31 23:59:59.999999', '2026-01-01 00:00:00+05:30',"
        " '00112233-4455-6677-8899-aabbccddeeff', true), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),"
        " (3, -0.0000000001, '', '', '9999-12-31', '0001-01-01', '0001-01-01 00:00:00+00', NULL, false)"
    )
    promoted = place.promote(place.release(place.transfer("orders")))
    assert succeeded(place.run(promoted, "orders")).metrics["rows"] == 3
    found = place.in_warehouse(
        "SELECT id, exact, word, CONVERT(varchar(20), raw, 2), CONVERT(varchar(10), day, 23),"
        " CONVERT(varchar(30), at, 126), CONVERT(varchar(40), zoned, 127), CONVERT(varchar(36), guid), yes"
        " FROM stage.{orders} ORDER BY id;"
    )
    assert found == [
        (
            *(1, Decimal("9999999999999999999999999999.9999999999"), "\U0001f600 ", "00FF", "0001-01-01"),
            *("9999-12-31T23:59:59.999999", "2025-12-31T18:30:00.000000Z", str(GUID).upper(), True),
        ),
        (2, *(None,) * 8),
        (
            *(3, Decimal("-0.0000000001"), "", "", "9999-12-31", "0001-01-01T00:00:00.000000"),
            *("0001-01-01T00:00:00.000000Z", None, False),
        ),
    ]
    assert dpone(place, "reconcile").code == 0
