"""Staging on an issued login: exact, read back, and silent about its credential."""

from __future__ import annotations

import traceback
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dpone_provider.adapters.postgres.arrow_session import arrow_session
from dpone_provider.adapters.postgres.errors import ERRORS, AnswerLost, LoginRefused
from dpone_provider.adapters.postgres.staging import PostgresStagingWriter
from dpone_provider.application.ports.tables import StagedContent
from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.columnar.content_digest import ContentHasher
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.domain.schema.tables import Table
from dpone_provider.domain.secret import Secret
from tests.adapters.postgres.enrolled import Enrolled
from tests.adapters.postgres.refresh import Refresh, batch, column, deadline, table

pytestmark = pytest.mark.lab

MIXED = (
    column("id", "int64"),
    column("b", "boolean", nullable=True),
    column("i2", "int16", nullable=True),
    column("i4", "int32", nullable=True),
    column("f4", "float32", nullable=True),
    column("f8", "float64", nullable=True),
    column("d4", "decimal(4,2)", nullable=True),
    column("d18", "decimal(18,0)", nullable=True),
    column("d38", "decimal(38,10)", nullable=True),
    column("d3838", "decimal(38,38)", nullable=True),
    column("t", "string", nullable=True),
    column("v", "string(10)", nullable=True),
    column("by", "binary", nullable=True),
    column("da", "date", nullable=True),
    column("ti", "time(6)", nullable=True),
    column("ts", "timestamp(6)", nullable=True),
    column("tz", "timestamp_tz(3)", nullable=True),
    column("u", "uuid", nullable=True),
)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    return st.integers(-limit, limit).map(lambda unscaled: Decimal(f"{unscaled}e-{scale}"))


def plain_text(maximum: int | None = None) -> st.SearchStrategy[str]:
    characters = st.characters(codec="utf-8", exclude_characters="\x00")
    return st.text(characters, max_size=maximum if maximum is not None else 60)


ROW = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.booleans(),
    st.none() | st.integers(-(2**15), 2**15 - 1),
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.floats(width=32),
    st.none() | st.floats(),
    st.none() | decimals(4, 2),
    st.none() | decimals(18, 0),
    st.none() | decimals(38, 10),
    st.none() | decimals(38, 38),
    st.none() | plain_text(),
    st.none() | plain_text(10),
    st.none() | st.binary(max_size=40),
    st.none() | st.dates(),
    st.none() | st.times(),
    st.none() | st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),  # noqa: DTZ001
    st.none()
    | st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001
        lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000, tzinfo=UTC)
    ),
    st.none() | st.uuids().map(lambda each: each.bytes),
)


@pytest.fixture(scope="module")
def one(shared: Enrolled) -> Refresh:
    """One attempt that stages again and again."""
    return Refresh.of(shared, table(*MIXED))


def digest_of(declared: Table, batches: list[pa.RecordBatch]) -> str:
    hasher = ContentHasher(declared.columns)
    for one in batches:
        hasher.update(one)
    return str(hasher.digest)


@settings(
    max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(rows=st.lists(ROW, min_size=20, max_size=60), split=st.integers(1, 60))
def test_whatever_is_sent_is_what_stands_there(one: Refresh, rows: list[tuple[object, ...]], split: int) -> None:
    """F9: any values, NULL first or last, whatever the batches: the engine gives back the same digest."""
    batches = [batch(one.declared, *rows[start : start + split]) for start in range(0, len(rows), split)]
    content = one.staged(batches)
    assert content.rows == len(rows)
    assert content.content_digest == digest_of(one.declared, batches)


def test_the_edges_of_every_type(shared: Enrolled) -> None:
    nines = "9" * 38
    rows = [
        (1, *[None] * 17),
        (
            *(2, True, 2**15 - 1, 2**31 - 1, float("inf"), float("-inf"), Decimal("99.99"), Decimal(10**18 - 1)),
            *(Decimal("9" * 28 + "." + "9" * 10), Decimal("0." + nines), "\U0001f600\ttab\\N\n", "äöü", b"\x00\xff"),
            *(date(9999, 12, 31), time(23, 59, 59, 999999), datetime(9999, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001
            *(datetime(1900, 1, 1, tzinfo=UTC), UUID("00112233-4455-6677-8899-aabbccddeeff").bytes),
        ),
        (
            *(3, False, -(2**15), -(2**31), -0.0, 5e-324, Decimal("-0.01"), Decimal(0), Decimal("-0.0000000001")),
            *(Decimal("-0." + "0" * 37 + "1"), "", "", b"", date(1, 1, 1), time(0), datetime(1, 1, 1)),  # noqa: DTZ001
            *(datetime(2013, 3, 10, 2, 30, 0, 1000, tzinfo=UTC), bytes(16)),
        ),
    ]
    refresh = Refresh.of(shared, table(*MIXED))
    sent = [batch(refresh.declared, *rows)]
    assert refresh.staged(sent).content_digest == digest_of(refresh.declared, sent)
    ((uuid, last),) = shared.execute(f"SELECT u::text, d38::text FROM {refresh.job.staged} WHERE id = 2")
    assert uuid == "00112233-4455-6677-8899-aabbccddeeff"
    assert last == "9" * 28 + "." + "9" * 10


@pytest.mark.parametrize(
    ("logical", "value", "reason"),
    [
        ("string(3)", "abcd", "string_too_long"),
        ("string", "a\x00b", "nul_character"),
        ("decimal(4,2)", Decimal("1.00"), None),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_row(
    shared: Enrolled, logical: str, value: object, reason: str | None
) -> None:
    """F16: before anything is published, naming column, key, value and limit."""
    refresh = Refresh.of(shared, table(column("id", "int64"), column("v", logical)))
    writer = PostgresStagingWriter(shared.endpoint, refresh.login, refresh.job, key=("id",))
    rows = batch(refresh.declared, (7, value))
    if reason is None:
        writer.write(rows)
        assert isinstance(writer.finish(deadline()), StagedContent)
        return
    with pytest.raises(DponeError) as raised:
        writer.write(rows)
    assert isinstance(raised.value.failure, Refused)
    assert raised.value.failure.problem.reason == reason
    assert "id=7" in raised.value.failure.problem.subject


def test_a_null_in_a_not_null_column_is_refused(shared: Enrolled) -> None:
    refresh = Refresh.of(shared, table())
    schema = arrow_schema([replace(each, nullable=True) for each in refresh.declared.columns])
    rows = pa.record_batch([pa.array([None], pa.int64()), pa.array(["x"])], schema=schema)
    writer = PostgresStagingWriter(shared.endpoint, refresh.login, refresh.job, key=("id",))
    with pytest.raises(DponeError, match="null_in_not_null_column"):
        writer.write(rows)


def test_nothing_staged_is_an_empty_table(shared: Enrolled) -> None:
    refresh = Refresh.of(shared, table())
    content = refresh.staged([])
    assert (content.rows, content.bytes) == (0, 0)
    assert shared.execute(f"SELECT count(*) FROM {refresh.job.staged}") == [(0,)]


def test_the_staging_table_is_the_writer_roles_and_not_logged(shared: Enrolled) -> None:
    refresh = Refresh.of(shared, table())
    refresh.staged([batch(refresh.declared, (1, "a"))])
    ((owner, persistence, label),) = shared.execute(
        "SELECT pg_get_userbyid(relowner), relpersistence, obj_description(oid) FROM pg_class WHERE relname = %s",
        refresh.job.staged.name,
    )
    assert (owner, persistence, label) == ("dpone_writer_stage", "u", refresh.job.attempt_id)


def test_a_login_that_is_refused_fails_and_falls_back_to_nothing(shared: Enrolled) -> None:
    """The issued login is the only one that the writer knows."""
    refresh = Refresh.of(shared, table())
    shared.execute(
        "UPDATE dpone_control.login_gate SET gate_state = 'CLOSING' WHERE principal_name = %s", refresh.login.user
    )
    writer = PostgresStagingWriter(shared.endpoint, refresh.login, refresh.job)
    with pytest.raises(DponeError) as raised:
        writer.write(batch(refresh.declared, (1, "a")))
    assert isinstance(raised.value.failure, Failed)
    assert raised.value.failure.problem.reason == "login_refused"
    assert "DPONE_GATE_NOT_READY" in raised.value.failure.problem.found


def test_a_writer_that_is_ended_midway_fails(shared: Enrolled) -> None:
    """What the server says to a batch is told by a later call, at the latest by the last one."""
    refresh = Refresh.of(shared, table())
    writer = PostgresStagingWriter(shared.endpoint, refresh.login, refresh.job)
    writer.write(batch(refresh.declared, (1, "a")))
    shared.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", refresh.login.user)
    assert isinstance(_told(writer, refresh), Failed)


def _told(writer: PostgresStagingWriter, refresh: Refresh) -> object:
    try:
        for number in range(5):
            writer.write(batch(refresh.declared, (number, "b")))
    except DponeError as error:
        return error.failure
    return writer.finish(deadline())


@pytest.mark.parametrize("canary", ["canary%zz", "canary' \\ =é?&@:/", "canary with blanks"])
def test_arrows_errors_do_not_repeat_the_password(shared: Enrolled, canary: str) -> None:
    for endpoint, kind in ((shared.endpoint, LoginRefused), (replace(shared.endpoint, port=1), AnswerLost)):
        secret = Credential("dpone_controller", Secret(canary))
        with pytest.raises(ERRORS) as raised, arrow_session(endpoint, secret, purpose="t", seconds=5):
            pass
        assert isinstance(raised.value, kind)
        seen = "".join(traceback.format_exception(raised.value)) + repr(raised.value.__context__)
        assert "canary" not in seen
