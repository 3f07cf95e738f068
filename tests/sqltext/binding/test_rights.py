"""Who runs a statement of the program may run it: the rights that it needs are granted by the scripts."""

from __future__ import annotations

import pytest

from tests.sqltext.binding.rights import Right, granted, missing, needed
from tests.sqltext.texts import Text, adapter_statements, ledger_batches, ledger_statements

CONTROLLER = "dpone_ledger"
ISSUED = "dpone_issued"
WRITER = "dpone_writer_stage"
BY_THE_WORKER = frozenset({"fence", "add_receipt"})
"""Statements that an issued login runs."""


def every() -> list[Text]:
    """Return every statement of the program that touches something of ours."""
    texts = (*ledger_statements(), *ledger_batches(), *adapter_statements())
    return [text for text in texts if not text.name.startswith("lab/") and set(needed(text))]


def test_who_runs_it_may() -> None:
    """The controller, but for what the login of an attempt runs itself."""
    lacks = {text.name: missing(text, roles(text)) for text in every()}
    assert {name: found for name, found in lacks.items() if found} == {}


def roles(text: Text) -> tuple[str, ...]:
    """Return the roles of who runs a statement."""
    file, _, name = text.name.partition(": ")
    by_worker = file == "adapters/mssql/publication.sql" and name in BY_THE_WORKER
    return (ISSUED, WRITER) if by_worker else (CONTROLLER,)


def test_there_is_much_to_grant() -> None:
    """Neither side is empty."""
    assert len(granted(CONTROLLER)) > 50
    assert len(every()) > 100
    assert Right("UPDATE", "dpone_control", "attempt", "state") in granted(CONTROLLER)
    assert Right("SELECT", "dpone_control", "") in granted(CONTROLLER)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE dpone_control.attempt SET run_id = N'x';",
        "DELETE FROM dpone_control.attempt WHERE map_index = 1;",
        "INSERT INTO dpone_control.event (at) VALUES (SYSDATETIMEOFFSET());",
        "EXEC dpone_control.refuse N'a', N'b', N'c', N'd';",
        "EXEC dpone_gate.require_current @attempt_id = @a, @transaction_id = @b;",
        "IF 1 = 1 EXEC dpone_gate.empower_target N'x';",
    ],
)
def test_what_nobody_granted_is_seen(sql: str) -> None:
    """A column that never moves, rows that stay, procedures of others."""
    assert len(missing(Text("sample", sql, script=False), (CONTROLLER,))) == 1
