"""Schema actions as Transact-SQL: what is sent, and that Microsoft's parser reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpone_provider.adapters.mssql.ddl import statements, table_comment
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
)
from dpone_provider.domain.schema.tables import Column, ForeignKey, Index, Table
from dpone_provider.domain.schema.types import Decimal, Integer, String
from tests.adapters.ledger.tsql import refusals

ORDERS = Relation("sales", "ord]ers")
ID = Column(name="id", type=Integer(64), nullable=False)
NAME = Column(name="na'me", type=String(20), nullable=True, comment="it's a name")
INDEX = Index(name="by_name", columns=("na'me",), unique=False)
KEY = ForeignKey(name="of_store", columns=("id",), references=Relation("sales", "store"), referenced_columns=("id",))
CREATED = Table(
    schema="sales",
    name="ord]ers",
    columns=(ID, NAME),
    primary_key=("id",),
    comment="orders",
    indexes=(INDEX,),
    foreign_keys=(KEY,),
)
ACTIONS: dict[Action, tuple[str, ...]] = {
    CreateTable(CREATED): (
        "CREATE TABLE [sales].[ord]]ers] ([id] bigint NOT NULL, [na'me] nvarchar(20) NULL, PRIMARY KEY ([id]));",
        "CREATE INDEX [by_name] ON [sales].[ord]]ers] ([na'me]);",
    ),
    DropForeignKey("of_store"): ("ALTER TABLE [sales].[ord]]ers] DROP CONSTRAINT [of_store];",),
    DropIndex("by_name"): ("DROP INDEX [by_name] ON [sales].[ord]]ers];",),
    DropPrimaryKey(columns=("id",), name="PK__1"): ("ALTER TABLE [sales].[ord]]ers] DROP CONSTRAINT [PK__1];",),
    RenameColumn(old_name="id", new_name="order'id"): (
        "EXEC sys.sp_rename @objname = N'[sales].[ord]]ers].[id]', @newname = N'order''id', @objtype = N'COLUMN';",
    ),
    DropColumn("na'me"): ("ALTER TABLE [sales].[ord]]ers] DROP COLUMN [na'me];",),
    WidenType(column="id", old_type=Integer(32), new_type=Decimal(38, 2), nullable=False): (
        "ALTER TABLE [sales].[ord]]ers] ALTER COLUMN [id] decimal(38,2) NOT NULL;",
    ),
    RelaxNullability("id", Integer(64)): ("ALTER TABLE [sales].[ord]]ers] ALTER COLUMN [id] bigint NULL;",),
    AddColumn(NAME): ("ALTER TABLE [sales].[ord]]ers] ADD [na'me] nvarchar(20) NULL;",),
    AddPrimaryKey(("id", "na'me")): ("ALTER TABLE [sales].[ord]]ers] ADD PRIMARY KEY ([id], [na'me]);",),
    CreateIndex(Index(name="u", columns=("id",), unique=True)): (
        "CREATE UNIQUE INDEX [u] ON [sales].[ord]]ers] ([id]);",
    ),
    AddForeignKey(KEY): (
        "ALTER TABLE [sales].[ord]]ers] ADD CONSTRAINT [of_store] FOREIGN KEY ([id])"
        " REFERENCES [sales].[store] ([id]);",
    ),
    SetTableComment("it's"): ("IF EXISTS",),
    SetColumnComment("na'me", ""): ("IF EXISTS",),
}


@pytest.mark.parametrize(("action", "expected"), ACTIONS.items(), ids=[type(one).__name__ for one in ACTIONS])
def test_an_action_is_said_as_meant(action: Action, expected: tuple[str, ...]) -> None:
    said = statements(ORDERS, action)
    assert [text[: len(wanted)] for text, wanted in zip(said, expected, strict=False)] == list(expected)


def test_microsofts_parser_reads_every_action(tmp_path: Path) -> None:
    said = {
        f"{type(action).__name__} {place}": text
        for action in ACTIONS
        for place, text in enumerate(statements(ORDERS, action))
    }
    said["label"] = table_comment(ORDERS, "0123")
    assert refusals(said, tmp_path) == {}


def test_every_action_has_its_statements() -> None:
    assert {type(action) for action in ACTIONS} == set(Action.__args__)
