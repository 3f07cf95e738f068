"""Definitions as ClickHouse stores them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.adapters.clickhouse.expressions import normalised_table
from dpone_provider.adapters.clickhouse.schema_reader import ClickHouseSchemaReader
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.diff import difference
from dpone_provider.domain.schema.tables import Absent, Occupied, Present, RelationKind, Table, Unreadable
from tests.adapters.clickhouse.conftest import BLIND
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, column, rows, table, with_port

pytestmark = pytest.mark.lab


def reader(enrolled: Enrolled) -> ClickHouseSchemaReader:
    return ClickHouseSchemaReader(enrolled.controller)


def test_what_was_declared_and_created_is_observed_as_equal(enrolled: Enrolled) -> None:
    columns = [
        column("id", "int64", comment="a key"),
        column("a b", "string(10)", nullable=True, comment=""),
        column("price", "decimal(12,2)", comment=""),
        column("at", "timestamp_tz(6)", comment=""),
    ]
    declared = replace(
        table(enrolled.name(), *columns, order_by=("id", "toDate( at )"), partition_by="(id%7)"), comment="c'est ça"
    )
    Refresh.of(enrolled, declared).whole([])
    (found,) = reader(enrolled).tables([declared.relation])
    assert isinstance(found, Present)
    normal = normalised_table(Session(enrolled.controller), declared)
    assert isinstance(normal, Table)
    assert difference(normal, found).in_sync
    assert found.table == normal
    assert not found.has_rows


def test_many_are_read_in_order_with_three_statements(enrolled: Enrolled) -> None:
    filled, view, memory = enrolled.name(), enrolled.name(), enrolled.name()
    Refresh.of(enrolled, table(filled)).whole([rows(1)])
    enrolled.run(f"CREATE VIEW mart.{view} AS SELECT 1 AS id")
    asked = [Relation("mart", name) for name in (memory, view, filled)] + [Relation("nowhere", "t")]
    absent, occupied, present, unreadable = reader(enrolled).tables(asked)
    assert absent == Absent(asked[0])
    assert occupied == Occupied(asked[1], RelationKind.VIEW)
    assert isinstance(present, Present)
    assert present.has_rows
    assert isinstance(unreadable, Unreadable), "a missing database is never an absent table"
    assert "nowhere" in unreadable.failure.problem.found


def test_thousands_are_read_at_once(enrolled: Enrolled) -> None:
    asked = [Relation("mart", f"a_table_that_is_not_there_{number}") for number in range(5000)]
    assert reader(enrolled).tables(asked) == tuple(map(Absent, asked))


def test_a_type_outside_the_set_fails_by_name(enrolled: Enrolled) -> None:
    name = enrolled.name()
    enrolled.run(f"CREATE TABLE mart.{name} (id Int64, tags Array(String)) ENGINE = MergeTree ORDER BY id")
    (found,) = reader(enrolled).tables([Relation("mart", name)])
    assert isinstance(found, Unreadable)
    assert "'tags' of type Array(String)" in found.failure.problem.found


def test_no_key_is_no_key(enrolled: Enrolled) -> None:
    declared = table(enrolled.name(), order_by=())
    Refresh.of(enrolled, declared).whole([rows(2, 1)])
    (found,) = reader(enrolled).tables([declared.relation])
    assert isinstance(found, Present)
    assert found.table.storage == declared.storage


def test_a_primary_key_becomes_the_order(enrolled: Enrolled) -> None:
    declared = replace(table(enrolled.name()), storage=None, primary_key=("id",))
    Refresh.of(enrolled, declared).whole([])
    (found,) = reader(enrolled).tables([declared.relation])
    assert isinstance(found, Present)
    assert found.table.storage is not None
    assert found.table.storage.order_by == ("id",)


def test_a_nullable_key_can_be_created(enrolled: Enrolled) -> None:
    declared = table(enrolled.name(), order_by=("name", "id"))
    Refresh.of(enrolled, declared).whole([rows(2, 1)])
    Refresh.of(enrolled, declared).whole([rows(3)])


def test_an_observer_that_sees_too_little_finds_nothing_absent(enrolled: Enrolled) -> None:
    blind = replace(enrolled.controller, credential=Credential(BLIND.name, BLIND.password))
    (found,) = ClickHouseSchemaReader(blind).tables([Relation("mart", "x")])
    assert isinstance(found, Unreadable)
    assert found.failure.problem.reason == "observer_blind"


def test_a_server_that_does_not_answer_finds_nothing_absent(enrolled: Enrolled, unused_port: int) -> None:
    found = ClickHouseSchemaReader(with_port(enrolled.controller, unused_port)).tables(
        [Relation("mart", "x"), Relation("mart", "y")]
    )
    assert [type(each) for each in found] == [Unreadable, Unreadable]
