from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpone_provider.adapters.dbt.rules import (
    TRANSACTIONS,
    Offence,
    offences,
    offences_of_flags,
    offences_of_seeds,
    offences_of_tests,
    refusal_of,
)
from dpone_provider.domain.identity import EngineKind


def node(name: str, *, kind: str = "model", reads: tuple[str, ...] = (), **fields: Any) -> tuple[str, dict[str, Any]]:
    """One node of a manifest; ``config`` is merged into that of a table."""
    unique_id = f"{kind}.p.{name}"
    plain = {"materialized": {"model": "table"}.get(kind, kind)}
    made = {
        "unique_id": unique_id,
        "resource_type": kind,
        "language": "sql",
        "database": "warehouse",
        "schema": "mart",
        "alias": name,
        "relation_name": f'"warehouse"."mart"."{name}"',
        "depends_on": {"nodes": [read if "." in read else f"model.p.{read}" for read in reads]},
        **fields,
        "config": {**plain, **fields.get("config", {})},
    }
    return unique_id, made


def macro(name: str, package: str, path: str) -> tuple[str, dict[str, str]]:
    return f"macro.{package}.{name}", {"name": name, "package_name": package, "original_file_path": path}


DBTS = (
    macro("create_table_as", "dbt", "macros/relations/table/create.sql"),
    macro("make_temp_relation", "dbt", "macros/adapters/relation.sql"),
    macro("get_where_subquery", "dbt", "macros/materializations/tests/where_subquery.sql"),
    macro("date_spine", "dbt", "macros/utils/date_spine.sql"),
    macro("generate_schema_name", "dbt", "macros/get_custom_name/get_custom_schema.sql"),
    macro("postgres__drop_table", "dbt_postgres", "macros/relations/table/drop.sql"),
)


def found(
    *nodes: tuple[str, dict[str, Any]],
    selected: dict[str, list[str]] | None = None,
    macros: tuple[tuple[str, dict[str, str]], ...] = (),
    kind: EngineKind = EngineKind.POSTGRES,
    **sections: Any,
) -> list[Offence]:
    manifest = {"nodes": dict(nodes), "sources": {}, "macros": dict(DBTS + macros), **sections}
    adapter = "postgres" if kind is EngineKind.POSTGRES else "sqlserver"
    chosen = {"w": [unique_id for unique_id, _ in nodes]} if selected is None else selected
    return list(offences(manifest, chosen, kind, adapter, "warehouse"))


def reasons(*nodes: tuple[str, dict[str, Any]], **more: Any) -> list[str]:
    return [one.reason for one in found(*nodes, **more)]


def test_an_ordinary_project_has_no_offence() -> None:
    assert not found(
        node("a"),
        node("b", config={"materialized": "view"}, reads=("a",)),
        node("c", config={"materialized": "incremental", "incremental_strategy": "merge"}),
        node("d", config={"materialized": "incremental", "incremental_strategy": None}),
        node("e", config={"materialized": "ephemeral"}, relation_name=None),
        node("s", kind="seed", depends_on={"macros": []}),
        node("h", kind="snapshot", config={"strategy": "check"}),
        node("t", kind="test", relation_name=None, reads=("a",)),
        macros=(macro("generate_schema_name", "p", "macros/x.sql"), macro("test_mine", "p", "macros/t.sql")),
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"config": {"pre-hook": [{"sql": "drop table x"}]}}, "dbt_hook"),
        ({"config": {"post-hook": [{"sql": "analyze"}]}}, "dbt_hook"),
        ({"config": {"grants": {"select": ["x"]}}}, "dbt_setting_with_effects"),
        ({"config": {"sql_header": "set x = 1;"}}, "dbt_setting_with_effects"),
        ({"config": {"unlogged": True}}, "dbt_setting_with_effects"),
        ({"config": {"masks": {"c": "x"}}}, "dbt_setting_with_effects"),
        ({"config": {"denies": {"select": ["x"]}}}, "dbt_setting_with_effects"),
        ({"config": {"schema_authorization": "x"}}, "dbt_setting_with_effects"),
        ({"config": {"auto_provision_aad_principals": True}}, "dbt_setting_with_effects"),
        ({"config": {"materialized": "materialized_view"}}, "dbt_materialization_unknown"),
        ({"config": {"materialized": "incremental", "incremental_strategy": "microbatch"}}, "dbt_strategy_unknown"),
        ({"config": {"materialized": "incremental", "incremental_strategy": "mine"}}, "dbt_strategy_unknown"),
        ({"columns": {"c": {"masked_with": "default()"}}}, "dbt_setting_with_effects"),
        ({"language": "python"}, "dbt_python_model"),
        ({"database": "other"}, "dbt_other_database"),
        ({"alias": "Name", "relation_name": "warehouse.mart.Name"}, "dbt_name_folded"),
        ({"kind": "snapshot", "config": {"strategy": "mine"}}, "dbt_strategy_unknown"),
        ({"kind": "test", "config": {"store_failures": True}}, "dbt_test_stores_failures"),
        ({"kind": "test", "config": {"store_failures_as": "table"}}, "dbt_test_stores_failures"),
    ],
)
def test_each_offence_has_its_reason_and_names_the_node(fields: dict[str, Any], reason: str) -> None:
    (offence,) = found(node("m", **fields))
    assert offence.reason == reason
    assert offence.subject.endswith(".p.m")


def test_failures_kept_in_memory_only_are_fine() -> None:
    stored = {"store_failures": True, "store_failures_as": "ephemeral"}
    assert not found(node("m", kind="test", config=stored, relation_name=None))


def test_an_unquoted_name_in_lower_case_is_what_it_says() -> None:
    assert not found(node("m", relation_name="warehouse.mart.m"))


def test_sql_servers_names_are_its_collations_business() -> None:
    assert not found(node("M", relation_name="warehouse.mart.M"), kind=EngineKind.MSSQL)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"alias": "a.b"}, "dbt_name_not_quoted"),
        ({"alias": "o'clock"}, "dbt_name_not_quoted"),
        ({"schema": "[mart]"}, "dbt_name_not_quoted"),
        ({"alias": "two words"}, "dbt_name_not_quoted"),
        ({"constraints": [{"type": "foreign_key"}]}, "dbt_foreign_key"),
        ({"columns": {"c": {"constraints": [{"type": "foreign_key"}]}}}, "dbt_foreign_key"),
    ],
)
def test_what_dbt_sqlserver_alone_would_do_wrong_is_refused_there_alone(fields: dict[str, Any], reason: str) -> None:
    assert reasons(node("m", **fields), kind=EngineKind.MSSQL) == [reason]
    assert not found(node("m", **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"alias": "two words", "config": {"as_columnstore": False}},
        {"alias": "two words", "config": {"materialized": "view"}},
        {"alias": "two words", "kind": "seed"},
        {"alias": "Größe_2#"},
        {"constraints": [{"type": "check"}], "columns": {"c": {"constraints": [{"type": "primary_key"}]}}},
    ],
)
def test_names_that_dbt_sqlserver_quotes_and_constraints_of_the_table_itself_are_fine(fields: dict[str, Any]) -> None:
    assert not found(node("m", **fields), kind=EngineKind.MSSQL)


def test_tests_that_could_make_no_view_are_refused_on_sql_server() -> None:
    """The view of each is made in the target's schema, which the login may not write unless the workload does."""
    nodes = dict((node("m"), node("t", kind="test", relation_name=None, schema="dbt_test__audit")))
    together = {"w": list(nodes), "untested": ["model.p.m"]}
    (offence,) = offences_of_tests(nodes, together, "elsewhere")
    assert (offence.reason, offence.subject) == ("dbt_tests_outside", "workload w")
    assert "elsewhere" in offence.found
    assert "schema: mart" in offence.allowed
    assert not list(offences_of_tests(nodes, together, "mart"))
    (alone,) = offences_of_tests(nodes, {"w": ["test.p.t"]}, "mart")
    assert "one that the workload writes" in alone.allowed


def test_a_seed_whose_text_would_be_changed_is_refused_on_sql_server(tmp_path: Path) -> None:
    """The adapter makes varchar of every text, and SQL Server question marks of what its code page does not have."""
    (tmp_path / "s.csv").write_text("\ufeffn;word;other\n1;Größe;x\n", encoding="utf-8")
    plain = node("s", kind="seed", original_file_path="s.csv", config={"delimiter": ";"})
    (offence,) = offences_of_seeds(dict([plain]), {"w": ["seed.p.s"]}, tmp_path)
    assert offence.reason == "dbt_seed_text"
    assert "in word, without" in offence.found
    types = {"delimiter": ";", "column_types": {"word": "nvarchar(9)"}}
    typed = node("s", kind="seed", original_file_path="s.csv", config=types)
    assert not list(offences_of_seeds(dict([typed, node("m")]), {"w": ["seed.p.s", "model.p.m"]}, tmp_path))
    package = tmp_path / "dbt_packages" / "other"
    package.mkdir(parents=True)
    (tmp_path / "s.csv").rename(package / "s.csv")
    theirs = node("s", kind="seed", original_file_path="s.csv", package_name="other", config={"delimiter": ";"})
    assert len(list(offences_of_seeds(dict([theirs]), {"w": ["seed.p.s"]}, tmp_path))) == 1


def test_each_statement_by_itself_is_refused_on_sql_server() -> None:
    (offence,) = offences_of_flags({TRANSACTIONS: False, "another": False})
    assert offence.reason == "dbt_without_transactions"
    assert TRANSACTIONS in offence.found
    assert TRANSACTIONS in offence.allowed
    assert not list(offences_of_flags({TRANSACTIONS: True}))
    assert not list(offences_of_flags({"a_flag_of_dbt_postgres": False}))


def test_what_no_workload_selects_is_not_looked_at() -> None:
    assert not found(node("m", language="python"), selected={"w": []})


def test_hooks_of_the_run_and_functions_are_refused_whatever_is_selected() -> None:
    hook = node("start", kind="operation")
    assert reasons(hook, selected={}, functions={"function.p.f": {}}) == ["dbt_hook", "dbt_function"]


def test_a_source_in_another_database_is_refused() -> None:
    source = {"database": "other", "relation_name": '"other"."s"."t"'}
    offending = found(node("m", reads=("source.p.s.t",)), sources={"source.p.s.t": source})
    assert [one.reason for one in offending] == ["dbt_other_database"]
    assert "source.p.s.t" in offending[0].found


@pytest.mark.parametrize(
    "name",
    ["create_table_as", "postgres__create_table_as", "default__make_temp_relation", "postgres__drop_table", "ref"],
)
@pytest.mark.parametrize("package", ["p", "some_package"])
def test_a_macro_in_the_place_of_one_that_makes_relations_is_refused(name: str, package: str) -> None:
    assert reasons(macros=(macro(name, package, "macros/mine.sql"),)) == ["dbt_macro_overridden"]


def test_a_materialization_of_the_projects_own_is_refused_even_under_a_known_name() -> None:
    own = macro("materialization_table_postgres", "p", "macros/mine.sql")
    assert reasons(macros=(own,)) == ["dbt_custom_materialization"]


@pytest.mark.parametrize("name", ["date_spine", "default__date_spine", "get_where_subquery", "sqlserver__anything"])
def test_macros_that_only_write_expressions_may_be_anyones(name: str) -> None:
    assert not found(macros=(macro(name, "dbt_utils", "macros/mine.sql"),))


def test_a_view_over_a_table_of_another_workload_would_be_dropped_by_it() -> None:
    nodes = (
        node("table"),
        node("inlined", config={"materialized": "ephemeral"}, reads=("table",), relation_name=None),
        node("under", config={"materialized": "view"}, reads=("inlined",)),
        node("view", config={"materialized": "view"}, reads=("under",)),
    )
    split = {"one": ["model.p.table"], "two": ["model.p.under", "model.p.view"]}
    (first, second) = found(*nodes, selected=split)
    assert first.reason == second.reason == "dbt_view_dropped_by_another_workload"
    assert "model.p.under" in first.subject
    assert "workload one rebuilds model.p.table" in second.found
    together = {"one": ["model.p.table", "model.p.under", "model.p.view"]}
    assert not found(*nodes, selected=together)


def test_a_table_over_another_workloads_table_stays() -> None:
    nodes = (node("table"), node("mart", reads=("table",)))
    assert not found(*nodes, selected={"one": ["model.p.table"], "two": ["model.p.mart"]})


def test_one_refusal_names_the_first_ten_and_counts_the_rest() -> None:
    refused = refusal_of(found(*[node(f"m{n:02}", language="python") for n in range(13)]), "p")
    assert refused is not None
    assert refused.problem.reason == "dbt_python_model"
    assert "model.p.m09" in refused.problem.found
    assert "model.p.m10" not in refused.problem.found
    assert "and 3 more" in refused.problem.found
    assert refusal_of([], "p") is None
