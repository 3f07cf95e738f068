from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain.footprint import DbtNode, Role, WrittenRelation, written_by_dbt
from dpone_provider.domain.identity import EngineKind, Relation

ENGINES = st.sampled_from([EngineKind.POSTGRES, EngineKind.MSSQL])
NAMES = st.text(st.characters(codec="ascii", categories=("L", "N"), include_characters="_"), min_size=1, max_size=63)


def node(name: str | None, *, kind: str = "model", materialized: str = "table") -> DbtNode:
    return DbtNode(
        node_id=f"{kind}.p.{name}",
        resource_type=kind,
        materialized=materialized,
        relation=None if name is None else Relation("mart", name),
        reads=(),
    )


def names(engine: EngineKind, written: DbtNode) -> list[str]:
    return [one.relation.name for one in written_by_dbt(engine, written)]


def test_a_model_on_postgresql_has_two_helpers_beside_it() -> None:
    assert written_by_dbt(EngineKind.POSTGRES, node("daily")) == (
        WrittenRelation(Relation("mart", "daily"), Role.TARGET),
        WrittenRelation(Relation("mart", "daily__dbt_backup"), Role.BACKUP),
        WrittenRelation(Relation("mart", "daily__dbt_tmp"), Role.INTERMEDIATE),
    )


def test_a_model_on_sql_server_has_every_helper_of_its_adapters_macros() -> None:
    assert names(EngineKind.MSSQL, node("daily")) == [
        "daily",
        "daily__dbt_backup",
        "daily__dbt_refresh",
        "daily__dbt_refresh__dbt_tmp_vw",
        "daily__dbt_temp",
        "daily__dbt_temp__dbt_tmp_vw",
        "daily__dbt_tmp",
        "daily__dbt_tmp__dbt_tmp_vw",
        "daily__dbt_tmp_vw",
        "daily_snapshot_staging_temp_view",
    ]


@pytest.mark.parametrize("kind", ["seed", "snapshot"])
def test_seeds_and_snapshots_on_postgresql_write_themselves_only(kind: str) -> None:
    assert names(EngineKind.POSTGRES, node("kept", kind=kind, materialized=kind)) == ["kept"]


@pytest.mark.parametrize("engine", [EngineKind.POSTGRES, EngineKind.MSSQL])
def test_tests_and_nodes_without_a_relation_write_nothing(engine: EngineKind) -> None:
    assert written_by_dbt(engine, node("t", kind="test", materialized="test")) == ()
    assert written_by_dbt(engine, node(None, materialized="ephemeral")) == ()


def test_an_engine_without_an_adapter_is_an_error() -> None:
    with pytest.raises(ValueError, match="clickhouse"):
        written_by_dbt(EngineKind.CLICKHOUSE, node("daily"))


@pytest.mark.parametrize(
    ("materialized", "whole"),
    [
        ("table", True),
        ("view", True),
        ("ephemeral", True),
        ("seed", True),
        ("test", True),
        ("incremental", False),
        ("snapshot", False),
        ("anything_else", False),
    ],
)
def test_what_a_next_run_rebuilds_whole(materialized: str, whole: bool) -> None:
    assert node("m", materialized=materialized).rebuilt_whole is whole


@given(ENGINES, NAMES)
def test_a_footprint_is_ordered_and_has_its_target_once(engine: EngineKind, name: str) -> None:
    written = written_by_dbt(engine, node(name))
    assert list(written) == sorted(set(written))
    assert [one.relation.name for one in written if one.role is Role.TARGET] == [name]
    assert {one.relation.schema for one in written} == {"mart"}


@given(NAMES)
def test_postgresqls_helpers_never_exceed_its_limit_and_keep_their_suffix(name: str) -> None:
    helpers = [one for one in written_by_dbt(EngineKind.POSTGRES, node(name)) if one.role is not Role.TARGET]
    assert all(len(one.relation.name) <= 63 for one in helpers)
    assert sorted(one.relation.name.rpartition("__")[2] for one in helpers) == ["dbt_backup", "dbt_tmp"]


@given(NAMES.filter(lambda name: len(name) == 62))
def test_long_names_that_differ_at_their_end_have_one_helper_on_postgresql(name: str) -> None:
    first, second = (set(names(EngineKind.POSTGRES, node(name + last))) for last in "ab")
    assert {one for one in first & second if "__dbt_" in one}


@given(NAMES, NAMES)
def test_distinct_short_names_share_nothing_unless_one_is_named_like_a_helper(one: str, other: str) -> None:
    if one == other or "__dbt_" in one + other or max(len(one), len(other)) > 50:
        return
    first, second = (set(names(EngineKind.POSTGRES, node(name))) for name in (one, other))
    assert not first & second
