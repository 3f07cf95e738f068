"""Microsoft's own parser reads every T-SQL text, for SQL Server 2019, 2022 and 2025."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dpone_provider.application.installation.tsql import batches
from tests.adapters.ledger.tsql import PARSERS, refusals
from tests.sqltext.dynamic import dynamic_statements
from tests.sqltext.of_tests import files, in_source, modules_behind_settings, statements_of_tests
from tests.sqltext.texts import Text, adapter_statements, all_texts, scripts


def test_every_text_is_read_for_every_version(tmp_path: Path) -> None:
    """Scripts, batch by batch, statements of the ledger, statements of the adapters."""
    texts = parts(all_texts())
    assert len(texts) > 100
    assert refusals(texts, tmp_path) == {}


def test_statements_that_scripts_build_are_read_too(tmp_path: Path) -> None:
    """With something fitting in each gap."""
    texts = {one.name: one.sql for text in scripts() for one in dynamic_statements(text)}
    assert len(texts) > 30
    assert refusals(texts, tmp_path) == {}


def test_a_built_statement_is_put_together(tmp_path: Path) -> None:
    """Constants as they are, a name for a name; those inside it too."""
    sql = "SET @sql = N'DROP USER ' + QUOTENAME(u.name) + N';'; EXEC @run N'SET @x = N''DROP ROLE r''';"
    found = [one.sql for one in dynamic_statements(Text("script", sql, script=True))]
    assert found == ["DROP USER [x];", "SET @x = N'DROP ROLE r'", "DROP ROLE r"]
    wrong = Text("script", "SET @sql = N'DROP OOPS ' + QUOTENAME(u.name) + N' FROM;'", script=True)
    assert len(refusals({one.name: one.sql for one in dynamic_statements(wrong)}, tmp_path)) == len(PARSERS)


def test_a_fault_in_any_batch_is_seen(tmp_path: Path) -> None:
    """The check itself sees what it shall see."""
    script = Text("script", "SELECT 1 AS one;\nGO\nSELECT FROM WHERE;\nGO\nSELECT 2 AS two;", script=True)
    found = refusals(parts([script]), tmp_path)
    assert {name.partition(" (")[0] for name in found} == {"script:2"}
    assert len(found) == len(PARSERS)


def parts(texts: Iterable[Text]) -> dict[str, str]:
    """Return each batch of each text by its name and line."""
    return {f"{text.name}:{batch.line}": batch.text for text in texts for batch in batches(text.sql)}


def test_statements_of_the_adapters_are_found_by_their_folder(tmp_path: Path) -> None:
    """Whatever is put there is parsed from then on."""
    folder = tmp_path / "adapters" / "mssql"
    folder.mkdir(parents=True)
    (folder / "gate.sql").write_text("-- name: one\n-- Why.\nSELECT {column} FROM sys.objects WHERE name = ?\n")
    (text,) = adapter_statements(tmp_path)
    assert text.name == "adapters/mssql/gate.sql: one"
    assert text.sql == "SELECT [column] FROM sys.objects WHERE name = @value"


def test_what_tests_send_to_a_given_server_is_read_too(tmp_path: Path) -> None:
    """Statements of tests that run where a server is given, and the statements inside them."""
    texts = list(statements_of_tests())
    inner = [one for text in texts for one in dynamic_statements(text)]
    assert len(texts) > 100
    assert refusals(parts([*texts, *inner]), tmp_path) == {}


def test_statements_are_found_in_a_module() -> None:
    """With names, values and nothing in their gaps; prose is no statement."""
    source = "\n".join(
        [
            '"""CREATE prose."""',
            "own.run(f\"CREATE LOGIN [{name}] WITH PASSWORD = {hashed} HASHED, SID = N'{sid}'{more};\")",
            'own.run("KILL {number};" if x else "select lower;")',
        ]
    )
    assert list(in_source(source)) == [
        (2, "CREATE LOGIN [x] WITH PASSWORD = 0x0200 HASHED, SID = N'x';"),
        (3, "KILL 53;"),
    ]


def test_no_test_makes_a_module_behind_other_statements() -> None:
    """A module must be the first statement of its batch: what the product's sessions send says settings first."""
    sources = {path: path.read_text(encoding="utf-8") for path in files()}
    found = [(path.name, line) for path, text in sources.items() for line in modules_behind_settings(text)]
    assert found == []
    assert list(modules_behind_settings('own.run("CREATE OR ALTER VIEW a.b AS SELECT 1 AS one;")')) == [1]
    assert list(modules_behind_settings("own.run(\"EXEC(N'CREATE VIEW a.b AS SELECT 1 AS one;');\")")) == []
