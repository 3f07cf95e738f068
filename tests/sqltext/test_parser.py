"""Microsoft's own parser reads every T-SQL text, for SQL Server 2019, 2022 and 2025."""

from __future__ import annotations

from pathlib import Path

from tests.adapters.ledger.tsql import PARSERS, refusals
from tests.sqltext.texts import adapter_statements, all_texts


def test_every_text_is_read_for_every_version(tmp_path: Path) -> None:
    """Scripts, statements of the ledger, statements of the adapters."""
    texts = {text.name: text.sql for text in all_texts()}
    assert len(texts) > 60
    assert refusals(texts, tmp_path) == {}


def test_a_fault_in_any_batch_is_seen(tmp_path: Path) -> None:
    """The check itself sees what it shall see."""
    found = refusals({"script": "SELECT 1 AS one;\nGO\nSELECT FROM WHERE;\nGO\nSELECT 2 AS two;"}, tmp_path)
    assert len(found) == len(PARSERS)


def test_statements_of_the_adapters_are_found_by_their_folder(tmp_path: Path) -> None:
    """Whatever is put there is parsed from then on."""
    folder = tmp_path / "adapters" / "mssql"
    folder.mkdir(parents=True)
    (folder / "gate.sql").write_text("-- name: one\n-- Why.\nSELECT {column} FROM sys.objects WHERE name = ?\n")
    (text,) = adapter_statements(tmp_path)
    assert text.name == "adapters/mssql/gate.sql: one"
    assert text.sql == "SELECT [column] FROM sys.objects WHERE name = @value"
