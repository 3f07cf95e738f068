"""One refresh of a ClickHouse target, on the lab's engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.application.ports.tables import NotPublished, Published, StagedContent, TargetBinding
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from dpone_provider.domain.publication import Verb
from dpone_provider.domain.schema.tables import Storage
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, column, job_for, rows, table

pytestmark = pytest.mark.lab


def ids(enrolled: Enrolled, name: str) -> list[int]:
    return [row[0] for row in enrolled.ask(f"SELECT id FROM mart.{name} ORDER BY id")]


def test_a_first_load_renames_the_staged_table_and_keeps_its_uuid(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    refresh = Refresh.of(enrolled, declared)
    shown = refresh.whole([rows(1, 2), rows(3)])
    assert isinstance(shown, Published)
    assert refresh.binding is not None
    assert refresh.binding.verb is Verb.RENAME
    assert shown.rows == 3
    assert ids(enrolled, declared.name) == [1, 2, 3]
    ((uuid,),) = enrolled.ask(f"SELECT toString(uuid) FROM system.tables WHERE name = '{declared.name}'")
    assert uuid == refresh.binding.staged_identity


def test_a_refresh_exchanges_and_deleted_rows_disappear(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([rows(1, 2, 3)])
    refresh = Refresh.of(enrolled, declared)
    assert isinstance(refresh.whole([rows(2, 4)]), Published)
    assert refresh.binding is not None
    assert refresh.binding.verb is Verb.EXCHANGE
    assert ids(enrolled, declared.name) == [2, 4]
    assert enrolled.ask(f"SELECT count() FROM system.tables WHERE name = '{refresh.job.staged.name}'") == [(0,)]


def test_an_empty_source_empties_the_target(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([rows(1, 2, 3)])
    shown = Refresh.of(enrolled, declared).whole([])
    assert isinstance(shown, Published)
    assert shown.rows == 0
    assert ids(enrolled, declared.name) == []


def test_the_declared_definition_is_what_stands_there(enrolled: Enrolled) -> None:
    columns = (
        column("id", "int64", comment="the key's \\ comment"),
        column("at", "timestamp(6)", nullable=True),
        column("odd `name`", "decimal(10,2)"),
    )
    declared = replace(
        table(enrolled.name("odd-ñame"), *columns, order_by=("id", "intDiv(id,10)"), partition_by="id%2"),
        comment="it's a table",
    )
    assert isinstance(Refresh.of(enrolled, declared).whole([]), Published)
    # The same declaration again is in sync with it: what was declared, created and observed compares equal.
    assert isinstance(Refresh.of(enrolled, declared).whole([]), Published)
    ((sorting, partition, comment, engine),) = enrolled.ask(
        f"SELECT sorting_key, partition_key, comment, engine_full FROM system.tables WHERE name = '{declared.name}'"
    )
    assert (sorting, partition, comment) == ("id, intDiv(id, 10)", "id % 2", "it's a table")
    assert "fsync_after_insert = 1" in engine
    assert "fsync_part_directory = 1" in engine


def test_a_staged_table_is_created_once(enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    binding = refresh.begin()
    again = refresh.publisher.create_staged(refresh.job, binding)
    assert isinstance(again, Failed)
    assert "code 57" in again.problem.found


def test_what_earlier_attempts_left_is_seen_by_binding_and_dropped_by_creating(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    left = Refresh.of(enrolled, declared)
    left.begin()
    left.load([rows(1)])
    there = f"SELECT count() FROM system.tables WHERE name = '{left.job.staged.name}'"
    job = job_for(declared)
    bound = left.publisher.bind(job)
    assert isinstance(bound, TargetBinding)
    assert bound.left_over == (left.job.staged.name,)
    assert enrolled.ask(there) == [(1,)]
    assert left.publisher.create_staged(job, bound) is None
    assert enrolled.ask(there) == [(0,)]


def test_binding_again_gives_the_same(enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    assert refresh.publisher.bind(refresh.job) == refresh.begin()


def test_verification_finds_a_row_that_was_added(enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    claimed = refresh.load([rows(1, 2)])
    enrolled.run(f"INSERT INTO dpone_stage.{refresh.job.staged.name} VALUES (3, 'late')")
    found = refresh.publisher.verify(refresh.job, claimed, enrolled.deadline())
    assert isinstance(found, Failed)
    assert found.problem.reason == "staged_content_differs"


def test_verification_finds_two_values_that_were_swapped(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    honest = Refresh.of(enrolled, declared)
    honest.begin()
    claimed = honest.load([rows(1, 2)])
    swapped = Refresh.of(enrolled, table(enrolled.name()))
    swapped.begin()
    enrolled.run(f"INSERT INTO dpone_stage.{swapped.job.staged.name} VALUES (1, 'n2'), (2, 'n1')")
    found = swapped.publisher.verify(swapped.job, claimed, enrolled.deadline())
    assert isinstance(found, Failed)
    assert claimed.content_digest in found.problem.allowed


def test_verification_is_bounded_by_its_deadline(enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    claimed = refresh.load([rows(1)])
    found = refresh.publisher.verify(refresh.job, claimed, enrolled.deadline(0.0))
    assert isinstance(found, Failed)
    assert "when the time was up" in found.problem.found


def test_verification_of_a_dropped_table_fails(enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    claimed = refresh.load([rows(1)])
    assert refresh.publisher.discard_staged(refresh.job) is None
    found = refresh.publisher.verify(refresh.job, claimed, enrolled.deadline())
    assert isinstance(found, Failed)
    assert found.problem.reason == "staged_content_unreadable"


def test_a_first_load_that_finds_a_table_meanwhile_changes_nothing(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    refresh = Refresh.of(enrolled, declared)
    refresh.begin()
    publication = refresh.verified(refresh.load([rows(1)]))
    enrolled.run(f"CREATE TABLE mart.{declared.name} (id Int64, name String) ENGINE = MergeTree ORDER BY id")
    failed = refresh.publisher.dispatch(refresh.job, publication, enrolled.deadline())
    assert isinstance(failed, Failed)
    assert failed.problem.reason == "binding_moved"
    assert isinstance(refresh.settle(), NotPublished)


def test_a_target_that_became_another_table_is_not_exchanged(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([rows(1)])
    refresh = Refresh.of(enrolled, declared)
    refresh.begin()
    publication = refresh.verified(refresh.load([rows(2)]))
    enrolled.run(f"DROP TABLE mart.{declared.name} SYNC")
    enrolled.run(f"CREATE VIEW mart.{declared.name} AS SELECT 1 AS id, 'x' AS name")
    failed = refresh.publisher.dispatch(refresh.job, publication, enrolled.deadline())
    assert isinstance(failed, Failed)
    assert isinstance(refresh.settle(), NotPublished)
    assert enrolled.ask(f"SELECT engine FROM system.tables WHERE name = '{declared.name}'") == [("View",)]


def test_a_passed_deadline_dispatches_nothing(enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    publication = refresh.verified(refresh.load([rows(1)]))
    failed = refresh.publisher.dispatch(refresh.job, publication, enrolled.deadline(0.0))
    assert isinstance(failed, Failed)
    assert failed.problem.reason == "deadline_passed"
    assert isinstance(refresh.settle(), NotPublished)


def test_looking_before_the_staged_name_is_gone_proves_nothing(enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    publication = refresh.verified(refresh.load([rows(1)]))
    assert isinstance(refresh.publisher.observe(refresh.job, publication), Unknown)


def test_a_late_exchange_after_settling_fails(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([rows(1)])
    refresh = Refresh.of(enrolled, declared)
    refresh.begin()
    publication = refresh.verified(refresh.load([rows(2)]))
    assert isinstance(refresh.settle(), NotPublished)
    late = refresh.publisher.dispatch(refresh.job, publication, enrolled.deadline())
    assert isinstance(late, Failed)
    assert ids(enrolled, declared.name) == [1]


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("CREATE VIEW mart.{name} AS SELECT 1 AS id", "engine View"),
        ("CREATE TABLE mart.{name} (id Int64) ENGINE = MergeTree ORDER BY id TTL toDate(id) + 1", "TTL"),
        (
            "CREATE TABLE mart.{name} (id Int64, PROJECTION p (SELECT count())) ENGINE = MergeTree ORDER BY id",
            "projection",
        ),
        ("CREATE TABLE mart.{name} (id Int64 DEFAULT 7) ENGINE = MergeTree ORDER BY id", "default"),
        ("CREATE TABLE mart.{name} (id Int64 CODEC(ZSTD)) ENGINE = MergeTree ORDER BY id", "codec"),
        ("CREATE TABLE mart.{name} (id Int64, INDEX i id TYPE minmax) ENGINE = MergeTree ORDER BY id", "index"),
    ],
)
def test_what_a_refresh_would_lose_is_refused(enrolled: Enrolled, made: str, found: str) -> None:
    name = enrolled.name()
    enrolled.run(made.format(name=name))
    refused = Refresh.of(enrolled, table(name, column("id", "int64"))).publisher.bind(
        job_for(table(name, column("id", "int64")))
    )
    assert isinstance(refused, Refused)
    assert found in refused.problem.found


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((column("id", "int32"), column("name", "string", nullable=True)), "narrowing"),
        ((column("id", "int64"),), "drop_needs_consent"),
        ((column("id", "int64"), column("name", "string")), "nullability_tightened"),
    ],
)
def test_a_definition_that_the_rules_forbid_is_refused(
    enrolled: Enrolled, columns: tuple[object, ...], reason: str
) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([])
    changed = table(declared.name, *columns)  # type: ignore[arg-type]
    refused = Refresh.of(enrolled, changed).publisher.bind(job_for(changed))
    assert isinstance(refused, Refused)
    assert refused.problem.reason == reason


def test_a_new_column_and_a_wider_type_are_taken_over(enrolled: Enrolled) -> None:
    declared = table(enrolled.name(), column("id", "int32"))
    Refresh.of(enrolled, declared).whole([])
    wider = table(declared.name, column("id", "int64"), column("name", "string", nullable=True))
    assert isinstance(Refresh.of(enrolled, wider).whole([rows(1)]), Published)
    assert ids(enrolled, declared.name) == [1]


@pytest.mark.parametrize(
    "storage",
    [
        Storage(engine="ReplacingMergeTree", order_by=("id",)),
        Storage(engine="MergeTree", order_by=("id) ENGINE = Memory --",)),
        Storage(engine="MergeTree", order_by=("id, name",)),
        Storage(engine="MergeTree", order_by=("id",), partition_by="((id"),
    ],
)
def test_a_storage_that_is_none_is_refused(enrolled: Enrolled, storage: Storage) -> None:
    declared = replace(table(enrolled.name()), storage=storage)
    refused = Refresh.of(enrolled, declared).publisher.bind(job_for(declared))
    assert isinstance(refused, Refused)


def test_binary_is_refused_by_name(enrolled: Enrolled) -> None:
    declared = table(enrolled.name(), column("id", "int64"), column("raw", "binary"))
    refused = Refresh.of(enrolled, declared).publisher.bind(job_for(declared))
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "unsupported_type"
    assert "'raw'" in refused.problem.subject


def test_a_staged_table_outside_the_staging_database_is_refused(enrolled: Enrolled) -> None:
    job = job_for(table(enrolled.name()))
    refused = Refresh.of(enrolled, job.declared).publisher.bind(replace(job, staged=Relation("mart", job.staged.name)))
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "wrong_staging_database"


def test_discarding_what_never_was_is_nothing(enrolled: Enrolled) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    assert refresh.publisher.discard_staged(refresh.job) is None


def test_an_unreachable_server_is_unknown(enrolled: Enrolled, unused_port: int) -> None:
    away = replace(enrolled.controller, endpoint=replace(enrolled.controller.endpoint, port=unused_port))
    refresh = Refresh.of(enrolled, table(enrolled.name()), server=away)
    publisher = refresh.publisher
    assert isinstance(publisher.bind(refresh.job), Unknown)
    assert isinstance(publisher.discard_staged(refresh.job), Unknown)
    claimed = StagedContent(rows=0, bytes=0, content_digest="xxh3sum128:" + "0" * 32)
    assert isinstance(publisher.verify(refresh.job, claimed, enrolled.deadline()), Failed)
