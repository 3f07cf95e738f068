"""Quoting, and how long a name may be."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpone_provider.adapters.clickhouse.names import (
    Sql,
    escaped_bytes,
    longest_table_name,
    quoted,
    refuse_long_name,
    text_literal,
    uuid_literal,
    with_names,
)
from dpone_provider.application.ports.tables import Published
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import Refused
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, job_for, table

AWKWARD = ["t", "`", "\\", "a`; DROP TABLE x --", "'", "ñ", "a b", "\\`", "select"]


@pytest.mark.lab
@pytest.mark.parametrize("name", AWKWARD)
def test_the_server_reads_a_quoted_name_as_the_name(enrolled: Enrolled, name: str) -> None:
    ((found,),) = enrolled.ask(f"SELECT formatRow('JSONEachRow', *) FROM (SELECT 1 AS {quoted(name)})")
    assert list(json.loads(found)) == [name]


@pytest.mark.lab
@settings(deadline=None, max_examples=20)
@given(st.text(st.characters(blacklist_categories=["Cs"])))
def test_a_literal_is_read_as_the_text(enrolled: Enrolled, text: str) -> None:
    assert enrolled.ask(f"SELECT {text_literal(text)}") == [(text,)]


def test_names_go_into_places_and_values_stay_parameters() -> None:
    sql = with_names("INSERT INTO $table VALUES ({x:String}) $more", {"table": Relation("a", "b"), "more": Sql("1")})
    assert sql == "INSERT INTO `a`.`b` VALUES ({x:String}) 1"


def test_a_place_that_is_not_given_is_a_defect() -> None:
    with pytest.raises(KeyError):
        with_names("DROP TABLE $staged", {})


def test_a_uuid_literal_is_a_uuid() -> None:
    assert uuid_literal("11111111-2222-4333-8444-555555555555") == "'11111111-2222-4333-8444-555555555555'"
    with pytest.raises(ValueError, match="badly formed"):
        uuid_literal("' OR 1")


@pytest.mark.lab
@pytest.mark.parametrize("database", ["mart", "dpone_stage"])
def test_the_limit_is_the_servers_own(enrolled: Enrolled, database: str) -> None:
    assert enrolled.ask(f"SELECT getMaxTableNameLengthForDatabase('{database}')") == [(longest_table_name(database),)]


@pytest.mark.parametrize(("name", "size"), [("abc_9", 5), ("a-b", 5), ("ñ", 6), ("", 0)])
def test_escaping_takes_three_bytes(name: str, size: int) -> None:
    assert escaped_bytes(name) == size


@pytest.mark.parametrize(
    ("name", "refused"), [("a" * 209, False), ("a" * 210, True), ("ñ" * 34, False), ("ñ" * 35, True)]
)
def test_a_name_that_is_too_long_is_refused(name: str, refused: bool) -> None:
    assert isinstance(refuse_long_name(Relation("mart", name)), Refused) is refused


@pytest.mark.lab
def test_the_longest_name_can_be_published_and_dropped(enrolled: Enrolled) -> None:
    """The limit is that of the longer database name: a table that moves is measured in both."""
    longest = "ñ" * 33 + "abcd"
    assert escaped_bytes(longest) == longest_table_name("dpone_stage") < longest_table_name("mart")
    declared = table(longest)
    assert isinstance(Refresh.of(enrolled, declared).whole([]), Published)
    assert isinstance(Refresh.of(enrolled, declared).whole([]), Published)
    enrolled.run(f"DROP TABLE mart.{quoted(longest)} SYNC")
    too_long = table(longest + "e")
    refused = Refresh.of(enrolled, too_long).publisher.bind(job_for(too_long))
    assert isinstance(refused, Refused)
    assert refused.problem.reason == "name_too_long"
