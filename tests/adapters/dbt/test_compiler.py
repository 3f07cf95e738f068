from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpone_provider.adapters.dbt.compiler import DbtChildCompiler
from dpone_provider.adapters.dbt.interpreter import CHILD, dbt_python
from dpone_provider.adapters.process.runner import GuardedChildren
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.derivation import derive
from dpone_provider.application.ports.dbt import CompiledProject, DbtCompiler
from dpone_provider.documents.dbt_manifest import DbtManifest, read_manifest
from dpone_provider.domain.identity import EngineKind, Relation
from dpone_provider.domain.outcomes import Refused
from tests.adapters.dbt.projects import FLIGHTS, compile_project, write_project

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

SELECTORS = {"delays": ["+daily_carrier_delays"], "hours": ["flights_by_hour"], "nothing": ["no_such_model"]}


def tree(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def flights() -> CompiledProject:
    before = tree(FLIGHTS)
    compiled = compile_project(FLIGHTS, SELECTORS)
    assert isinstance(compiled, CompiledProject)
    assert tree(FLIGHTS) == before
    return compiled


def refused(outcome: CompiledProject | Refused, reason: str) -> Refused:
    assert isinstance(outcome, Refused)
    assert outcome.problem.reason == reason, outcome.problem
    return outcome


def test_the_compiler_is_what_the_port_asks_for() -> None:
    compiler: DbtCompiler = DbtChildCompiler(GuardedChildren(), SystemClock())
    assert compiler


def test_the_project_its_adapter_and_versions_are_told(flights: CompiledProject) -> None:
    assert flights.project_name == "flights_mart"
    assert flights.adapter_kind is EngineKind.POSTGRES
    assert [name for name, _ in flights.adapter_versions] == ["dbt-adapters", "dbt-common", "dbt-core", "dbt-postgres"]
    assert all(version for _, version in flights.adapter_versions)


def test_each_selector_gives_exactly_its_nodes_in_id_order(flights: CompiledProject) -> None:
    models = {name: [one for one in ids if one.startswith("model.")] for name, ids in flights.selected.items()}
    assert models == {
        "delays": ["model.flights_mart.daily_carrier_delays", "model.flights_mart.stg_flights"],
        "hours": ["model.flights_mart.flights_by_hour"],
        "nothing": [],
    }
    assert list(flights.selected["delays"]) == sorted(flights.selected["delays"])
    assert any(one.startswith("test.") for one in flights.selected["hours"])


def test_nodes_say_what_they_are_where_they_stand_and_what_they_read_also_through_views(
    flights: CompiledProject,
) -> None:
    nodes = {node.node_id: node for node in flights.nodes}
    delays = nodes["model.flights_mart.daily_carrier_delays"]
    assert delays.relation == Relation("mart", "daily_carrier_delays")
    assert delays.materialized == "table"
    assert delays.rebuilt_whole
    assert delays.reads == (Relation("mart", "stg_flights"), Relation("stage", "flights"))
    assert not nodes["model.flights_mart.flights_by_hour"].rebuilt_whole


def test_the_manifest_depends_on_the_project_alone(flights: CompiledProject, tmp_path: Path) -> None:
    copy = shutil.copytree(FLIGHTS, tmp_path / "elsewhere")
    again = compile_project(copy, {"one": ["fleet_usage"]})
    assert isinstance(again, CompiledProject)
    assert again.manifest == flights.manifest


def test_the_manifest_holds_no_path_of_this_machine_and_no_time(flights: CompiledProject) -> None:
    text = flights.manifest.decode()
    assert str(FLIGHTS.parent) not in text
    assert "/tmp/" not in text
    manifest = json.loads(text)
    assert not {"generated_at", "invocation_id", "user_id"} & set(manifest["metadata"])
    entries = [*manifest["nodes"].values(), *manifest["macros"].values(), *manifest["sources"].values()]
    assert not any("created_at" in entry for entry in entries)


def test_the_marts_that_are_published_have_contracts_with_data_types(flights: CompiledProject) -> None:
    nodes = json.loads(flights.manifest)["nodes"]
    for name in ("daily_carrier_delays", "fleet_usage"):
        node = nodes[f"model.flights_mart.{name}"]
        assert node["config"]["contract"]["enforced"]
        assert all(column["data_type"] for column in node["columns"].values())


def test_a_project_that_does_not_parse_is_refused_in_dbts_own_words(tmp_path: Path) -> None:
    log: list[str] = []
    project = write_project(tmp_path / "p", {"models/broken.sql": "select * from {{ ref('absent') }}"})
    outcome = refused(compile_project(project, {"all": ["*"]}, log=log), "dbt_project_does_not_parse")
    assert "model.small.broken" in outcome.problem.found
    assert "absent" in outcome.problem.found
    assert "dbt parse" in outcome.problem.next_command
    assert "\x1b" not in outcome.problem.found


def test_packages_have_to_stand_inside_the_project(tmp_path: Path) -> None:
    packages = "packages:\n  - package: dbt-labs/dbt_utils\n    version: 1.3.0\n"
    project = write_project(tmp_path / "p", {"packages.yml": packages, "models/m.sql": "select 1 as n"})
    outcome = refused(compile_project(project, {"all": ["*"]}), "dbt_project_does_not_parse")
    assert "package" in outcome.problem.found


def test_python_code_in_the_child_cannot_connect_anywhere() -> None:
    program = """
import runpy, sys, socket, urllib.request
child = runpy.run_path(sys.argv[1], run_name="child")
child["forbid_network"]()
for reach in (lambda: socket.create_connection(("127.0.0.1", 1)), lambda: urllib.request.urlopen("http://localhost/"),
              lambda: socket.gethostbyname("localhost"), lambda: socket.socket().connect(("127.0.0.1", 1))):
    try:
        reach()
    except RuntimeError as error:
        assert "no network" in str(error)
    else:
        raise AssertionError("reached out")
"""
    subprocess.run([sys.executable, "-I", "-c", program, str(CHILD)], check=True)


def test_everything_that_no_footprint_shows_is_refused_at_once_and_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The caller's environment is not the project's: nothing of it may decide what is compiled.
    monkeypatch.setenv("MY_ALIAS", "not_seen")
    files = {
        "dbt_project.yml": 'name: small\nversion: 1.0.0\nprofile: small\non-run-end: ["grant select on x to y"]\n',
        "models/hooked.sql": "{{ config(post_hook='drop table x') }} select 1 as n",
        "models/granted.sql": "{{ config(grants={'select': ['somebody']}) }} select 1 as n",
        "models/materialised.sql": "{{ config(materialized='materialized_view') }} select 1 as n",
        "models/own.sql": "{{ config(materialized='mine') }} select 1 as n",
        "models/batched.sql": (
            "{{ config(materialized='incremental', incremental_strategy='insert_overwrite') }} select 1 as n"
        ),
        "models/elsewhere.sql": "{{ config(database='other') }} select 1 as n",
        "models/folded.sql": "{{ config(alias=env_var('MY_ALIAS', 'Folded')) }} select 1 as n",
        "macros/mine.sql": "{% materialization mine, default %}{{ return({'relations': []}) }}{% endmaterialization %}",
        "macros/create.sql": "{% macro postgres__create_table_as(t, r, s) %}drop table x{% endmacro %}",
        "models/schema.yml": (
            "version: 2\nmodels:\n  - name: hooked\n    columns:\n      - name: n\n        data_tests:\n"
            "          - not_null: {config: {store_failures: true}}\n"
        ),
    }
    files["dbt_project.yml"] += "quoting: {identifier: false, schema: false, database: false}\n"
    outcome = compile_project(write_project(tmp_path / "p", files), {"all": ["*"]})
    assert isinstance(outcome, Refused)
    found = outcome.problem.found
    for told in (
        "operation.small.small-on-run-end-0: a hook of the run",
        "model.small.hooked: a post-hook",
        "model.small.granted: the setting grants",
        "model.small.materialised: materialization materialized_view",
        "macro.small.materialization_mine_default: a materialization of its own",
        "macro.small.postgres__create_table_as: a macro in the place of dbt's",
        "model.small.batched: incremental strategy insert_overwrite",
        "model.small.elsewhere: database other",
        "model.small.folded: the name Folded",
        "more",
    ):
        assert told in found, found


def test_an_adapter_that_is_not_installed_is_refused_with_those_that_are(tmp_path: Path) -> None:
    project = write_project(tmp_path / "p", {"models/m.sql": "select 1 as n"})
    compiler = DbtChildCompiler(GuardedChildren(), SystemClock(), Path(sys.executable))
    outcome = refused(
        compiler.compile(project, EngineKind.MSSQL, "warehouse", "mart", {"all": ["*"]}), "dbt_adapter_missing"
    )
    assert "beside nothing" in outcome.problem.found


def has_odbc() -> bool:
    """Tell whether dbt's own environment can load pyodbc, which needs the system's driver manager."""
    python = dbt_python({})
    return (
        isinstance(python, Path) and subprocess.run([python, "-I", "-c", "import pyodbc"], check=False).returncode == 0
    )


WITH_TRANSACTIONS = (
    "name: small\nversion: 1.0.0\nprofile: small\nmodels:\n  +materialized: table\n"
    "flags:\n  dbt_sqlserver_use_dbt_transactions: true\n"
)
"""A project file that says what dbt-sqlserver does not do by itself."""


@pytest.mark.skipif(not has_odbc(), reason="dbt's environment cannot load pyodbc: Debian's package libodbc2 is missing")
def test_a_project_compiles_for_sql_server_without_any_connection(tmp_path: Path) -> None:
    model = "select * from {{ ref('first') }}"
    files = {"models/first.sql": "select 1 as n", "models/second.sql": model}
    project = write_project(tmp_path / "p", {"dbt_project.yml": WITH_TRANSACTIONS, **files})
    compiler = DbtChildCompiler(GuardedChildren(), SystemClock())
    found = compiler.compile(project, EngineKind.MSSQL, "warehouse", "mart", {"all": ["+second"]})
    assert isinstance(found, CompiledProject), found
    assert found.selected["all"] == ("model.small.first", "model.small.second")
    assert dict(found.adapter_versions)["dbt-sqlserver"].startswith("1.11.")
    assert dict(found.adapter_flags)["dbt_sqlserver_enable_safe_type_expansion"] is False


@pytest.mark.skipif(not has_odbc(), reason="dbt's environment cannot load pyodbc: Debian's package libodbc2 is missing")
def test_what_the_adapter_is_told_to_do_otherwise_is_in_what_was_compiled(tmp_path: Path) -> None:
    """Flags of the adapter, and what becomes a columnstore: explicit, also where the adapter's default holds."""
    project = write_project(
        tmp_path / "p",
        {
            "dbt_project.yml": WITH_TRANSACTIONS,
            "models/stored.sql": "select 1 as n",
            "models/rows.sql": "{{ config(as_columnstore=false) }} select 1 as n",
            "models/seen.sql": "{{ config(materialized='view') }} select 1 as n",
        },
    )
    found = DbtChildCompiler(GuardedChildren(), SystemClock()).compile(
        project, EngineKind.MSSQL, "warehouse", "mart", {"all": ["*"]}
    )
    assert isinstance(found, CompiledProject), found
    assert dict(found.adapter_flags)["dbt_sqlserver_use_dbt_transactions"] is True
    manifest = read_manifest(found.manifest, "the manifest")
    assert isinstance(manifest, DbtManifest)
    derived = derive(manifest, found.selected["all"], EngineKind.MSSQL, "warehouse", "native.small.all")
    assert {one.id.rsplit(".")[-1]: one.as_columnstore for one in derived.nodes} == {
        "rows": False,
        "seen": None,
        "stored": True,
    }


@pytest.mark.skipif(not has_odbc(), reason="dbt's environment cannot load pyodbc: Debian's package libodbc2 is missing")
def test_what_sql_servers_adapter_would_do_beside_a_table_is_refused(tmp_path: Path) -> None:
    """Everything at once, as the real adapter tells it; a transaction is what it does not do by itself."""
    files = {
        "dbt_project.yml": 'name: small\nversion: 1.0.0\nprofile: small\non-run-start: ["create table x (n int)"]\n',
        "models/granted.sql": "{{ config(grants={'select': ['everyone']}) }} select 1 as n",
        "models/denied.sql": "{{ config(denies={'select': ['everyone']}) }} select 1 as n",
        "models/masked.sql": "{{ config(masks={'n': 'default()'}) }} select 1 as n",
        "models/hooked.sql": "{{ config(post_hook='grant select on {{ this }} to public') }} select 1 as n",
        "models/owned.sql": "{{ config(schema_authorization='dbo') }} select 1 as n",
        "models/hidden.sql": "select 1 as n",
        "models/schema.yml": (
            "version: 2\nmodels:\n  - name: hidden\n    columns: [{name: n, masked_with: default()}]\n"
            "  - name: owned\n    columns: [{name: n, data_tests: [not_null]}]\n"
        ),
        "functions/f.sql": "select @x + 1",
        "functions/f.yml": (
            "functions:\n  - name: f\n    arguments: [{name: x, data_type: int}]\n    returns: {data_type: int}\n"
        ),
        "seeds/sown.csv": "n,word\n1,жук\n",
    }
    project = write_project(tmp_path / "p", files)
    compiler = DbtChildCompiler(GuardedChildren(), SystemClock())
    selectors = {"all": ["*"], "elsewhere": ["owned"]}
    found = compiler.compile(project, EngineKind.MSSQL, "warehouse", "mart", selectors)
    assert isinstance(found, Refused), found
    shown = found.problem.found
    for told in (
        "operation.small.small-on-run-start-0: a hook of the run",
        "model.small.denied: the setting denies",
        "model.small.granted: the setting grants",
        "model.small.hidden: a mask on column n",
        "model.small.hooked: a post-hook",
        "model.small.masked: the setting masks",
        "model.small.owned: the setting schema_authorization",
        "function.small.f: a function of the database",
        "the adapter's flags: dbt_sqlserver_use_dbt_transactions is false",
        "seed.small.sown: letters beyond ASCII in word",
    ):
        assert told in shown, shown


@pytest.mark.skipif(not has_odbc(), reason="dbt's environment cannot load pyodbc: Debian's package libodbc2 is missing")
def test_tests_must_be_able_to_make_their_views_on_sql_server(tmp_path: Path) -> None:
    model = "{{ config(schema='mart') }} select 1 as n"
    tested = "version: 2\nmodels: [{name: m, columns: [{name: n, data_tests: [not_null]}]}]\n"
    files = {"dbt_project.yml": WITH_TRANSACTIONS, "models/m.sql": model, "models/m.yml": tested}
    compiler = DbtChildCompiler(GuardedChildren(), SystemClock())
    project = write_project(tmp_path / "p", files)
    found = compiler.compile(project, EngineKind.MSSQL, "warehouse", "elsewhere", {"all": ["*"]})
    assert "schema: mart" in refused(found, "dbt_tests_outside").problem.allowed


def test_an_engine_without_an_adapter_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    compiler = DbtChildCompiler(GuardedChildren(), SystemClock(), Path("/nonexistent"))
    refused(compiler.compile(tmp_path, EngineKind.CLICKHOUSE, "w", "mart", {}), "dbt_adapter_unmodelled")


def test_a_selector_cannot_be_an_option(tmp_path: Path) -> None:
    refused(compile_project(tmp_path, {"all": ["--full-refresh"]}), "dbt_selector_malformed")


def test_without_an_interpreter_the_way_out_is_make_env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPONE_DBT_PYTHON", "/nonexistent/python")
    outcome = refused(compile_project(tmp_path, {}), "dbt_interpreter_missing")
    assert outcome.problem.next_command == "make env"


def test_a_child_that_ends_without_a_word_is_a_refusal(tmp_path: Path) -> None:
    compiler = DbtChildCompiler(GuardedChildren(), SystemClock(), Path("/bin/true"))
    refused(compiler.compile(tmp_path, EngineKind.POSTGRES, "w", "mart", {}), "dbt_gave_no_answer")
