"""Every statement compiles for both dialects, and Microsoft's parser accepts the one for SQL Server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.engine import Dialect

from dpone_provider.adapters.ledger.locks import Statement
from dpone_provider.adapters.ledger.mssql_batch import MOST_PARAMETERS
from dpone_provider.adapters.ledger.mssql_engine import LedgerMssql
from dpone_provider.adapters.ledger.session import ROWS_PER_STATEMENT
from dpone_provider.adapters.ledger.statements import every
from dpone_provider.adapters.ledger.types import HexId
from tests.adapters.ledger.tsql import refusals

STATEMENTS = list(every())
POSTGRES: Dialect = psycopg.dialect()  # type: ignore[no-untyped-call]
MSSQL: Dialect = LedgerMssql(paramstyle="named")
HEX = "0f" * 32


def compiled(statement: Statement, dialect: Dialect) -> str:
    """Return the text that is sent, with every list of ids at two elements."""
    sql: Any = statement.sql
    given = {name: [HEX, HEX] if name == "ids" else value or "x" for name, value in sql.compile().params.items()}
    if given and sql.is_select:
        sql = sql.params(given)
    return str(sql.compile(dialect=dialect, compile_kwargs={"render_postcompile": True}))


def test_there_is_a_statement_for_every_use() -> None:
    """Names tell them apart in transcripts."""
    names = [statement.name for statement in STATEMENTS]
    assert len(names) == len(set(names))
    assert len(names) > 60


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.name)
def test_compiles_for_postgres(statement: Statement) -> None:
    """Without RETURNING, with the lock that its name says."""
    text = compiled(statement, POSTGRES)
    assert "RETURNING" not in text
    locks = {"share lock": "FOR SHARE", "update lock": "FOR NO KEY UPDATE", "exclusive lock": "FOR UPDATE"}
    expected = [clause for name, clause in locks.items() if statement.name.endswith(name)]
    assert [clause for clause in locks.values() if text.endswith(clause)] == expected


def test_microsofts_parser_accepts_every_statement(tmp_path: Path) -> None:
    """For 2019, 2022 and 2025; none has OUTPUT, which triggers forbid."""
    texts = {statement.name: compiled(statement, MSSQL) for statement in STATEMENTS}
    assert refusals(texts, tmp_path) == {}
    assert not [name for name, text in texts.items() if "OUTPUT" in text]


def test_the_parser_names_the_statement_that_it_refuses(tmp_path: Path) -> None:
    """The check itself sees a fault."""
    found = refusals({"good": "SELECT 1 AS one", "bad": "SELECT :x FOR SHARE"}, tmp_path)
    assert {name.split()[0] for name in found} == {"bad"}
    assert len(found) == 3


@pytest.mark.parametrize(
    "statement", [one for one in STATEMENTS if one.name.startswith("read ")], ids=lambda one: one.name
)
def test_every_read_of_sql_server_says_how_it_locks(statement: Statement) -> None:
    """Under row versioning a read without a hint would see rows as they were."""
    text = compiled(statement, MSSQL)
    hints = {
        "share lock": "WITH (REPEATABLEREAD, ROWLOCK, FORCESEEK (",
        "update lock": "WITH (UPDLOCK, ROWLOCK, FORCESEEK (",
        "exclusive lock": "WITH (XLOCK, ROWLOCK, FORCESEEK (",
    }
    wanted = next((hint for name, hint in hints.items() if statement.name.endswith(name)), "WITH (READCOMMITTEDLOCK)")
    assert text.count(wanted) == text.count("FROM dpone_control.")


def test_no_statement_has_more_parameters_than_a_call_takes() -> None:
    """Ids are said once in each part of a statement, and each time sent: SQL Server takes 2,100 parameters (8003)."""
    most = {statement.name: compiled(statement, MSSQL).count(":ids_1") for statement in STATEMENTS}
    assert max(most.values()) == 3
    assert all(said * ROWS_PER_STATEMENT <= MOST_PARAMETERS for said in most.values())


def test_ids_are_binary_on_sql_server_and_text_on_postgres() -> None:
    """One type decorator, both ways."""
    kind = HexId()
    assert kind.process_bind_param(HEX, MSSQL) == bytes.fromhex(HEX)
    assert kind.process_bind_param(HEX, POSTGRES) == HEX
    assert kind.process_bind_param(None, MSSQL) is None
    assert kind.process_result_value(bytes.fromhex(HEX), MSSQL) == HEX
    assert kind.process_result_value(HEX, POSTGRES) == HEX
    assert kind.process_result_value(None, MSSQL) is None
    assert kind.load_dialect_impl(MSSQL).compile(dialect=MSSQL) == "BINARY(32)"
    assert kind.load_dialect_impl(POSTGRES).python_type is str
