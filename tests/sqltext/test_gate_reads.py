"""How procedures ask for one gate: a rule over their tokens, beside those of `lint`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from dpone_provider.application.installation.tsql import Token, batches, tokens
from tests.sqltext.texts import Text, scripts


def scanned_gates(found: Sequence[Token]) -> Iterator[int]:
    """Yield the line of each read of the gates by SID that names no key.

    A scan under READ COMMITTED waits for the row of every gate that somebody is moving, and a logon, a fence or a
    closing is about one of them.
    """
    for at, token in enumerate(found):
        if token.name != "login_gate":
            continue
        statement = [one.text for one in _until_its_end(found[at:])]
        sought = any(pair == ["FORCESEEK", "("] for pair in _runs(statement, 2))
        by_sid = any(one[1:] == [".", "sid", "="] for one in _runs(statement, 4))
        if by_sid and not sought:
            yield token.line


def _until_its_end(found: Sequence[Token]) -> Iterator[Token]:
    for token in found:
        if token.text == ";":
            return
        yield token


def _runs(texts: Sequence[str], length: int) -> Iterator[list[str]]:
    return (list(texts[at : at + length]) for at in range(len(texts) - length + 1))


def procedures(text: Text) -> Iterator[tuple[Token, ...]]:
    """Yield the tokens of each procedure that a script makes."""
    for batch in batches(text.sql):
        if [token.word for token in batch.tokens[:4]] == ["CREATE", "OR", "ALTER", "PROCEDURE"]:
            yield batch.tokens


@pytest.mark.parametrize("text", scripts(), ids=lambda text: text.name)
def test_procedures_seek_the_one_gate_that_they_ask_for(text: Text) -> None:
    """A verification by an administrator may scan; what logins, workers and closing call may not."""
    assert [line for procedure in procedures(text) for line in scanned_gates(procedure)] == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("SELECT 1 FROM dpone_control.login_gate AS g WITH (READCOMMITTEDLOCK) WHERE g.sid = @sid;", [1]),
        ("SELECT 1 FROM dpone_control.login_gate AS g WITH (FORCESEEK) WHERE g.sid = @sid;", [1]),
        ("SELECT 1 FROM w JOIN dpone_control.login_gate AS g ON g.attempt_id = w.attempt_id WHERE g.sid = @sid;", [1]),
        ("SELECT 1 FROM dpone_control.login_gate AS g WITH (FORCESEEK (k (service_id, sid))) WHERE g.sid = @sid;", []),
        ("SELECT 1 FROM dpone_control.login_gate AS g WHERE g.attempt_id = @id; SELECT 1 WHERE g.sid = @sid;", []),
    ],
)
def test_a_gate_that_is_scanned_for_is_seen(text: str, lines: list[int]) -> None:
    """And no other."""
    assert list(scanned_gates(tokens(text))) == lines


def test_every_procedure_that_reads_gates_is_looked_at() -> None:
    """The rule is not empty: the gate, the fence and the procedures for logins ask by SID."""
    asking = [
        procedure[6].text
        for text in scripts()
        for procedure in procedures(text)
        if any(token.name == "login_gate" for token in procedure) and any(token.name == "sid" for token in procedure)
    ]
    assert {"require_ready", "require_current", "written_slot", "issue_login", "disable_login"} <= set(asking)
