"""What the worker sends: exact values in bounded groups, each INSERT once, and nothing else than its own table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from dpone_provider.adapters.clickhouse import staging
from dpone_provider.adapters.clickhouse.errors import ACCESS_DENIED, ServerError
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.adapters.clickhouse.staging import INSERT_SETTINGS, ClickHouseStagingWriter, insert_id
from dpone_provider.application.ports.tables import Published, StagedContent
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.domain.secret import Secret
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, column, rows, table, with_port
from tests.adapters.clickhouse.fault_proxy import FaultProxy

pytestmark = pytest.mark.lab


def naive(*parts: int) -> datetime:
    """Return a wall clock's reading, without a zone."""
    return datetime(*parts)  # type: ignore[arg-type,misc]  # noqa: DTZ001


def worker_of(enrolled: Enrolled) -> ClickHouseServer:
    return replace(enrolled.controller, credential=enrolled.login())


INEXACT = [
    ("decimal(10,2)", pa.array([Decimal("123456789012.34")])),
    ("decimal(38,10)", pa.array([Decimal("1.00000000005")], pa.decimal128(38, 11))),
    ("decimal(38,10)", pa.array([Decimal(10) ** 28], pa.decimal128(38, 0))),
    ("decimal(38,10)", pa.array(["NaN"])),
    ("int32", pa.array([2**31], pa.int64())),
    ("int32", pa.array([None], pa.int32())),
    ("string", pa.array([None], pa.string())),
    ("date", pa.array([date(1899, 12, 31)])),
    ("date", pa.array([date(2300, 1, 1)])),
    ("timestamp(6)", pa.array([naive(2300, 1, 1)], pa.timestamp("us"))),
    ("timestamp(3)", pa.array([naive(2013, 1, 1, 0, 0, 0, 1)], pa.timestamp("us"))),
    ("timestamp(7)", pa.array([1], pa.timestamp("ns"))),
    ("float32", pa.array([0.1], pa.float64())),
    ("string(3)", pa.array(["abcd"])),
]


@pytest.mark.parametrize(("kind", "values"), INEXACT, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(INEXACT)])
def test_what_clickhouse_would_change_is_refused_before_the_first_block(
    enrolled: Enrolled, proxy: FaultProxy, kind: str, values: pa.Array
) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name(), column("id", "int64"), column("c", kind)))
    refresh.begin()
    writer = ClickHouseStagingWriter(with_port(worker_of(enrolled), proxy.port), refresh.job, key=("id",))
    with pytest.raises(DponeError) as raised:
        writer.write(pa.record_batch([pa.array([77]), values], names=["id", "c"]))
    refused = raised.value.failure
    assert isinstance(refused, Refused)
    assert "column 'c'" in refused.problem.subject
    assert "key (id=77)" in refused.problem.subject
    assert proxy.seen == []


def test_each_group_is_one_insert_with_an_id_of_its_own(
    enrolled: Enrolled, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "GROUP_BYTES", 1000)
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    writer = ClickHouseStagingWriter(with_port(worker_of(enrolled), proxy.port), refresh.job)
    for first in range(0, 300, 30):
        writer.write(rows(*range(first, first + 30)))
    staged = writer.finish(enrolled.deadline())
    assert isinstance(staged, StagedContent)
    assert staged.rows == 300
    sent = [each.query_id for each in proxy.seen if "-insert-" in each.query_id]
    assert sent == [insert_id(refresh.job, number) for number in range(1, len(sent) + 1)]
    assert len(sent) > 2


def test_an_empty_batch_sends_nothing(enrolled: Enrolled, proxy: FaultProxy) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    writer = ClickHouseStagingWriter(with_port(worker_of(enrolled), proxy.port), refresh.job)
    writer.write(rows())
    assert isinstance(writer.finish(enrolled.deadline()), StagedContent)
    assert proxy.count("-insert-") == 0


def test_the_settings_that_matter_are_sent_and_known(enrolled: Enrolled) -> None:
    names = ", ".join(f"'{name}'" for name in INSERT_SETTINGS)
    known = enrolled.ask(f"SELECT name FROM system.settings WHERE name IN ({names})")
    assert {row[0] for row in known} == set(INSERT_SETTINGS)


def test_rows_that_stand_twice_stay_twice(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    shown = Refresh.of(enrolled, declared).whole([rows(1, 1, 2), rows(1, 1, 2)])
    assert isinstance(shown, Published)
    assert shown.rows == 6


def test_a_worker_cannot_touch_the_mart(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    Refresh.of(enrolled, declared).whole([rows(1)])
    session = Session(worker_of(enrolled))
    forbidden: list[Callable[[], object]] = [
        lambda: session.rows(f"SELECT * FROM mart.{declared.name}"),
        lambda: session.mutate(f"INSERT INTO mart.{declared.name} VALUES (2, 'x')", query_id="i"),
        lambda: session.mutate(f"DROP TABLE mart.{declared.name}", query_id="d"),
        lambda: session.mutate(f"TRUNCATE TABLE mart.{declared.name}", query_id="t"),
        lambda: session.mutate("CREATE TABLE dpone_stage.own (id Int8) ENGINE = MergeTree ORDER BY id", query_id="c"),
        lambda: session.mutate(f"EXCHANGE TABLES mart.{declared.name} AND dpone_stage.dpone_mark", query_id="e"),
    ]
    for attempt in forbidden:
        with pytest.raises(ServerError) as raised:
            attempt()
        assert raised.value.code == ACCESS_DENIED


def test_a_login_that_the_server_refuses_fails_and_tells_no_password(
    enrolled: Enrolled, caplog: pytest.LogCaptureFixture
) -> None:
    canary = "canary-7f3a91"
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    caplog.set_level(logging.DEBUG)
    wrong = replace(enrolled.controller, credential=Credential(enrolled.login().user, Secret(canary)))
    writer = ClickHouseStagingWriter(wrong, refresh.job)
    writer.write(rows(1))
    failed = writer.finish(enrolled.deadline())
    assert isinstance(failed, Failed)
    assert "code 516" in failed.problem.found
    assert canary not in f"{failed} {failed.problem!r} {caplog.text} {wrong!r} {writer!r}"
