"""Schema values and plans in their plain form, and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

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
    Stage,
    WidenType,
)
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.plain import action_from_plain, plain, plain_action, table_from_plain
from dpone_provider.domain.schema.plan import Plan, StatementOutcome, plan_table
from dpone_provider.domain.schema.plan_form import plan_from_plain, plan_to_plain
from dpone_provider.domain.schema.tables import Column, ForeignKey, Index, Present, Table
from dpone_provider.domain.schema.types import Decimal, Integer, String
from tests.domain.schema.strategies import tables

ID = Column(name="id", type=Integer(32), nullable=False)
TABLE = Table(schema="stage", name="t", columns=(ID,))
KEY = ForeignKey(name="f", columns=("id",), references=Relation("s", "p"), referenced_columns=("id",))
EVERY_ACTION: list[Action] = [
    CreateTable(TABLE),
    DropForeignKey("f"),
    DropIndex("i"),
    DropPrimaryKey(("id",), None),
    RenameColumn("a", "b"),
    WidenType(column="a", old_type=Integer(8), new_type=Integer(16), nullable=True),
    RelaxNullability("a", Decimal(5, 2)),
    AddColumn(ID),
    AddPrimaryKey(("a", "b")),
    CreateIndex(Index(name="i", columns=("a",), unique=True)),
    AddForeignKey(KEY),
    SetTableComment("x"),
    SetColumnComment("a", ""),
    DropColumn("a"),
]


def planned() -> Plan:
    """A plan of two steps, the first of them applied."""
    declared = replace(TABLE, columns=(ID, replace(ID, name="b", type=String(), nullable=True)), comment="x")
    plan = plan_table(declared, Present(replace(TABLE, comment="", primary_key=("id",))))
    assert isinstance(plan, Plan)
    return plan.recorded(StatementOutcome.APPLIED)


@given(tables())
def test_tables_read_back(table: Table) -> None:
    assert table_from_plain(json.loads(json.dumps(plain(table)))) == table


@pytest.mark.parametrize("action", EVERY_ACTION, ids=lambda each: each.stage.name)
def test_actions_read_back(action: Action) -> None:
    assert action_from_plain(json.loads(json.dumps(plain_action(action)))) == action


def test_every_stage_has_its_action() -> None:
    assert [action.stage for action in EVERY_ACTION] == list(Stage)


def test_the_form_of_a_plan() -> None:
    plan = planned()
    assert plan_to_plain(plan) == {
        "relation": {"schema": "stage", "name": "t"},
        "observed_digest": plan.observed_digest,
        "steps": [
            {
                "outcome": "applied",
                "action": {
                    "action": "add_column",
                    "column": {
                        "name": "b",
                        "type": "string",
                        "nullable": True,
                        "comment": None,
                        "renamed_from": None,
                    },
                },
            },
            {"outcome": "planned", "action": {"action": "set_table_comment", "comment": "x"}},
        ],
        "unmanaged": [{"subject": "primary key", "observed": "id"}],
    }


def test_a_plan_reads_back() -> None:
    assert plan_from_plain(json.loads(json.dumps(plan_to_plain(planned())))) == planned()


def changed(path: list[str | int], value: Any) -> dict[str, Any]:
    """The plan's form with one value changed."""
    form: dict[str, Any] = json.loads(json.dumps(plan_to_plain(planned())))
    inner: Any = form
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return form


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["more"], 1, "exactly the keys"),
        (["relation"], "stage.t", "exactly the keys"),
        (["relation"], {"schema": "stage"}, "exactly the keys"),
        (["relation", "name"], "", "not a relation name"),
        (["observed_digest"], "sha256:0", "not a digest"),
        (["observed_digest"], None, "a plan as plan_to_plain writes it"),
        (["steps"], [], "not a plan of"),
        (["steps"], [{}], "'action'"),
        (["steps", 0, "outcome"], "done", "not a valid StatementOutcome"),
        (["steps", 0, "action"], "add_column", "one of"),
        (["steps", 0, "action", "action"], "truncate", "found 'truncate'; allowed is one of"),
        (["steps", 0, "action", "column", "type"], 5, "allowed is text"),
        (["steps", 0, "action", "column", "type"], "text", "one of boolean"),
        (["steps", 0, "action", "column", "nullable"], 1, "true or false"),
        (["steps", 0, "action"], {"action": "add_primary_key", "columns": "id"}, "a list"),
        (["steps", 0, "action"], {"action": "add_primary_key", "columns": {"id": 1}}, "a list"),
        (["unmanaged"], [{"subject": "x"}], "observed"),
    ],
)
def test_another_form_is_refused(path: list[str | int], value: Any, message: str) -> None:
    with pytest.raises(InvalidSchemaValue, match=message):
        plan_from_plain(changed(path, value))
