"""What a stored definition says beyond what is managed, and whom it names."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.clickhouse.definitions import features, mentions
from dpone_provider.domain.identity import Relation

PLAIN = (
    "CREATE TABLE mart.t (`id` Int64 COMMENT 'TTL, CODEC and a \\' DEFAULT') "
    "ENGINE = MergeTree ORDER BY id SETTINGS index_granularity = 8192 COMMENT 'PROJECTION'"
)


def test_words_in_comments_and_names_are_no_features() -> None:
    assert features(PLAIN) == ()
    assert features("CREATE TABLE mart.t (`TTL` Int64, `a ``DEFAULT`` b` Int8) ENGINE = MergeTree ORDER BY `TTL`") == ()


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        ("(`a` Int64 TTL b + toIntervalDay(1))", "TTL"),
        ("(`a` Int64) ENGINE = MergeTree ORDER BY a TTL b", "TTL"),
        ("(`a` Int64, PROJECTION p (SELECT a))", "projection"),
        ("(`a` Int64, CONSTRAINT c CHECK a > 1)", "constraint"),
        ("(`a` Int64, INDEX i a TYPE minmax GRANULARITY 1)", "skipping index"),
        ("(`a` Int64 CODEC(ZSTD(1)))", "codec"),
        ("(`a` Int64 DEFAULT 1)", "default"),
        ("(`a` Int64 MATERIALIZED 1)", "materialised"),
        ("(`a` Int64 ALIAS 1)", "alias"),
        ("(`a` Int64 EPHEMERAL 1)", "ephemeral"),
        ("(`a` Int64 STATISTICS(tdigest))", "statistics"),
        ("(`a` Int64) ENGINE = MergeTree PRIMARY KEY a ORDER BY (a, b)", "primary key"),
        ("(`a` Int64) ENGINE = MergeTree ORDER BY a SAMPLE BY a", "sampling"),
    ],
)
def test_what_a_refresh_would_lose_is_told(definition: str, found: str) -> None:
    (said,) = features("CREATE TABLE mart.t " + definition)
    assert found in said


T = Relation("mart", "t")


@pytest.mark.parametrize(
    ("definition", "own_database"),
    [
        ("CREATE MATERIALIZED VIEW x.v TO mart.t AS SELECT 1", "x"),
        ("CREATE MATERIALIZED VIEW x.v TO x.w AS SELECT * FROM mart.t WHERE 1", "x"),
        ("CREATE MATERIALIZED VIEW x.v TO x.w AS SELECT * FROM `mart`.`t`", "x"),
        ("CREATE MATERIALIZED VIEW mart.v TO mart.w AS SELECT * FROM t", "mart"),
        (
            "CREATE TABLE x.b (a Int8) ENGINE = Buffer('mart', 't', 1, 1, 1, 1, 1, 1, 1)",
            "x",
        ),
        ("CREATE TABLE x.d (a Int8) ENGINE = Distributed('c', 'mart', 't')", "x"),
        ("CREATE TABLE x.a ENGINE = Alias(mart.t)", "x"),
        ("CREATE DICTIONARY x.d (`id` UInt64) SOURCE(CLICKHOUSE(DB 'mart' TABLE 't'))", "x"),
        ("CREATE DICTIONARY x.d (`id` UInt64) SOURCE(CLICKHOUSE(QUERY 'SELECT * FROM mart.t'))", "x"),
    ],
)
def test_who_names_the_table_is_found(definition: str, own_database: str) -> None:
    assert mentions(definition, T, own_database=own_database)


@pytest.mark.parametrize(
    ("definition", "own_database"),
    [
        ("CREATE MATERIALIZED VIEW x.v TO x.w AS SELECT * FROM t", "x"),
        ("CREATE MATERIALIZED VIEW x.v TO x.w AS SELECT * FROM mart.t2", "x"),
        ("CREATE MATERIALIZED VIEW x.v TO x.w AS SELECT * FROM smart.t", "x"),
        ("CREATE MATERIALIZED VIEW x.v TO x.w AS SELECT * FROM mart.T", "x"),
    ],
)
def test_another_table_is_not_taken_for_it(definition: str, own_database: str) -> None:
    assert not mentions(definition, T, own_database=own_database)
