"""What of the child needs no dbt; the rest is shown by the compiler's and the runner's tests."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import pytest

from dpone_provider.adapters.dbt import child


def manifest(**node: object) -> bytes:
    return json.dumps(
        {
            "metadata": {"generated_at": "now", "invocation_id": "x", "user_id": None, "dbt_version": "1.11"},
            "nodes": {"seed.p.s": {"created_at": 1.5, "root_path": "/home/me/p", "name": "s", **node}},
            "disabled": {"model.p.d": [{"created_at": 2.5, "name": "d"}]},
            "selectors": {},
            "group_map": [],
        }
    ).encode()


def test_a_manifest_loses_times_ids_and_places_and_nothing_else() -> None:
    columns = {"created_at": {"name": "created_at"}}
    config = {"meta": {"created_at": "by hand", "root_path": "kept"}}
    found = json.loads(child.canonical_manifest(manifest(columns=columns, config=config)))
    assert found["metadata"] == {"dbt_version": "1.11"}
    assert found["nodes"]["seed.p.s"] == {"name": "s", "columns": columns, "config": config}
    assert found["disabled"]["model.p.d"] == [{"name": "d"}]


def test_a_manifest_has_one_form_whatever_the_order() -> None:
    one = child.canonical_manifest(b'{"metadata": {}, "nodes": {"b": {}, "a": {"y": "\\u00fc", "x": 1}}}')
    other = child.canonical_manifest(b'{"nodes": {"a": {"x": 1, "y": "\xc3\xbc"}, "b": {}}, "metadata": {}}')
    assert one == other
    assert b" " not in one


def test_messages_lose_secrets_paths_and_control_characters_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_ENV_SECRET_DPONE_PASSWORD", "hush-hush")
    monkeypatch.setattr(child, "OWN_PATHS", ["/tmp/attempt/dbt", "/tmp/attempt/project"])
    told = child.scrub(
        "\x1b[31mhush-hush at /tmp/attempt/dbt/target/run/m.sql in /tmp/attempt/project\nnext" + "x" * 9000
    )
    assert "hush" not in told
    assert "/tmp" not in told
    assert "\x1b" not in told
    assert "target/run/m.sql in .\nnext" in told
    assert len(told) == child.MAX_MESSAGE
    assert child.scrub(None) == ""


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("success", "success"),
        ("pass", "pass"),
        ("warn", "warn"),
        ("fail", "fail"),
        ("skipped", "skipped"),
        ("error", "error"),
        ("runtime error", "error"),
        ("partial success", "error"),
        ("no-op", "error"),
        ("a word of a later version", "error"),
    ],
)
def test_what_is_not_known_to_be_good_is_an_error(word: str, status: str) -> None:
    assert child.status_of(word) == status


def test_letters_are_those_that_are_sent_and_mean_something() -> None:
    assert child.letters("select 1 -- plain") == set()
    carried = "EXEC('create view v as select N''жук'' as n, ''--é'' as \"ß\" -- ä\n/* ö */;')"
    assert child.letters(carried) == set("жукéß")
    assert child.letters("declare @body nvarchar(max) = N'select N''€'' -- ü';") == set()


def event(name: str, status: str = "success") -> SimpleNamespace:
    data = SimpleNamespace(
        node_info=SimpleNamespace(unique_id="model.p.m"),
        run_result=SimpleNamespace(status=status, message="SELECT 1"),
    )
    return SimpleNamespace(info=SimpleNamespace(name=name), data=data)


def test_starts_and_ends_of_nodes_are_passed_on_and_nothing_else() -> None:
    readable, writable = os.pipe()
    tell, ended = child.Telling(writable), set[str]()
    for name in ("NodeStart", "SQLQuery", "NodeFinished"):
        child.pass_on(event(name), tell, ended)
    os.close(writable)
    with open(readable) as told:
        assert [json.loads(line) for line in told] == [
            {"event": "node", "node": "model.p.m", "status": "started", "message": ""},
            {"event": "node", "node": "model.p.m", "status": "success", "message": "SELECT 1"},
        ]
    assert ended == {"model.p.m"}


def test_results_are_none_where_dbt_did_not_come_that_far() -> None:
    assert child.results_of(SimpleNamespace(result=None)) == []
    assert child.results_of(SimpleNamespace(result=SimpleNamespace(results=[1]))) == [1]


def test_a_reason_is_told_or_its_absence_is() -> None:
    assert child.problem_of(SimpleNamespace(exception=ValueError("why"))) == "why"
    assert "no reason" in child.problem_of(SimpleNamespace(exception=None))


def test_an_adapter_that_is_missing_is_refused_by_name() -> None:
    with pytest.raises(child.Refusal, match="dbt-nowhere is not installed beside"):
        child.require_adapter("nowhere")
