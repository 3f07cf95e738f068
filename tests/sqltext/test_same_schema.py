"""The control schema is one: `sql/postgres` and `sql/mssql` and the ledger's own tables say the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy.dialects import mssql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from dpone_provider.adapters.ledger.tables import METADATA
from dpone_provider.application.installation.shipped import CONTROL
from dpone_provider.application.installation.tables import Index, Table, indexes, tables
from dpone_provider.application.installation.tsql import Kind, Token, batches, tokens
from dpone_provider.domain import attempt, gate, occurrence, publication
from dpone_provider.sql_files import shipped_sql
from tests.sqltext.texts import all_texts

SCHEMA = {"postgres": ("010_control_schema.sql",), "mssql": CONTROL[:4]}
"""The scripts that make tables, and on PostgreSQL all the rest."""
MSSQL: Dialect = mssql.dialect(deprecate_large_types=True)  # type: ignore[no-untyped-call]
OTHER_FORM = {
    "evidence_digest_of_evidence": "the algorithm is named otherwise",
    "generation_from_prepared": "SQL Server has no boolean values to compare, so both sides are written out",
    "request_digest_of_request": "the algorithm is named otherwise",
    "stray_gate_evidence": "the algorithm is named otherwise",
}
"""Checks whose words differ, and why."""
MADE = {"TABLE", "SEQUENCE", "VIEW", "PROCEDURE", "FUNCTION", "TRIGGER"}
OWN = {"unsettled", "no_truncate"}
"""Tables of SQL Server alone: what settle has not seen yet, and what keeps TRUNCATE away."""


def of(dialect: str, *scripts: str) -> tuple[Token, ...]:
    """Return the tokens of scripts, or of those that make the tables."""
    return tokens("\n".join(read(dialect, one) for one in scripts or SCHEMA[dialect]))


def read(dialect: str, script: str) -> str:
    """Return a script's text."""
    return (shipped_sql(dialect) / script).read_text(encoding="utf-8")


POSTGRES: Mapping[str, Table] = {one.name: one for one in tables(of("postgres"))}
SERVER: Mapping[str, Table] = {one.name: one for one in tables(of("mssql"))}
KEYS = {
    **{
        (table.name, one.name): one.columns
        for table in SERVER.values()
        for kind in ("primary key", "unique")
        for one in table.of(kind).values()
    },
    **{(one.table, one.name): one.columns for one in indexes(of("mssql"))},
}
"""The columns of each key and index, by table and name."""
DECLARED = {table.name: table for table in METADATA.tables.values()}
TABLES = sorted(DECLARED)


def test_the_same_tables() -> None:
    """In both scripts, and as the ledger declares them."""
    assert sorted(POSTGRES) == TABLES
    assert sorted(SERVER) == sorted({*TABLES, *OWN})


@pytest.mark.parametrize("table", TABLES)
def test_the_same_columns_in_the_same_order(table: str) -> None:
    """Names and nullability; the types of SQL Server are those that the ledger's statements compile to."""
    declared = DECLARED[table].columns
    expected = [(column.name, typed(column.type), bool(column.nullable)) for column in declared]
    assert [(one.name, one.type, one.nullable) for one in SERVER[table].columns] == expected
    assert [(one.name, one.nullable) for one in POSTGRES[table].columns] == [(one[0], one[2]) for one in expected]


def typed(kind: TypeEngine[Any]) -> str:
    """Return a type as the script writes it."""
    return str(kind.compile(dialect=MSSQL)).lower().replace(" ", "").replace("integer", "int")


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("kind", ["primary key", "unique", "foreign key"])
def test_the_same_keys(table: str, kind: str) -> None:
    """Names, columns in order, and what a foreign key refers to."""
    assert SERVER[table].of(kind) == POSTGRES[table].of(kind)


@pytest.mark.parametrize("table", TABLES)
def test_the_same_checks(table: str) -> None:
    """By name. PostgreSQL's domain for digests is one check per table on SQL Server."""
    digests = [column.name for column in POSTGRES[table].columns if column.type == "digest"]
    expected = set(POSTGRES[table].of("check")) | ({f"{table}_digests"} if digests else set())
    assert set(SERVER[table].of("check")) == expected


@pytest.mark.parametrize("table", [name for name in TABLES if f"{name}_digests" in SERVER[name].of("check")])
def test_each_digest_is_checked(table: str) -> None:
    """Every column that is a digest on PostgreSQL stands in that check."""
    found = of("mssql")
    at = next(at for at, token in enumerate(found) if token.text == f"{table}_digests")
    end = next(end for end in range(at, len(found)) if found[end].text == "CONSTRAINT" or found[end].text == ";")
    checked = {found[here - 1].name for here in range(at, end) if found[here].word == "LIKE"}
    assert checked == {column.name for column in POSTGRES[table].columns if column.type == "digest"}


def test_the_same_indexes() -> None:
    """Names, tables, columns, uniqueness, and whether they have a filter."""
    assert by_name(of("mssql")) == by_name(of("postgres"))


def by_name(found: tuple[Token, ...]) -> dict[str, Index]:
    """Return a script's indexes; the schema is said on SQL Server only."""
    return {one.name: replace(one, schema="") for one in indexes(found)}


@pytest.mark.parametrize("name", ["one_pending_per_environment", "one_holder_per_environment", "attempt_live"])
def test_filters_and_checks_name_the_same_states(name: str) -> None:
    """A conflict is decided by the same states on both."""
    assert states_after(of("mssql"), name) == states_after(of("postgres"), name)


@pytest.mark.parametrize(
    "name", [name for table in TABLES for name in POSTGRES[table].of("check") if name not in OTHER_FORM]
)
def test_checks_name_the_same_words(name: str) -> None:
    """The words that a check allows are the same set; its form may differ."""
    assert states_after(of("mssql"), name) == states_after(of("postgres"), name)


def states_after(found: tuple[Token, ...], name: str) -> set[str]:
    """Return the words in capitals, or of one kind, that the definition after ``name`` has as constants."""
    at = next(at for at, token in enumerate(found) if token.text == name)
    depth, words = 0, set()
    for token in found[at:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == ";" or (depth < 1 and token.text in (",", ")")):
            break
        if token.kind is Kind.STRING and re.fullmatch(r"[A-Za-z_]+", token.value):
            words.add(token.value)
    return words


def test_keys_that_locks_stand_on_exist() -> None:
    """A hint that names an index which is not there, or other columns than it begins with, is refused by the server."""
    hint = re.compile(r"dpone_control\.(\w+)(?: AS \w+)?\s+WITH \([\w, ]+FORCESEEK \((\w+) \(([\w, ]+)\)")
    found = {said for text in all_texts() for said in hint.findall(text.sql)}
    wrong = [said for said in found if ", ".join(KEYS[said[:2]][: said[2].count(",") + 1]) != said[2]]
    assert (wrong, len(found) > 5) == ([], True)


def test_modules_name_what_is_made_before_them() -> None:
    """Only a table or a procedure may be missing when a module is made: so all that one names is there already."""
    made: set[tuple[str, str]] = set()
    missing: set[tuple[str, ...]] = set()
    for script in CONTROL:
        for batch in batches(read("mssql", script)):
            own, named = set(), set()
            for first, schema, dot, name in zip(*(batch.tokens[at:] for at in range(4)), strict=False):
                if dot.text == "." and schema.name in ("dpone_control", "dpone_gate"):
                    whole = (schema.name, name.name)
                    (own if first.word in MADE else named).add(whole if first.word != "EXEC" else ("", ""))
            made |= own | {("", "")}
            missing |= {(script, *one) for one in named - made if batch.tokens[0].word == "CREATE"}
    assert (missing, len(made) > 80) == (set(), True)


def test_no_two_objects_of_a_schema_have_one_name() -> None:
    """Tables, constraints, defaults and modules share a schema's names: the second is refused (2714)."""
    text = "\n".join(read("mssql", script) for script in CONTROL)
    made = re.findall(r"^CREATE (?:OR ALTER )?\w+ dpone_control\.(\w+)", text, re.MULTILINE)
    made += re.findall(r"\bCONSTRAINT (\w+)", text)
    assert sorted({name.lower() for name in made}) == sorted(name.lower() for name in made)
    assert len(made) > 200


@pytest.mark.parametrize(("before", "script"), list(pairwise(CONTROL[: CONTROL.index("020_gate.sql") + 1])))
def test_a_script_begins_where_the_one_before_it_ended(before: str, script: str) -> None:
    """It looks for what that one makes last, before it makes anything: an installation may be stopped anywhere."""
    made = re.findall(r"^CREATE (?:OR ALTER )?(?:\w+) (dpone_control\.\w+)", read("mssql", before), re.MULTILINE)
    said = read("mssql", script)
    assert f"OBJECT_ID(N'{made[-1]}') IS NULL" in said[: said.index("\nCREATE ")]


@pytest.mark.parametrize("script", SCHEMA["mssql"])
def test_tables_are_made_whole_or_not_at_all(script: str) -> None:
    """One transaction, in one batch that ends at once where they are there already: its last table tells."""
    text = read("mssql", script)
    *_, batch = batches(text)
    (begun,), (ended,) = (re.findall(rf"^{word} TRANSACTION;$", text, re.MULTILINE) for word in ("BEGIN", "COMMIT"))
    made = re.findall(r"^CREATE TABLE (dpone_control\.\w+)", text, re.MULTILINE)
    assert text.index(begun) < text.index("\nCREATE ") < text.rindex("\nCREATE ") < text.index(ended)
    assert (
        batch.text.index(f"IF OBJECT_ID(N'{made[-1]}') IS NOT NULL")
        < batch.text.index("RETURN;")
        < batch.text.index(begun)
    )
    assert text.count("SET NOCOUNT, XACT_ABORT ON;") == 1
    assert len(text.splitlines()) <= 250


def test_the_same_edges() -> None:
    """Of the view `edge` on SQL Server, on PostgreSQL, and of the state machines themselves."""
    declared = {
        (name, str(before), str(after))
        for name, edges in (
            ("occurrence", occurrence.EDGES),
            ("attempt", attempt.EDGES),
            ("gate", gate.EDGES),
            ("publication", publication.EDGES),
        )
        for before, after in edges
    }
    assert edges_of(of("mssql", "011_control_words.sql")) == declared
    assert edges_of(of("postgres")) == declared


def edges_of(found: tuple[Token, ...]) -> set[tuple[str, str, str]]:
    """Return the rows of the view `edge`."""
    at = next(at for at, token in enumerate(found) if token.text == "edge" and found[at - 1].word in ("VIEW", ""))
    values = next(here for here in range(at, len(found)) if found[here].word == "VALUES")
    rows: list[str] = []
    for token in found[values:]:
        if token.text == ";" or token.word == "AS":
            break
        if token.kind is Kind.STRING:
            rows.append(token.value)
    return set(zip(rows[::3], rows[1::3], rows[2::3], strict=True))


def test_the_same_laws() -> None:
    """Each law that a trigger of PostgreSQL names is named on SQL Server, and no other but settle's own."""
    assert laws("mssql") - {"settled_inside"} == laws("postgres")


def laws(dialect: str) -> set[str]:
    """Return the first argument of every call of `refuse`, and the edges' laws."""
    found: set[str] = set()
    for path in shipped_sql(dialect).glob("01*.sql"):
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"(?:PERFORM refuse\(|EXEC dpone_control\.refuse N)'([a-z_]+)'", text))
        found |= {f"{machine}_edge" for machine in re.findall(r"PERFORM require_edge\('([a-z]+)'", text)}
    return found


def test_columns_that_move_may_be_updated_and_no_others() -> None:
    """The grants of 018 and the triggers of the machines are two sides of one list."""
    text = read("mssql", "018_control_identity.sql")
    granted = {
        table: {name.strip(" []") for name in columns.split(",")}
        for table, columns in re.findall(r"GRANT UPDATE ON OBJECT::dpone_control\.(\w+) \(([^)]*)\)", text)
    }
    machines = "\nGO\n".join(read("mssql", one) for one in CONTROL)
    for batch in batches(machines):
        if found := re.search(r"TRIGGER dpone_control\.(\w+)_moves ON", batch.text):
            kept = set(re.findall(r"UPDATE\((\w+)\)", batch.text))
            assert {column.name for column in DECLARED[found[1]].columns} - kept == granted[found[1]], found[1]
    assert set(granted) == {
        name.removesuffix("_moves") for name in re.findall(r"dpone_control\.(\w+_moves) ON", machines)
    }


def test_every_table_keeps_its_rows() -> None:
    """Each has a trigger that refuses DELETE, and one foreign key at least that refuses TRUNCATE."""
    text = read("mssql", "015_control_laws.sql")
    kept = set(re.findall(r"TRIGGER dpone_control\.(\w+)_kept ON dpone_control\.\1 AFTER (?:UPDATE, )?DELETE", text))
    assert kept == set(TABLES) - {"slot_claim"}
    referred = {one.refers_to for table in SERVER.values() for one in table.of("foreign key").values()}
    assert set(TABLES) - referred == set()
