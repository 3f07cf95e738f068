"""The footprint that the domain gives, against what the installed adapter really does on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpone_provider import lab
from dpone_provider.domain.footprint import written_by_dbt
from dpone_provider.domain.identity import EngineKind, Relation
from tests.adapters.dbt.projects import Bundled, bundled, write_project
from tests.adapters.dbt.warehouse import Warehouse, build, warehouse

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

LONG = "a_model_whose_name_is_as_long_as_postgresql_lets_a_name_be_" + "0123"
NEAR = "a_view_whose_name_is_just_long_enough_to_lose_its_last_" + "0"
KINDS = {
    "models/plain.sql": "select 1 as n",
    f"models/{LONG}.sql": "select 1 as n",
    f"models/{NEAR}.sql": "{{ config(materialized='view') }} select 1 as n",
    "models/seen.sql": "{{ config(materialized='view') }} select * from {{ ref('plain') }}",
    "models/indexed.sql": "{{ config(indexes=[{'columns': ['n'], 'unique': true}]) }} select 1 as n",
    "models/appended.sql": "{{ config(materialized='incremental') }} select 1 as n, 'x' || random()::text as word",
    "models/merged.sql": (
        "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='n',"
        " on_schema_change='sync_all_columns') }} select 1 as n"
    ),
    "models/replaced.sql": (
        "{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='n') }} select 1 as n"
    ),
    "models/always_whole.sql": "{{ config(materialized='incremental', full_refresh=true) }} select 1 as n",
    "models/contracted.sql": "select 1 as n",
    "models/schema.yml": (
        "version: 2\nmodels:\n  - name: contracted\n    config: {contract: {enforced: true}}\n    columns:\n"
        "      - name: n\n        data_type: integer\n        constraints: [{type: not_null}, {type: primary_key}]\n"
        "        data_tests: [not_null, unique]\n"
    ),
    "seeds/sown.csv": "n,word\n1,one\n2,two\n",
    "snapshots/kept.yml": (
        "snapshots:\n  - name: kept\n    relation: ref('sown')\n"
        "    config: {unique_key: n, strategy: check, check_cols: all, schema: mart}\n"
    ),
    "macros/schema.sql": "{% macro generate_schema_name(custom, node) %}{{ custom or target.schema }}{% endmacro %}",
}


@pytest.fixture(scope="module")
def target(postgres_lab: lab.LabState) -> Iterator[Warehouse]:
    """A warehouse that writes down every definition."""
    with lab.fresh_database(postgres_lab) as database, warehouse(database) as made:
        made.query(Path(__file__).with_name("ddl_log.sql").read_text())
        yield made


@pytest.fixture(scope="module")
def project(target: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Bundled:
    """A project with every kind of node that may be selected."""
    where = tmp_path_factory.mktemp("kinds")
    root = write_project(where / "project", KINDS)
    return bundled(root, {"all": ["*"]}, where, database=target.database.name)


@pytest.fixture(scope="module")
def seen(target: Warehouse, project: Bundled, tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, Relation]]:
    """What two runs defined, as (definition, relation): the second finds everything there."""
    selected = project.compiled.selected["all"]
    for _ in range(2):
        run = build(target, project, selected, tmp_path_factory.mktemp("run") / "attempt")
        assert run.finished is not None, run.log
        assert run.finished.success, run.log
        # Somebody's own view over a table that dbt rebuilds.
        target.query("CREATE OR REPLACE VIEW public.somebodys AS SELECT * FROM mart.plain")
    user = target.login.user
    rows = target.query(f"SELECT tag, schema_name, name FROM ddl_log WHERE role = '{user}' AND kind <> 'index'")
    return {(tag, Relation(schema, name)) for tag, schema, name in rows}


def test_dbt_defines_exactly_the_relations_of_the_footprint(project: Bundled, seen: set[tuple[str, Relation]]) -> None:
    nodes = [node for node in project.compiled.nodes if node.node_id in project.compiled.selected["all"]]
    allowed = {one.relation for node in nodes for one in written_by_dbt(EngineKind.POSTGRES, node)}
    defined = {
        relation for tag, relation in seen if not relation.schema.startswith("pg_temp") and not tag.endswith("CASCADE")
    }
    assert defined <= allowed
    # Helpers too are really made; the footprint does not name more than dbt may come to need.
    assert {Relation("mart", "plain__dbt_tmp"), Relation("mart", "plain__dbt_backup")} <= defined
    assert {Relation("mart", "always_whole__dbt_tmp"), Relation("mart", "always_whole__dbt_backup")} <= defined


def test_long_names_are_shortened_as_the_footprint_says(seen: set[tuple[str, Relation]]) -> None:
    defined = {relation for _, relation in seen}
    assert len(LONG) == 63
    for name in (LONG, NEAR):
        assert Relation("mart", name[: 63 - len("__dbt_tmp")] + "__dbt_tmp") in defined
        assert Relation("mart", name[: 63 - len("__dbt_backup")] + "__dbt_backup") in defined


def test_what_incremental_models_and_snapshots_stage_belongs_to_their_session(seen: set[tuple[str, Relation]]) -> None:
    staged = {relation for tag, relation in seen if tag == "CREATE TABLE AS" and "__dbt_tmp" in relation.name}
    for name in ("appended", "merged", "replaced", "kept"):
        places = {relation.schema for relation in staged if relation.name.startswith(name + "__dbt_tmp")}
        assert places
        assert all(place.startswith("pg_temp") for place in places), name


def test_rebuilding_a_table_drops_anybodys_view_over_it(seen: set[tuple[str, Relation]]) -> None:
    assert ("DROP TABLE CASCADE", Relation("public", "somebodys")) in seen
