"""Definitions, both ways: what is declared, created and observed again compares equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpone_provider import lab
from dpone_provider.adapters.postgres import ddl
from dpone_provider.adapters.postgres.schema_reader import PostgresSchemaReader
from dpone_provider.adapters.postgres.types import engine_facts, logical_type, sql_type
from dpone_provider.domain.identity import Relation, ServiceId
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.schema.actions import (
    Action,
    AddColumn,
    AddForeignKey,
    AddPrimaryKey,
    CreateIndex,
    CreateTable,
    DropColumn,
    DropForeignKey,
    DropIndex,
    DropPrimaryKey,
    RelaxNullability,
    RenameColumn,
    SetColumnComment,
    SetTableComment,
    WidenType,
    apply,
    created,
)
from dpone_provider.domain.schema.tables import (
    Absent,
    ForeignKey,
    Index,
    Observed,
    Occupied,
    Present,
    RelationKind,
    Table,
    Unreadable,
)
from dpone_provider.domain.schema.types import (
    Binary,
    Boolean,
    Date,
    Decimal,
    Float,
    Integer,
    LogicalType,
    String,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
    parse_logical_type,
)
from tests.adapters.postgres.enrolled import Enrolled, new_hex
from tests.adapters.postgres.refresh import column, table


@pytest.fixture(scope="module")
def database(postgres_lab: lab.LabState) -> Iterator[Enrolled]:
    """One database for all of them, not enrolled: definitions need no enrolment."""
    with lab.fresh_database(postgres_lab) as fresh:
        yield Enrolled(database=fresh, service_id=ServiceId(str(UUID(int=0))))


def reader_of(database: Enrolled, role: str = "postgres_admin") -> PostgresSchemaReader:
    return PostgresSchemaReader(database.endpoint, database.credential(role))


def observed(database: Enrolled, relation: Relation) -> Observed:
    (found,) = reader_of(database).tables([relation])
    return found


def do(database: Enrolled, relation: Relation, *actions: Action) -> None:
    with database.connected() as connection:
        for action in actions:
            for statement in ddl.statements(relation, action):
                connection.execute(statement)


# ─── types ──────────────────────────────────────────────────────────────────────────────────────────────────────────

DIGITS = st.integers(0, 6)
HELD: st.SearchStrategy[LogicalType] = st.one_of(
    st.sampled_from([Boolean(), Integer(16), Integer(32), Integer(64), Float(32), Float(64), Date(), Uuid(), Binary()]),
    st.builds(String, st.one_of(st.none(), st.integers(1, 10_485_760))),
    st.integers(1, 38).flatmap(lambda p: st.builds(Decimal, st.just(p), st.integers(0, p))),
    st.builds(Time, DIGITS),
    st.builds(Timestamp, DIGITS),
    st.builds(TimestampTz, DIGITS),
)


@given(HELD)
def test_every_type_that_is_held_is_given_back(logical: LogicalType) -> None:
    text = sql_type(logical)
    assert text is not None
    assert logical_type(text) == logical


@pytest.mark.parametrize(
    "text", ["int8", "uint8", "binary(4)", "time(7)", "timestamp(9)", "timestamp_tz(7)", "string(10485761)"]
)
def test_what_would_not_be_given_back_is_told_beforehand(text: str) -> None:
    declared = column("c", text)
    assert sql_type(declared.type) is None
    ((lossy, instead),) = engine_facts([declared]).lossy_types
    assert lossy == declared.type
    assert instead
    with pytest.raises(DponeError, match="lossy_type"):
        ddl.statements(Relation("s", "t"), AddColumn(declared))


# ─── definitions ────────────────────────────────────────────────────────────────────────────────────────────────────

FULL = table(
    column("id", "int64", comment="it's the key"),
    column("Odd \"name'%", "decimal(38,38)", nullable=True),
    column("n", "string(40)", nullable=True),
    column("at", "timestamp_tz(3)"),
    column("other", "int64", nullable=True),
    schema="public",
    name="full",
    primary_key=("id", "at"),
    comment="50 % \\ of 'it'",
    indexes=(Index(name="by_n", columns=("n", "at")), Index(name="Once", columns=("other",), unique=True)),
)


@pytest.mark.lab
def test_a_whole_definition_survives(database: Enrolled) -> None:
    do(database, FULL.relation, CreateTable(FULL))
    found = observed(database, FULL.relation)
    assert isinstance(found, Present)
    assert not found.has_rows
    assert replace(found.table, indexes=tuple(sorted(found.table.indexes, key=lambda each: each.name))) == replace(
        created(FULL), indexes=tuple(sorted(FULL.indexes, key=lambda each: each.name))
    )
    database.execute("INSERT INTO public.full (id, at) VALUES (1, now())")
    again = observed(database, FULL.relation)
    assert isinstance(again, Present)
    assert again.has_rows


@pytest.mark.lab
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(types=st.lists(st.tuples(HELD, st.booleans()), min_size=1, max_size=8))
def test_declared_created_observed(database: Enrolled, types: list[tuple[LogicalType, bool]]) -> None:
    columns = tuple(
        replace(column(f"c{number}", "int64", nullable=nullable), type=logical)
        for number, (logical, nullable) in enumerate(types)
    )
    declared = table(*columns, schema="public", name=f"g_{new_hex()[:12]}")
    do(database, declared.relation, CreateTable(declared))
    found = observed(database, declared.relation)
    assert isinstance(found, Present)
    assert found.table == created(declared)


@pytest.mark.lab
def test_each_action_does_what_the_core_says(database: Enrolled) -> None:
    parent = table(column("id", "int64"), schema="public", primary_key=("id",))
    do(database, parent.relation, CreateTable(parent))
    start = table(
        column("a", "int32"), column("b", "decimal(5,2)"), column("c", "string(3)"), schema="public", primary_key=("a",)
    )
    do(database, start.relation, CreateTable(start))
    key = ForeignKey(name="fk", columns=("d",), references=parent.relation, referenced_columns=("id",))
    now: Table = created(start)
    steps: tuple[Action, ...] = (
        RenameColumn("c", "text"),
        DropPrimaryKey(("a",), None),
        WidenType(column="a", old_type=Integer(32), new_type=Integer(64), nullable=False),
        WidenType(column="b", old_type=Decimal(5, 2), new_type=Decimal(12, 4), nullable=False),
        WidenType(column="text", old_type=String(3), new_type=String(), nullable=False),
        RelaxNullability("b", Decimal(12, 4)),
        AddColumn(column("d", "int64", nullable=True, comment="new")),
        AddPrimaryKey(("a",)),
        CreateIndex(Index(name="ix_d", columns=("d", "a"))),
        AddForeignKey(key),
        SetTableComment("about it"),
        SetColumnComment("d", ""),
        DropForeignKey("fk"),
        DropIndex("ix_d"),
        SetTableComment(""),
        DropColumn("text"),
    )
    for step in steps:
        do(database, start.relation, step)
        now = apply(now, step)
        found = observed(database, start.relation)
        assert isinstance(found, Present)
        assert found.table == now, step


@pytest.mark.lab
def test_many_names_are_told_apart_in_their_order(database: Enrolled) -> None:
    for statement in (
        "CREATE TABLE public.plain (id int)",
        "CREATE VIEW public.seen AS SELECT 1 AS x",
        "CREATE MATERIALIZED VIEW public.kept AS SELECT 1 AS x",
        "CREATE TABLE public.parts (id int) PARTITION BY LIST (id)",
        "CREATE TABLE public.part PARTITION OF public.parts DEFAULT",
        "CREATE SEQUENCE public.counter",
        "CREATE TABLE public.odd (id int, j jsonb)",
        "CREATE TABLE public.unbounded (n numeric)",
        "CREATE TABLE public.nothing ()",
    ):
        database.execute(statement)
    names = ("plain", "seen", "kept", "parts", "part", "counter", "odd", "unbounded", "nothing", "absent", "x" * 64)
    found = reader_of(database).tables([*(Relation("public", name) for name in names), Relation("no_such", "t")])
    kinds = [one.kind if isinstance(one, Occupied) else type(one) for one in found]
    assert kinds == [
        Present,
        RelationKind.VIEW,
        RelationKind.MATERIALIZED_VIEW,
        RelationKind.PARTITIONED_TABLE,
        RelationKind.PARTITIONED_TABLE,
        RelationKind.OTHER,
        Unreadable,
        Unreadable,
        Unreadable,
        Absent,
        Unreadable,
        Unreadable,
    ]
    problems = [one.failure.problem for one in found if isinstance(one, Unreadable)]
    assert problems[0].found == "jsonb"
    assert "'j'" in problems[0].subject
    assert "numeric(p,s)" in problems[1].allowed
    assert problems[4].found == "no such schema"


@pytest.mark.lab
def test_a_schema_that_may_not_be_looked_into_is_unreadable(database: Enrolled) -> None:
    database.execute("CREATE SCHEMA hidden")
    database.execute("CREATE TABLE hidden.t (id int)")
    (found,) = reader_of(database, "warehouse_reader").tables([Relation("hidden", "t")])
    assert isinstance(found, Unreadable)


@pytest.mark.lab
def test_a_table_that_may_not_be_read_counts_as_filled(database: Enrolled) -> None:
    database.execute("CREATE TABLE public.empty_one (id int)")
    (found,) = reader_of(database, "warehouse_reader").tables([Relation("public", "empty_one")])
    assert isinstance(found, Present)
    assert found.has_rows


@pytest.mark.lab
def test_a_server_that_does_not_answer_is_unreadable(database: Enrolled) -> None:
    nowhere = PostgresSchemaReader(replace(database.endpoint, port=1), database.credential("warehouse_reader"))
    assert all(isinstance(one, Unreadable) for one in nowhere.tables([Relation("a", "b"), Relation("c", "d")]))


def test_padding_is_kept_and_other_spellings_have_no_type() -> None:
    assert logical_type("character(5)") == String(5)
    assert logical_type("character varying") == String()
    for text in (
        "character",
        '"char"',
        "interval",
        "numeric",
        "numeric(5,-2)",
        "text[]",
        "timestamp(3) with local time",
    ):
        assert logical_type(text) is None
    assert parse_logical_type("string(5)") == String(5)
