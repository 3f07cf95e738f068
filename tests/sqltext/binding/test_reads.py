"""What Python takes from an answer is what the statement gives: how many columns, how many results, which values."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from dpone_provider.adapters.ledger.dialect import OtherSession
from dpone_provider.sql_files import load
from tests.sqltext.binding import types
from tests.sqltext.binding.check import Bound, all_bound, bind_with
from tests.sqltext.binding.reads import BYTES, PACKAGE, Read, reads

OTHERWISE: Mapping[str, tuple[int, frozenset[str]]] = {
    "adapters/ledger/mssql.sql: blockers": (len(dataclasses.fields(OtherSession)), frozenset({"session"})),
    "adapters/ledger/mssql.sql: end_sleepers": (len(dataclasses.fields(OtherSession)), frozenset({"milliseconds"})),
    "adapters/ledger/mssql.sql: lock_authority": (1, frozenset()),
    "adapters/ledger/mssql.sql: open_transaction": (9, frozenset()),
    "adapters/ledger/mssql.sql: raise_sequence": (0, frozenset({"at_least"})),
    "adapters/ledger/mssql.sql: read_standing": (6, frozenset()),
    "adapters/ledger/mssql.sql: settle": (1, frozenset({"transaction_id", "wrote"})),
    "adapters/ledger/mssql.sql: write_head": (1, frozenset({"transaction_id"})),
    "adapters/ledger/mssql.sql: write_tail": (1, frozenset({"met"})),
    "adapters/mssql/gate_definition.sql: installed": (2, frozenset()),
    "adapters/mssql/installation.sql: describe": (4, frozenset({"database"})),
    "adapters/mssql/installation.sql: describe_instance": (4, frozenset()),
    "adapters/mssql/installation.sql: drop_test_login": (0, frozenset({"sid"})),
    "adapters/mssql/installation.sql: make_test_login": (0, frozenset({"name", "sid", "verifier"})),
    "adapters/mssql/observation.sql: classes": (2, frozenset({"names"})),
    "adapters/mssql/observation.sql: dependants": (4, frozenset({"ids"})),
    "adapters/mssql/observation.sql: effects": (3, frozenset({"ids"})),
    "adapters/mssql/observation.sql: objects": (7, frozenset({"names"})),
    "adapters/mssql/gate.sql: poll": (7, frozenset({"sid", "target", "remembered"})),
    "adapters/mssql/gate.sql: principals": (4, frozenset()),
    "adapters/mssql/gate.sql: read_back": (4, frozenset({"sid", "target"})),
    "adapters/mssql/publication.sql: fence": (0, frozenset({"attempt_id"})),
    "adapters/mssql/publication.sql: insert": (1, frozenset()),
    "adapters/mssql/publication.sql: receipt": (5, frozenset({"attempt_id", "slot_id"})),
    "adapters/mssql/reader.sql: rows": (2, frozenset()),
    "adapters/mssql/reader.sql: rows_kept": (2, frozenset()),
    "adapters/mssql/schema.sql: definitions": (15, frozenset({"names"})),
    "adapters/mssql/schema.sql: has_rows": (2, frozenset()),
    "adapters/mssql/session.sql: database_state": (2, frozenset({"name"})),
    "adapters/mssql/session.sql: number": (1, frozenset()),
    "adapters/mssql/witness.sql: highest_epochs": (2, frozenset()),
}
"""Columns and values of what is not taken apart where it is asked: as the code that reads it says."""
ONE_OF = frozenset(
    {
        "adapters/ledger/mssql.sql: settle",
        "adapters/mssql/installation.sql: describe",
        "adapters/mssql/installation.sql: describe_instance",
    }
)
"""Statements that have several results, of which each run gives one."""
BY_NAME = {
    "adapters/ledger/mssql.sql: open_transaction": ("opening.py", ("authority_of", "_went_back")),
    "adapters/ledger/mssql.sql: read_standing": ("readmission.py", ("standing",)),
}
"""Answers whose columns are taken by name, and the functions that do."""
ALL = all_bound()
USES = [(name, use) for name, uses in reads().items() for use in uses]


def values_of(bound: Bound) -> frozenset[str]:
    """Return the names of the values that a statement wants."""
    return frozenset(name.removeprefix("@") for name in bound.wanted)


def wrong(name: str, use: Read, bound: Bound) -> list[str]:
    """Return what does not fit between a statement and one use of it."""
    found = []
    widths = {len(shape.columns) for shape in bound.shapes}
    if use.columns is not None and widths != {use.columns}:
        found.append(f"{use.columns} columns are taken of {sorted(widths)}")
    if use.verb in ("row", "rows") and len(bound.shapes) != 1 and name not in ONE_OF:
        found.append(f"{len(bound.shapes)} results where one is read")
    wanted = values_of(bound) - ({"target"} if use.verb == "call" else set())
    if use.verb and use.values is not None:
        if set(use.values) != wanted:
            found.append(f"{sorted(use.values)} are given for {sorted(wanted)}")
        given = {f"@{value}": kind for value, kind in use.values.items()}
        found += [str(fault) for fault in bind_with(bound.text, given)]
    return found


def test_what_is_read_is_what_is_given() -> None:
    """Where the answer is taken apart, or values are bound, at the place itself."""
    faults = {f"{use.where} {name}": wrong(name, use, ALL[name]) for name, use in USES}
    assert {where: found for where, found in faults.items() if found} == {}
    assert len(faults) > 60


def test_what_is_read_elsewhere_is_what_is_given() -> None:
    """By the list above."""
    widths = {name: {len(shape.columns) for shape in ALL[name].shapes} for name in OTHERWISE}
    assert widths == {name: ({columns} if columns else set()) for name, (columns, _) in OTHERWISE.items()}
    assert {name: values_of(ALL[name]) for name in OTHERWISE} == {name: given for name, (_, given) in OTHERWISE.items()}


def test_no_statement_is_left_out() -> None:
    """Each that gives rows, or wants values, is looked at in one of the two ways."""
    asked = {name for name, use in USES if use.columns is not None or use.values is not None}
    fitness = {f"lab/mssql/fitness.sql: {name}" for name in load(PACKAGE / "lab/mssql/fitness.sql")}
    assert {width for name in fitness for width in {len(one.columns) for one in ALL[name].shapes}} == {1}
    left = {
        name
        for name, bound in ALL.items()
        if name.startswith(("adapters/", "lab/")) and (bound.shapes or bound.wanted) and name not in asked | fitness
    }
    assert left - set(OTHERWISE) == {"adapters/mssql/reader.sql: offender"}


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_columns_that_are_taken_by_name_are_there(name: str) -> None:
    """Every attribute of a variable that is called `row`."""
    module, functions = BY_NAME[name]
    tree = ast.parse((PACKAGE / "adapters/ledger" / module).read_text(encoding="utf-8"))
    taken = {
        node.attr
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "row"
    }
    assert len(taken) > 3
    assert taken <= {column for column, _ in ALL[name].shapes[0].columns}


def test_what_is_read_of_json_is_named_in_it() -> None:
    """Every key that is taken of the JSON in `definitions` is the name of a column there."""
    tree = ast.parse((PACKAGE / "adapters/mssql/definitions.py").read_text(encoding="utf-8"))
    taken = {
        node.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Subscript | ast.Call)
        for node in ([one.slice] if isinstance(one, ast.Subscript) else one.args[:1])
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()
    }
    named = set(re.findall(r"AS \[(\w+)\]", ALL["adapters/mssql/schema.sql: definitions"].text.sql))
    assert len(named) > 8
    assert taken - {"definitions"} <= named


def test_what_does_not_fit_is_seen(tmp_path: Path) -> None:
    """Another number of columns, a value that is not wanted, a second result."""
    name = "adapters/mssql/enrolment.sql: marker"
    right = Read(where="here", verb="row", columns=10, values={})
    assert wrong(name, right, ALL[name]) == []
    assert len(wrong(name, dataclasses.replace(right, columns=9), ALL[name])) == 1
    assert len(wrong(name, dataclasses.replace(right, values={"more": types.VALUE}), ALL[name])) == 1
    receipt = "adapters/mssql/publication.sql: receipt"
    asked = {"attempt_id": BYTES, "slot_id": BYTES}
    assert wrong(receipt, Read(where="here", verb="rows", columns=5, values=asked), ALL[receipt]) == []
    asked["slot_id"] = types.VALUE
    assert len(wrong(receipt, Read(where="here", verb="rows", columns=5, values=asked), ALL[receipt])) == 1
    twice = dataclasses.replace(ALL[name], shapes=(*ALL[name].shapes, *ALL[name].shapes))
    assert len(wrong(name, right, twice)) == 1
