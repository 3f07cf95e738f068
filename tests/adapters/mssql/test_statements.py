"""Every statement of the adapter, read by Microsoft's parser for the three versions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpone_provider.adapters import mssql
from dpone_provider.adapters.mssql.names import Fragment, filled
from dpone_provider.sql_files import load
from tests.adapters.ledger.tsql import refusals

FOLDER = Path(mssql.__file__).parent
FILES = sorted(FOLDER.glob("*.sql"))
PARTS = {
    "hash": "0x0200ABCD",
    "sid": "0x64706F6E650100000000000000000000",
    "milliseconds": "900",
    "number": "53",
    "text": "N'SELECT 1'",
    "new_text": "N'n'",
    "schema_text": "N's'",
    "table_text": "N't'",
    "column_text": "N'c'",
    "comment": "N'c'",
    "type": "int",
    "label": "N'l'",
    "types": "[a] int NOT NULL",
    "definitions": "[a] int NOT NULL, PRIMARY KEY ([a])",
    "columns": "[a], [b]",
    "other_columns": "[a], [b]",
    "counts": "COUNT_BIG(*)",
    "selected": "[a], [b]",
    "shown": "[a]",
    "guard": "[a] = N'x'",
    "nullability": "NULL",
}
"""What stands for a brace; a name of an object for any other."""


def whole(statement: str) -> str:
    """Return a statement with something fitting in each brace."""
    names = set(re.findall(r"\{([a-z_]+)\}", statement))
    return filled(statement, **{name: Fragment(PARTS.get(name, f"[{name}]")) for name in names})


def test_the_folder_has_statements() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_microsofts_parser_reads_every_statement(file: Path, tmp_path: Path) -> None:
    statements = {name: whole(sql) for name, sql in load(file).items()}
    assert refusals(statements, tmp_path) == {}


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_no_statement_has_a_mark_for_a_value(file: Path) -> None:
    assert not [name for name, sql in load(file).items() if re.search(r"\?|%s|%\(", sql)]
