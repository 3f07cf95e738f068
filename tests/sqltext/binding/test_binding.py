"""Every Transact-SQL text that ships or is compiled: each name in it stands for something, each call fits."""

from __future__ import annotations

import tomllib

import pytest

from dpone_provider.application.installation.tsql import batches, tokens
from tests.sqltext.binding.check import all_bound, bound_of_tests, installed
from tests.sqltext.binding.forms import Call, Query
from tests.sqltext.binding.literals import literal_faults
from tests.sqltext.binding.statements import statements, within
from tests.sqltext.binding.world import HERE, server_views
from tests.sqltext.texts import adapter_statements


def test_every_name_stands_for_something() -> None:
    """Scripts one after the other; then the statements of the ledger and of the adapters, where they run."""
    found = {name: [str(fault) for fault in bound.faults] for name, bound in all_bound().items() if bound.faults}
    assert found == {}


def test_constants_name_what_there_is() -> None:
    """Objects, principals and triggers of ours, and the server's properties, wherever a constant names them."""
    world, scripts = installed()
    texts = [one.text for one in scripts] + list(adapter_statements())
    faults = {
        text.name: [str(fault) for batch in batches(text.sql) for fault in literal_faults(world, batch.tokens)]
        for text in texts
    }
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.parametrize(
    ("number", "sql"),
    [
        ("named", "IF OBJECT_ID(N'dpone_control.stettle') IS NULL PRINT 'x';"),
        ("named", "IF OBJECT_ID(N'[dpone].dpone_gate.stettle') IS NULL PRINT 'x';"),
        ("named", "IF DATABASE_PRINCIPAL_ID(N'dpone_lodger') IS NULL PRINT 'x';"),
        ("named", "EXEC sys.sp_executesql N'SELECT CERT_ID(N''dpone_singer'') AS c';"),
        ("property", "SELECT CONVERT(int, SERVERPROPERTY('EngineEditon')) AS e;"),
        ("property", "SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'VIEW ANY DEFINTION') AS p;"),
        ("property", "SELECT HASHBYTES('SHA256', 0x01) AS h;"),
    ],
)
def test_a_constant_that_names_nothing_is_found(number: str, sql: str) -> None:
    """In a statement, and in one that is a constant itself."""
    assert [one.number for one in literal_faults(installed()[0], tokens(sql))] == [number]


def test_what_tests_send_to_a_given_server_is_bound_too() -> None:
    """Where they name what the server has, or what the scripts make: nobody has run them yet either."""
    bound = bound_of_tests()
    assert {one.text.name: [str(fault) for fault in one.faults] for one in bound if one.faults} == {}
    assert len(bound) > 150


def test_there_is_much_to_bind() -> None:
    """All texts, and in them hundreds of queries and calls: nothing that is left out makes the check above empty."""
    world, scripts = installed()
    inner = [
        one
        for bound in scripts
        for batch in bound.text.sql.split("\nGO")
        for one in within(statements(tokens(batch)))
        if isinstance(one, Query | Call)
    ]
    assert len(all_bound()) > 250
    assert len(inner) > 300
    assert len(world.relations) > 40
    assert len(world.procedures) > 20
    assert sum(len(bound.shapes) for bound in all_bound().values()) > 150


def test_every_column_of_the_server_is_documented() -> None:
    """Each view has its page; columns that no page confirms are listed, and there is none."""
    said = tomllib.loads((HERE / "server_views.toml").read_text(encoding="utf-8"))
    unconfirmed = said["unconfirmed"]
    assert unconfirmed == []
    pages = {name: one["page"] for name, one in said.items() if name.startswith("sys.")}
    assert set(pages) == set(server_views())
    for name, page in pages.items():
        assert name.removeprefix("sys.").replace("_", "-") in page, name
