"""What a user lacks of the rights that are needed, by the server's own groups of rights."""

from __future__ import annotations

import pytest

from dpone_provider.lab.clickhouse.fitness import RIGHTS
from dpone_provider.lab.clickhouse.rights import Right, lacking, rights_of

GROUPS = {
    "ALL": "",
    "SELECT": "ALL",
    "ALTER": "ALL",
    "ALTER TABLE": "ALTER",
    "ALTER VIEW": "ALTER",
    "ALTER UPDATE": "ALTER TABLE",
    "ALTER DELETE": "ALTER TABLE",
    "CREATE USER": "ACCESS MANAGEMENT",
    "ACCESS MANAGEMENT": "ALL",
}


def right(name: str, database: str = "", *, with_option: bool = False) -> Right:
    return Right(name=name, database=database, with_option=with_option)


def test_grants_are_read_as_they_are_written() -> None:
    found = rights_of(("SELECT, CREATE USER ON *.*", "SELECT ON mart.* WITH GRANT OPTION", "TABLE ENGINE ON Atomic"))
    assert found == (right("SELECT"), right("CREATE USER"), right("SELECT", "mart", with_option=True))
    assert [str(one) for one in found] == [
        "SELECT ON *.*",
        "CREATE USER ON *.*",
        "SELECT ON mart.* WITH GRANT OPTION",
    ]


@pytest.mark.parametrize(
    ("held", "enough"),
    [
        ([right("ALTER", "mart")], True),
        ([right("ALTER")], True),
        ([right("ALL")], True),
        ([right("ALTER TABLE", "mart"), right("ALTER VIEW", "mart")], True),
        ([right("ALTER UPDATE"), right("ALTER DELETE"), right("ALTER VIEW", "mart")], True),
        ([right("ALTER TABLE", "mart")], False),
        ([right("ALTER", "other")], False),
        ([right("SELECT")], False),
        ([], False),
    ],
)
def test_a_right_is_held_with_its_group_or_with_all_its_parts(held: list[Right], enough: bool) -> None:
    needed = (right("ALTER", "mart"),)
    assert lacking(needed, held, GROUPS) == (() if enough else needed)


def test_a_part_is_held_with_the_group() -> None:
    assert lacking([right("ALTER UPDATE", "mart")], [right("ALTER", "mart")], GROUPS) == ()


def test_the_grant_option_is_a_right_of_its_own() -> None:
    needed = (right("SELECT", "mart", with_option=True),)
    assert lacking(needed, [right("ALL")], GROUPS) == needed
    assert lacking(needed, [right("ALL", with_option=True)], GROUPS) == ()


def test_what_the_server_does_not_know_is_not_needed_there() -> None:
    assert lacking([right("CHECK", "mart")], [], GROUPS) == ()


def test_a_right_on_everything_is_not_held_by_one_on_a_database() -> None:
    needed = (right("CREATE USER"),)
    assert lacking(needed, [right("ACCESS MANAGEMENT", "mart")], GROUPS) == needed


def test_what_the_lab_needs_is_what_a_controller_does_and_its_own_databases_and_reader() -> None:
    told = {str(one) for one in RIGHTS}
    assert {
        "INSERT ON mart.*",
        "CREATE DATABASE ON dpone_stage.*",
        "DROP DATABASE ON mart.*",
        "SHOW ON *.*",
        "KILL QUERY ON *.*",
        "DROP USER ON *.*",
        "INSERT ON dpone_stage.* WITH GRANT OPTION",
        "SELECT ON mart.* WITH GRANT OPTION",
    } <= told
