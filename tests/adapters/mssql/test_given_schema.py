"""Round trip on the given server: what is declared and made is observed again as declared, after every action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from secrets import token_hex

import pytest

from dpone_provider.adapters.mssql import ddl
from dpone_provider.adapters.mssql.definitions import read
from dpone_provider.adapters.mssql.errors import ServerError
from dpone_provider.adapters.mssql.observation import effects_of
from dpone_provider.adapters.mssql.schema_reader import MssqlSchemaReader
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.adapters.mssql.types import MAX_COMMENT_UNITS
from dpone_provider.application.relational.definitions import Standing
from dpone_provider.domain.effects import Effect, EffectKind
from dpone_provider.domain.identity import Relation
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
)
from dpone_provider.domain.schema.tables import (
    Absent,
    Column,
    ForeignKey,
    Index,
    Occupied,
    Present,
    Table,
    Unreadable,
)
from dpone_provider.domain.schema.types import Binary, Decimal, Integer, String, parse_logical_type
from tests.adapters.mssql.capabilities import Capability
from tests.adapters.mssql.given_server import require, schema

pytestmark = pytest.mark.mssql
TYPES = (
    "boolean",
    "uint8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "decimal(1,0)",
    "decimal(38,38)",
    "string",
    "string(1)",
    "string(4000)",
    "binary",
    "binary(8000)",
    "date",
    "time(0)",
    "time(6)",
    "timestamp(0)",
    "timestamp(6)",
    "timestamp_tz(0)",
    "timestamp_tz(6)",
    "uuid",
)
FINE = ("time(7)", "timestamp(7)", "timestamp_tz(7)")
ODD_NAMES = ("select", "a b", "quote'd", 'dou"ble', "brac]ket", "umläut", "日本", "percent%", "dot.ted", "semi;colon")


class Schema:
    """One schema on the given server, and what the product does in it."""

    def __init__(self, server: MssqlServer, own: Session, name: str) -> None:
        self.server, self.own, self.name = server, own, name
        self.reader = MssqlSchemaReader(server)

    def do(self, relation: Relation, action: Action) -> None:
        """Run an action's statements."""
        for statement in ddl.statements(relation, action):
            self.own.run(statement)

    def seen(self, relation: Relation) -> Table:
        """Observe a table."""
        (found,) = self.reader.tables([relation])
        assert isinstance(found, Present), found
        return found.table

    def table(self, *columns: Column, name: str = "t", **more: object) -> Table:
        """Declare a table here."""
        return Table(schema=self.name, name=name, columns=columns, **more)  # type: ignore[arg-type]


@pytest.fixture
def there() -> Iterator[Schema]:
    """Give a schema of the test's own."""
    found = require(Capability.CATALOG)
    with found.server.session("dpone test", 60) as own, schema(own) as name:
        yield Schema(found.server, own, name)


def column(name: str, text: str, *, nullable: bool = True, comment: str = "") -> Column:
    """Return a column."""
    return Column(name=name, type=parse_logical_type(text), nullable=nullable, comment=comment)


def normal(table: Table) -> Table:
    """Return a declared table with every aspect managed, as an observed one has them."""
    columns = tuple(replace(one, comment=one.comment or "") for one in table.columns)
    return replace(table, columns=columns, primary_key=table.primary_key or (), comment=table.comment or "")


@pytest.mark.parametrize("text", [*TYPES, *FINE])
def test_a_type_is_observed_as_it_was_declared(there: Schema, text: str) -> None:
    if text in FINE:
        require(Capability.TICKS)
    declared = there.table(column("a", text), column("b", text, nullable=False))
    there.do(declared.relation, CreateTable(declared))
    assert there.seen(declared.relation) == normal(declared)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_of_any_characters_is_one_name(there: Schema, name: str) -> None:
    require(Capability.KEYS, Capability.NAMES)
    declared = there.table(
        column(name, "int64", nullable=False, comment="it's " + name),
        name=name,
        primary_key=(name,),
        comment=name,
        indexes=(Index(name="ix " + name, columns=(name,)),),
    )
    there.do(declared.relation, CreateTable(declared))
    assert there.seen(declared.relation) == normal(declared)


def test_a_comment_of_the_longest_kind_and_one_of_blanks_are_observed_as_declared(there: Schema) -> None:
    declared = there.table(column("a", "int64", comment="ü" * MAX_COMMENT_UNITS), comment=" ")
    there.do(declared.relation, CreateTable(declared))
    assert there.seen(declared.relation) == normal(declared)
    with pytest.raises(ServerError):
        there.do(declared.relation, SetTableComment("ü" * (MAX_COMMENT_UNITS + 1)))


def _actions(there: Schema) -> list[Action]:
    """Return every kind of action, each after those that it needs."""
    key = ForeignKey(
        name="of_store", columns=("store",), references=Relation(there.name, "store"), referenced_columns=("id",)
    )
    return [
        CreateTable(
            there.table(column("id", "int32", nullable=False), column("store", "int64"), column("name", "string(5)"))
        ),
        SetTableComment("what it's for"),
        SetTableComment("another"),
        SetColumnComment("name", "the 'name'"),
        SetColumnComment("name", ""),
        WidenType(column="id", old_type=Integer(32), new_type=Integer(64), nullable=False),
        WidenType(column="name", old_type=String(5), new_type=String(), nullable=True),
        AddPrimaryKey(("id",)),
        AddColumn(column("added", "decimal(10,2)", comment="added later")),
        WidenType(column="added", old_type=Decimal(10, 2), new_type=Decimal(20, 4), nullable=True),
        AddColumn(column("raw", "binary(10)")),
        WidenType(column="raw", old_type=Binary(10), new_type=Binary(), nullable=True),
        RenameColumn(old_name="added", new_name="re'named"),
        CreateIndex(Index(name="by_store", columns=("store", "id"))),
        CreateIndex(Index(name="once", columns=("id", "store"), unique=True)),
        AddForeignKey(key),
        DropForeignKey("of_store"),
        DropIndex("by_store"),
        DropIndex("once"),
        DropColumn("re'named"),
        SetTableComment(""),
    ]


def test_after_each_action_the_table_is_what_the_plan_says(there: Schema) -> None:
    require(Capability.KEYS, Capability.ALTER_COLUMN)
    store = there.table(column("id", "int64", nullable=False), name="store", primary_key=("id",))
    there.do(store.relation, CreateTable(store))
    relation, expected = Relation(there.name, "t"), None
    for action in _actions(there):
        there.do(relation, action)
        expected = normal(apply(expected, action))
        assert there.seen(relation) == expected, action
    seen = there.seen(relation)
    there.do(relation, DropPrimaryKey(columns=("id",), name=seen.primary_key_name))
    there.do(relation, RelaxNullability("id", Integer(64)))
    seen = there.seen(relation)
    assert (seen.primary_key, seen.columns[0].nullable) == ((), True)


def test_rows_are_told_and_a_missing_name_is_absent_only_where_one_may_look(there: Schema) -> None:
    for name in ("empty", "full"):
        there.do(Relation(there.name, name), CreateTable(there.table(column("id", "int64"), name=name)))
    there.own.run(f"INSERT INTO [{there.name}].[full] VALUES (1);")
    asked = [Relation(there.name, name) for name in ("full", "nothing", "empty")]
    full, nothing, empty, elsewhere = there.reader.tables([*asked, Relation(f"no_{token_hex(4)}", "t")])
    assert isinstance(full, Present)
    assert isinstance(empty, Present)
    assert (full.has_rows, empty.has_rows) == (True, False)
    assert isinstance(nothing, Absent)
    assert isinstance(elsewhere, Unreadable)


def test_a_view_occupies_its_name_and_another_type_is_unreadable(there: Schema) -> None:
    there.own.run(f"CREATE TABLE [{there.name}].[odd] (a int, b xml);")
    there.own.run(f"EXEC(N'CREATE VIEW [{there.name}].[seen] AS SELECT 1 AS one');")
    try:
        view, odd = there.reader.tables([Relation(there.name, "seen"), Relation(there.name, "odd")])
        assert isinstance(view, Occupied)
        assert isinstance(odd, Unreadable)
        assert odd.failure.problem.found == "xml"
    finally:
        there.own.run(f"DROP VIEW [{there.name}].[seen];")


def test_what_writing_a_table_would_meet_is_told(there: Schema) -> None:
    require(Capability.EFFECTS)
    there.own.run(
        f"CREATE TABLE [{there.name}].[plain] (id int NOT NULL PRIMARY KEY);"
        f" CREATE TABLE [{there.name}].[kept] (id int IDENTITY NOT NULL, twice AS id * 2, plain int"
        f" CONSTRAINT of_plain REFERENCES [{there.name}].[plain] (id));"
    )
    there.own.run(f"EXEC(N'CREATE TRIGGER [{there.name}].[fires] ON [{there.name}].[kept] AFTER INSERT AS RETURN;');")
    ids = {}
    for name in ("plain", "kept"):
        (found,) = read(there.own, [Relation(there.name, name)])
        assert isinstance(found, Standing)
        ids[name] = found.identity
    told = effects_of(there.own, list(ids.values()))
    there.own.run(f"ALTER TABLE [{there.name}].[kept] DROP CONSTRAINT of_plain;")
    assert told[ids["plain"]] == (Effect(EffectKind.FOREIGN_KEY, f"foreign key of_plain of {there.name}.kept"),)
    assert set(told[ids["kept"]]) == {
        Effect(EffectKind.SERVER_COLUMN, "column id, an identity"),
        Effect(EffectKind.SERVER_COLUMN, "column twice, computed"),
        Effect(EffectKind.TRIGGER, "trigger fires"),
    }
