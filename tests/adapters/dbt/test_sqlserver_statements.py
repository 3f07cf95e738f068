"""Everything that the installed dbt-sqlserver sends for a node of every kind, twice, and what each of it asks for.

The real adapter runs, on a stand-in for its driver that is no SQL Server. What another version sends fails here.
To look at what changed: `python -m tests.adapters.dbt.test_sqlserver_statements`, which writes the list anew.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from dpone_provider.documents.dbt_manifest import DbtManifest, read_manifest
from dpone_provider.domain.footprint import written_by_dbt
from dpone_provider.domain.identity import EngineKind
from dpone_provider.sql_files import shipped_sql
from tests.adapters.dbt.sqlserver import FOUND, Batch, Recorded, recorded
from tests.adapters.dbt.sqlserver_effects import EFFECTS, INNER, NotUnderstood, effects
from tests.adapters.ledger.tsql import refusals

LIST = Path(__file__).with_name("sqlserver_statements.txt")
DEFINING = ("make", "make view", "make or alter view", "rename", "drop")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("recorded"))


def sessions(batches: tuple[Batch, ...]) -> Iterator[tuple[str, str, list[Batch]]]:
    """Yield run, node and batches of each session; the node is the one that dbt names in any of them."""
    for (run, _), group in groupby(batches, key=lambda one: (one.run, one.session)):
        mine = list(group)
        yield run, next((one.node for one in mine if one.node), ""), mine


def listed(found: Recorded) -> str:
    """Return the list: a line for each batch, under its node; of the tests, which are all alike, the first."""
    lines, tests = [], set()
    for run, node, batches in sessions(found.batches):
        told = [
            f"    {'; '.join(f'{effect.words} {name}'.strip() for effect, name in done)}"
            for done in (list(effects(one.text)) for one in batches)
            if done
        ]
        kind, _, name = node.partition(".")
        if kind == "test":
            name = "a test"
            if tuple(told) in tests:
                continue
            tests.add(tuple(told))
        lines += [f"{run} run, {name.rpartition('.')[2] or 'dbt itself'}", *told]
    return "\n".join(lines) + "\n"


def granted() -> set[str]:
    """Return what a writer role is granted, as the script that enrols a schema says it."""
    script = (shipped_sql("mssql") / "045_enrol_schema.sql").read_text()
    found = set()
    for permissions, where in re.findall(r"^GRANT ([\w, ]+?)(?: ON (\S+))? TO \[dpone_writer_", script, re.MULTILINE):
        place = {"": "the database", "SCHEMA::[${schema}]": "the schema"}.get(where, where.removeprefix("OBJECT::"))
        found |= {f"{one.strip()} on {place}" for one in permissions.split(",")}
    return found


def test_every_node_is_built_both_times(seen: Recorded) -> None:
    for results in seen.results:
        failed = {node: how for node, how in results.items() if how[0] not in ("success", "pass")}
        # Its text would not have come to the server as it is: the stand-in has the code page of western Europe.
        (how,) = [failed.pop("model.flights_mart.lost")]
        assert "does not have ж к у" in how[1]
        assert failed == {}
    assert len(seen.results[1]) > len(seen.results[0]) > 20


def test_what_is_sent_is_what_the_list_says(seen: Recorded) -> None:
    assert listed(seen) == LIST.read_text()


def test_every_kind_of_effect_is_seen(seen: Recorded) -> None:
    """What is known and is sent no more would hold nothing."""
    done = {id(effect) for batch in seen.batches for effect, _ in effects(batch.text)}
    assert [effect.words for effect in EFFECTS if effect.words and id(effect) not in done] == []


def test_an_issued_login_has_every_permission_that_is_asked_for_and_no_other(seen: Recorded) -> None:
    needed = {need for batch in seen.batches for effect, _ in effects(batch.text) for need in effect.needs}
    # A receipt is asked for by transfers; VIEW DEFINITION of the database holds for its schemas too.
    assert granted() - {"EXECUTE on dpone_receipt.add_receipt", "VIEW DEFINITION on the schema"} == needed


def test_the_trigger_that_refuses_code_lets_all_of_it_pass() -> None:
    """By the events that SQL Server raises for what the list holds; `sp_rename` raises RENAME."""
    kinds = ("TABLE", "VIEW", "INDEX", "EXTENDED_PROPERTY")
    raised = {f"{verb}_{kind}" for verb in ("CREATE", "ALTER", "DROP") for kind in kinds} | {"RENAME"}
    script = (shipped_sql("mssql") / "040_enrol_target.sql").read_text()
    (listed_events,) = re.findall(r"TRIGGER dpone_definition ON DATABASE\s+FOR ([\w,\s]+?)\s+AS\b", script)
    refused = {one.strip() for one in listed_events.split(",")}
    assert {"CREATE_PROCEDURE", "CREATE_TRIGGER", "CREATE_FUNCTION", "GRANT_DATABASE"} <= refused
    assert not raised & refused
    assert not {one for one in refused if one.startswith("DDL_")}  # a group would have to be looked into


def test_every_batch_is_read_by_the_servers_parser(seen: Recorded, tmp_path: Path) -> None:
    """The batches, and what they carry in ``EXEC('…')``."""
    (tmp_path / ".maxdop.json").write_text('{"initialQuotedIdentifiers": true}')  # as ODBC's sessions have it
    outer = {re.sub(r"testview_\w+", "testview", one.text).replace("?", "@p") for one in seen.batches}
    inner = {found[1].replace("''", "'") for text in outer for found in INNER.finditer(text)}
    texts = {f"{number}": text for number, text in enumerate(sorted(outer | inner))}
    assert len(inner) > 50
    assert refusals(texts, tmp_path) == {}


def test_nothing_is_defined_outside_of_the_footprint_and_nothing_is_left(seen: Recorded) -> None:
    manifest = read_manifest(json.dumps(seen.manifest).encode(), "the manifest")
    assert isinstance(manifest, DbtManifest), manifest
    nodes = [one.node for one in manifest.nodes.values()]
    allowed = {one.relation.name for node in nodes for one in written_by_dbt(EngineKind.MSSQL, node)}
    targets = {node.relation.name for node in nodes if node.relation is not None} - {"lost"}
    defined: set[str] = set()
    for batch in seen.batches:
        if not batch.node.startswith("test."):
            for effect, name in effects(batch.text):
                if effect.words in DEFINING:
                    defined |= set(name.split(" to "))
    assert defined <= allowed
    assert {one.removeprefix("mart.") for one in seen.catalog} == targets
    assert {one.removeprefix("mart.") for one in FOUND} < targets


def test_the_view_of_a_test_is_never_committed(seen: Recorded) -> None:
    """Whenever dbt is killed, the server undoes the view with the transaction: there is none to be removed."""
    tests = [batches for _, node, batches in sessions(seen.batches) if node.startswith("test.")]
    assert len(tests) > 20
    for batches in tests:
        words = [[effect.words for effect, _ in effects(one.text)] for one in batches]
        assert [one for one in words if one] == [
            ["begin"],
            ["find the schema", "make view", "count what fails", "drop"],
            ["rollback"],
        ]


def test_a_table_is_replaced_in_one_transaction(seen: Recorded) -> None:
    for run, node, batches in sessions(seen.batches):
        told = [(effect.words, name) for one in batches for effect, name in effects(one.text)]
        renames = [place for place, (words, _) in enumerate(told) if words == "rename"]
        if run == "second" and renames and node.startswith("model."):
            marks = [words for words, _ in told[renames[0] : renames[-1]] if words in ("begin", "commit", "rollback")]
            before = [words for words, _ in told[: renames[0]] if words in ("begin", "commit", "rollback")]
            assert marks == [], node
            assert before[-1] == "begin", node


def test_each_connection_is_a_login_of_its_own_and_closed(seen: Recorded) -> None:
    """No pool keeps a session, no driver opens another in the place of one that broke, and the language is ours."""
    assert len(seen.connections) == len({one.session for one in seen.batches})
    for text in seen.connections:
        first: dict[str, str] = {}
        for part in text.split(";"):
            key, _, value = part.partition("=")
            first.setdefault(key.lower(), value)
        assert (first["pooling"], first["connectretrycount"]) == ("no", "0")
        assert first["language"] == "us_english"
        assert (first["encrypt"], first["trustservercertificate"]) == ("Yes", "Yes")


@pytest.mark.parametrize("text", ["GRANT SELECT ON mart.x TO public", "EXEC('CREATE PROCEDURE p AS SELECT 1')", "go"])
def test_what_is_not_known_is_not_passed_over(text: str) -> None:
    with pytest.raises(NotUnderstood):
        list(effects(text))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        sys.stdout.write(f"{LIST.write_text(listed(recorded(Path(directory))))} characters in {LIST}\n")
