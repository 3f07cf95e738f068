"""Who else could write, by the server's list of grants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.adapters.clickhouse.privileges import Grant, closure, other_writers

BASE = Grant(
    holder="somebody",
    is_role=False,
    right="SELECT",
    database="mart",
    table="",
    column="",
    is_revoke=False,
    with_option=False,
)
NOTHING: dict[str, frozenset[str]] = {}


def writers(*grants: Grant, roles: dict[str, frozenset[str]] | None = None) -> tuple[str, ...]:
    return other_writers(
        grants,
        roles or NOTHING,
        databases=("mart", "dpone_stage"),
        staging="dpone_stage",
        controller="dpone_controller",
    )


@pytest.mark.parametrize(
    "right", ["ALL", "INSERT", "ALTER", "ALTER UPDATE", "DROP TABLE", "TRUNCATE", "CREATE VIEW", "OPTIMIZE"]
)
@pytest.mark.parametrize("database", ["mart", "dpone_stage", ""])
def test_a_right_that_changes_tables_is_found(right: str, database: str) -> None:
    (found,) = writers(replace(BASE, right=right, database=database))
    assert found == f"user somebody: {right} on {database or '*'}.*"


@pytest.mark.parametrize(
    "right", ["SELECT", "SHOW", "dictGet", "SYSTEM LISTEN", "CREATE TEMPORARY TABLE", "KILL QUERY"]
)
def test_other_rights_are_no_matter(right: str) -> None:
    assert writers(replace(BASE, right=right, database="")) == ()


def test_another_database_is_no_matter() -> None:
    assert writers(replace(BASE, right="ALL", database="elsewhere")) == ()


def test_a_grant_option_is_found_even_of_a_harmless_right() -> None:
    (found,) = writers(replace(BASE, with_option=True))
    assert "with grant option" in found


@pytest.mark.parametrize("right", ["ACCESS MANAGEMENT", "CREATE USER", "ALTER USER", "ROLE ADMIN"])
def test_who_could_give_itself_the_right_is_found(right: str) -> None:
    assert writers(replace(BASE, right=right, database=""))


def test_the_controller_and_its_own_role_are_not_others() -> None:
    mine = replace(BASE, holder="dpone_controller", right="ALL")
    role = replace(BASE, holder="writers", is_role=True, right="ALL")
    assert writers(mine, role, roles={"writers": frozenset({"dpone_controller"})}) == ()


def test_a_role_is_told_with_its_holders() -> None:
    role = replace(BASE, holder="writers", is_role=True, right="ALL")
    (found,) = writers(role, roles=closure([("writers", "team"), ("team", "ann"), ("team", "bob")]))
    assert found == "role writers (held by ann, bob, team): ALL on mart.*"


def test_a_login_of_ours_may_fill_the_staging_database_and_nothing_else() -> None:
    ours = replace(BASE, holder="dpone_v3_pool_0001", database="dpone_stage", right="INSERT")
    assert writers(ours) == ()
    assert writers(replace(ours, database="mart"))
    assert writers(replace(ours, right="DROP TABLE"))
    assert writers(replace(ours, with_option=True))
    assert writers(replace(ours, database=""))


def test_what_was_revoked_from_the_whole_database_is_gone() -> None:
    everywhere = replace(BASE, right="ALL", database="")
    not_mart = replace(everywhere, database="mart", is_revoke=True)
    not_stage = replace(everywhere, database="dpone_stage", is_revoke=True)
    assert writers(everywhere, not_mart)
    # ALL everywhere still administers users, whatever was revoked on databases.
    assert writers(everywhere, not_mart, not_stage)
    inserts = [replace(each, right="INSERT") for each in (everywhere, not_mart, not_stage)]
    assert writers(*inserts) == ()
    assert writers(*inserts[:2], replace(inserts[2], table="one")), "revoked on one table only"
    assert writers(*inserts[:2], replace(inserts[2], holder="other")), "revoked from somebody else"


def test_a_wildcard_reaches_what_begins_so() -> None:
    star = replace(BASE, right="INSERT", database="ma", is_wildcard=True)
    assert writers(star)
    assert writers(replace(star, database="mb")) == ()
