"""Every ClickHouse statement of the product and of the lab, read by ClickHouse's own parser, those on access as meant.

What is sent stands in ``.sql`` files. A statement that is added to one is found here by itself; one about users,
rights, queries or the server fails until it is listed with what ClickHouse reads in it; one in a Python string fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Final

import pytest

import dpone_provider
from dpone_provider.adapters.clickhouse.names import Sql, with_names
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.secret import Secret
from dpone_provider.lab import clickhouse_users
from dpone_provider.lab.clickhouse_users import ClickhouseUser, create_statements
from dpone_provider.sql_files import load
from tests.adapters.clickhouse.enrolled import Enrolled
from tests.adapters.clickhouse.given import preparation

PACKAGE = Path(dpone_provider.__file__).parent
OTHER_ENGINES = ("lab/mssql/", "lab/flights.sql", "lab/provisioning.sql")
"""Files of the lab whose statements are for another engine."""
HASH = "0" * 64
PLACES: Final[dict[str, Sequence[Sql | Relation]]] = {
    "user": [Sql("`a user`")],
    "hash": [Sql(f"'{HASH}'")],
    "hosts": [Sql("ANY"), Sql("IP '10.0.0.0/8', 'fd00::/8'")],
    "rights": [Sql("SELECT, INSERT ON mart.*")],
    "option": [Sql(""), Sql(" WITH GRANT OPTION")],
    "database": [Sql("`mart`")],
    "uuid": [Sql("'11111111-2222-4333-8444-555555555555'")],
    "columns": [Sql("`id` Int64, `name` Nullable(String)")],
    "storage": [Sql("ORDER BY (`id`)")],
    "comment": [Sql(" COMMENT 'a table''s'")],
    "sees_everything": [Sql("SELECT 1")],
    **{name: [Relation("dpone_stage", f"dpone_{name}")] for name in ("enrolment", "mark", "journal", "staged")},
    **{name: [Relation("mart", f"a {name}")] for name in ("target", "table")},
}
"""What stands in the places of the statements; each statement is read with all of it."""
ELSEWHERE: Final[dict[str, dict[str, Sequence[Sql | Relation]]]] = {
    "adapters/clickhouse/read.sql": {"columns": [Sql("`id`, `name`")]}
}
"""Where a place means something else."""
ABOUT_ACCESS: Final = re.compile(
    r"\s*((CREATE|ALTER|DROP|MOVE)\s+(USER|ROLE|QUOTA|SETTINGS\s+PROFILE|PROFILE|ROW\s+POLICY|POLICY|NAMED\s+COLLECTION)\s+\S"
    r"|(GRANT|REVOKE|KILL|SET\s+(DEFAULT\s+)?ROLE)\s+\S|SYSTEM\s+(?!LISTEN ON)\S)"
)
MEANT: Final = {
    "adapters/clickhouse/gate.sql create_user": [
        f"CREATE USER `a user` IDENTIFIED WITH sha256_hash BY '{HASH}' HOST NONE SETTINGS async_insert = 0 CONST"
    ],
    "adapters/clickhouse/gate.sql grant_staged": [
        "GRANT SELECT, INSERT ON dpone_stage.dpone_staged TO `a user`",
    ],
    "adapters/clickhouse/gate.sql let_in": [
        "ALTER USER `a user` HOST ANY",
        "ALTER USER `a user` HOST IP '10.0.0.0/8', 'fd00::/8'",
    ],
    "adapters/clickhouse/gate.sql drop_user": ["DROP USER IF EXISTS `a user`"],
    "adapters/clickhouse/gate.sql end_sessions": [
        "KILL QUERY WHERE (user = {user:String}) OR (initial_user = {user:String}) SYNC"
    ],
    "lab/clickhouse_users.sql create_user": [
        f"CREATE USER `a user` IDENTIFIED WITH sha256_hash BY '{HASH}' HOST ANY",
        f"CREATE USER `a user` IDENTIFIED WITH sha256_hash BY '{HASH}' HOST IP '10.0.0.0/8', 'fd00::/8'",
    ],
    "lab/clickhouse_users.sql grant": [
        "GRANT SELECT, INSERT ON mart.* TO `a user`",
        "GRANT SELECT, INSERT ON mart.* TO `a user` WITH GRANT OPTION",
    ],
    "lab/clickhouse_users.sql reload": ["SYSTEM RELOAD CONFIG"],
    "lab/clickhouse_users.sql listen": ["SYSTEM START LISTEN HTTP"],
}
"""Every access statement by its file and name, as ClickHouse 26.7 writes what its parser read."""
RIGHTS_OF_24_8: Final = frozenset(
    {"ALL", "SHOW", "SELECT", "INSERT", "ALTER", "OPTIMIZE", "TRUNCATE", "UNDROP TABLE", "SHOW ACCESS", "KILL QUERY"}
    | {"CREATE DATABASE", "CREATE TABLE", "CREATE VIEW", "DROP DATABASE", "DROP TABLE", "DROP VIEW", "TABLE ENGINE"}
    | {"CREATE USER", "ALTER USER", "DROP USER", "SYSTEM LISTEN"}
)
"""Rights that 24.8 knows, of those that anybody is given. ``CHECK`` came with 25.1 (ClickHouse/ClickHouse#74471) and
``TABLE ENGINE`` with 24.5 (#60117)."""
NOT_SENT: Final = {
    "adapters/clickhouse/enrolment.py": "GRANT SHOW ON *.* TO ",  # told to an administrator
    "lab/clickhouse_users.py": "GRANT ",  # in users.xml, which libchdb reads whenever it starts: without TO
}
"""The beginnings of texts in Python that look like access statements and are none that we send."""


def files() -> list[Path]:
    found = [*PACKAGE.glob("adapters/clickhouse/**/*.sql"), *PACKAGE.glob("lab/**/*.sql")]
    return sorted(path for path in found if not _name(path).startswith(OTHER_ENGINES))


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def filled(file: str, statement: str) -> list[str]:
    """Return the statement with everything that may stand in its places."""
    known = PLACES | ELSEWHERE.get(file, {})
    places = [name for name in known if re.search(rf"\${name}\b", statement)]
    return [
        with_names(statement, dict(zip(places, chosen, strict=True)))
        for chosen in product(*(known[name] for name in places))
    ]


STATEMENTS: Final = {
    f"{_name(path)} {name}": filled(_name(path), statement)
    for path in files()
    for name, statement in load(path).items()
}


def formatted(enrolled: Enrolled, statements: Sequence[str]) -> list[str | None]:
    """Return what ClickHouse's formatter makes of each, None of one that its parser does not read."""
    session = Session(enrolled.controller)
    try:
        ((found,),) = session.rows(
            "SELECT arrayMap(one -> formatQuerySingleLineOrNull(one), {statements:Array(String)})",
            {"statements": list(statements)},
        )
    finally:
        session.release()
    return list(found)


def grants_of_the_lab() -> tuple[str, ...]:
    lists = {name: found for name, found in vars(clickhouse_users).items() if name.endswith("_GRANTS")}
    assert len(lists) >= 6
    return tuple(grant for found in lists.values() for grant in found)


def test_every_right_is_known_to_the_oldest_version() -> None:
    """One that a server does not know is a syntax error, and nobody is made there."""
    used = {name.strip() for grant in grants_of_the_lab() for name in grant.partition(" ON ")[0].split(",")}
    assert used <= RIGHTS_OF_24_8


def test_every_file_is_looked_at() -> None:
    assert {_name(path) for path in files()} == {
        "adapters/clickhouse/catalog.sql",
        "adapters/clickhouse/enrolment.sql",
        "adapters/clickhouse/gate.sql",
        "adapters/clickhouse/publish.sql",
        "adapters/clickhouse/read.sql",
        "lab/clickhouse/fitness.sql",
        "lab/clickhouse/making.sql",
        "lab/clickhouse_users.sql",
    }
    assert len(STATEMENTS) > 60


def test_every_access_statement_is_listed_with_its_meaning() -> None:
    about = {name for name, texts in STATEMENTS.items() if ABOUT_ACCESS.match(texts[0])}
    assert about == set(MEANT)


@pytest.mark.lab
@pytest.mark.parametrize("file", [_name(path) for path in files()])
def test_clickhouse_reads_every_statement(enrolled: Enrolled, file: str) -> None:
    mine = {name: texts for name, texts in STATEMENTS.items() if name.startswith(f"{file} ")}
    for name, texts in mine.items():
        found = formatted(enrolled, texts)
        assert None not in found, f"{name}: {texts[found.index(None)]}"


@pytest.mark.lab
def test_clickhouse_reads_every_access_statement_as_it_is_meant(enrolled: Enrolled) -> None:
    """Both are formatted: another version may write the same otherwise."""
    for name, meant in MEANT.items():
        found = formatted(enrolled, STATEMENTS[name])
        assert None not in found
        assert found == formatted(enrolled, meant), name


@pytest.mark.lab
def test_clickhouse_reads_every_grant_that_the_lab_gives(enrolled: Enrolled) -> None:
    grants = grants_of_the_lab()
    statements = create_statements(ClickhouseUser(name="a user", password=Secret("x"), grants=grants))
    assert len(statements) == 1 + len(grants)
    found = formatted(enrolled, statements)
    assert None not in found, statements[found.index(None)]


@pytest.mark.lab
def test_clickhouse_reads_what_prepares_a_given_server(enrolled: Enrolled) -> None:
    statements = preparation(Credential("a controller", Secret("x")))
    found = formatted(enrolled, statements)
    assert None not in found, statements[found.index(None)]


@pytest.mark.lab
def test_what_is_no_statement_is_not_read(enrolled: Enrolled) -> None:
    """The parser tells; otherwise nothing above means anything."""
    assert formatted(enrolled, ["CREATE USER `a` IDENTIFIED SOMEHOW", "GRANT SELECT mart.* TO a"]) == [None, None]


def texts_of(path: Path) -> Iterator[str]:
    """Yield every text of a module that is no docstring: of one with places, what stands before the first."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # A text that stands alone is a docstring.
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values[1:]}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone | inner:
            yield node.value


def test_no_access_statement_stands_in_a_python_string() -> None:
    modules = [*PACKAGE.glob("adapters/clickhouse/**/*.py"), *PACKAGE.glob("lab/**/*.py")]
    found = {
        f"{_name(path)}: {text}"
        for path in modules
        if not _name(path).startswith("lab/mssql/")
        for text in texts_of(path)
        if ABOUT_ACCESS.match(text) or text in NOT_SENT.values()
    }
    assert found == {f"{name}: {text}" for name, text in NOT_SENT.items()}
