"""The numbers of our own errors: thrown where they are said to be, documented, and told apart by the product."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from dpone_provider.adapters.ledger import mssql_errors
from dpone_provider.adapters.mssql import errors
from dpone_provider.application.installation.tsql import Kind, batches
from tests.sqltext.binding.forms import Module, Said, Statement
from tests.sqltext.binding.statements import statements, within
from tests.sqltext.texts import scripts

REFERENCE = Path(__file__).parents[3] / "docs/reference-mssql-objects.md"
OF_A_SCRIPT = 51000
LEAST, MOST = 51000, 51999
ISSUING = range(51020, 51030)
"""As the head of 025 says."""


def test_the_fence_throws_what_the_product_knows() -> None:
    """Each number of the fence, and no other; add_receipt fences by itself."""
    thrown = numbers()
    assert thrown["require_current"] == set(errors.FENCE)
    assert thrown["add_receipt"] == {51001, 51005}
    assert {number for number, said in errors.MEANINGS.items() if said is errors.Meaning.FENCE} == set(errors.FENCE)


def test_a_law_is_one_number_with_one_form() -> None:
    """`refuse` throws it and nothing else does; the ledger reads its words."""
    assert {name for name, found in numbers().items() if mssql_errors.LAW_BROKEN in found} == {"refuse"}
    assert numbers()["refuse"] == {mssql_errors.LAW_BROKEN}
    text = next(one for one in scripts() if "CREATE OR ALTER PROCEDURE dpone_control.refuse" in one.sql).sql
    said = re.search(
        r"CONCAT\(N'DPONE_LAW ', @law, N': ', @subject,\s+N'; found ', [^;]*, N'; allowed ', @allowed\)", text
    )
    assert said is not None
    assert mssql_errors._LAW.fullmatch("DPONE_LAW x: y; found z; allowed w") is not None


def test_scripts_throw_one_number_outside_of_modules() -> None:
    """What an administrator's script refuses is one number."""
    assert numbers()[""] == {OF_A_SCRIPT}


def test_procedures_for_logins_keep_to_their_numbers() -> None:
    """What 025 throws."""
    names = {
        one.name[-1]
        for text in scripts()
        if text.name.endswith("025_logins.sql")
        for one in statements_of(text.sql)
        if isinstance(one, Module)
    }
    assert set.union(*(numbers().get(name, set()) for name in names)) <= set(ISSUING)


def test_every_number_is_documented_and_every_documented_one_is_thrown() -> None:
    """In the reference of T-SQL objects."""
    thrown = set.union(*numbers().values())
    told = {int(one) for one in re.findall(r"\b(51\d{3})\b", REFERENCE.read_text(encoding="utf-8"))}
    assert thrown - told == set()
    assert told - thrown == set()
    assert {number for number in thrown if not LEAST <= number <= MOST} == set()


def test_what_is_known_by_number_is_told_apart_from_the_server_s_own() -> None:
    """The product classifies none of our numbers that nobody throws."""
    known = {number for number in {*errors.MEANINGS, *mssql_errors.MEANINGS} if number >= LEAST}
    assert known <= set.union(*numbers().values())


def test_a_number_is_found_where_it_is_thrown() -> None:
    """In a module, in a block, and outside."""
    sql = "CREATE OR ALTER PROCEDURE a.b AS BEGIN IF 1 = 1 BEGIN ;THROW 51999, N'x', 1; END; END;"
    assert thrown_in(sql) == {"b": {51999}}
    assert thrown_in("IF 1 = 1 BEGIN ;THROW 51998, N'x', 1; END;") == {"": {51998}}


@cache
def numbers() -> Mapping[str, set[int]]:
    """Return what is thrown, by module; by nothing what scripts throw themselves."""
    found: dict[str, set[int]] = {}
    for text in scripts():
        for name, thrown in thrown_in(text.sql).items():
            found.setdefault(name, set()).update(thrown)
    return found


def thrown_in(sql: str) -> dict[str, set[int]]:
    """Return the numbers that a script throws, by module."""
    found: dict[str, set[int]] = {}
    for one in statements_of(sql):
        name = one.name[-1] if isinstance(one, Module) else ""
        for each in within([one]):
            if isinstance(each, Said) and each.word == "THROW" and each.arguments:
                first = each.arguments[0][0]
                if first.kind is Kind.NUMBER:
                    found.setdefault(name, set()).add(int(first.text))
    return found


def statements_of(sql: str) -> Iterator[Statement]:
    """Yield the outermost statements of a script."""
    for batch in batches(sql):
        yield from statements(batch.tokens)
