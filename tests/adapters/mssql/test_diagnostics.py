"""Recorded texts of the driver, read back into what the server said."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.mssql.diagnostics import records_of, timed_out, told
from dpone_provider.adapters.mssql.errors import MEANINGS, AnswerLost, LoginRefused, Meaning, MssqlError, ServerError

D = "[Microsoft][ODBC Driver 18 for SQL Server]"
S = D + "[SQL Server]"
RECORDED: list[tuple[str, type[MssqlError], int | None]] = [  # type: ignore[valid-type]
    (
        f"[40001] {S}Transaction (Process ID 57) was deadlocked on lock resources with another process and has been"
        " chosen as the deadlock victim. Rerun the transaction. (1205) (SQLExecDirectW)",
        ServerError,
        1205,
    ),
    (f"[42000] {S}Lock request time out period exceeded. (1222) (SQLExecDirectW)", ServerError, 1222),
    (
        f"[42000] {S}Snapshot isolation transaction aborted due to update conflict. (3960) (SQLExecDirectW);"
        f" [01000] {S}The statement has been terminated. (3621)",
        ServerError,
        3960,
    ),
    (
        f"[23000] {S}Cannot insert duplicate key row in object 'dbo.t' with unique index 'u'. The duplicate key value"
        f" is (1, <NULL>). (2601) (SQLExecDirectW); [23000] {S}The statement has been terminated. (3621)",
        ServerError,
        2601,
    ),
    (
        f"[22001] {S}String or binary data would be truncated in table 'a.b', column 'c'. Truncated value: 'x'. (2628)"
        f" (SQLExecute); [01000] {S}The statement has been terminated. (3621)",
        ServerError,
        2628,
    ),
    (f"[42000] {S}DPONE_FENCE_GATE (51004) (SQLExecDirectW)", ServerError, 51004),
    (
        f"[28000] {S}Login failed for user 'x'. (18456) (SQLDriverConnect);"
        f" [28000] {S}Login failed for user 'x'. (18456)",
        LoginRefused,
        18456,
    ),
    (
        f'[42000] {S}Cannot open database "gone" requested by the login. The login failed. (4060) (SQLDriverConnect);'
        f" [28000] {S}Login failed for user 'x'. (18456)",
        LoginRefused,
        4060,
    ),
    (
        f"[42000] {S}Logon failed for login 'x' due to trigger execution. (17892) (SQLDriverConnect);"
        f" [01000] {S}Changed database context to 'master'. (5701)",
        LoginRefused,
        17892,
    ),
    (f"[HYT00] {D}Login timeout expired (0) (SQLDriverConnect)", AnswerLost, None),
    (f"[HYT00] {D}Query timeout expired (0) (SQLExecDirectW)", AnswerLost, None),
    (
        f"[08S01] {D}TCP Provider: Error code 0x2746 (10054) (SQLExecDirectW);"
        f" [08S01] {D}Communication link failure (10054)",
        AnswerLost,
        None,
    ),
    (
        f"[HY000] {S}SHUTDOWN is in progress. (6005) (SQLExecDirectW); [08S01] {D}Communication link failure (0)",
        AnswerLost,
        6005,
    ),
    (
        f"[08001] {D}SSL Provider: [error:0A000086:SSL routines::certificate verify failed:self-signed certificate]"
        f" (-1) (SQLDriverConnect); [08001] {D}Client unable to establish connection (-1)",
        AnswerLost,
        None,
    ),
    ("[IM002] [unixODBC][Driver Manager]Data source name not found (0) (SQLDriverConnect)", AnswerLost, None),
    ("no diagnostic at all", AnswerLost, None),
]


@pytest.mark.parametrize(("text", "kind", "number"), RECORDED, ids=[text[:60] for text, _, _ in RECORDED])
def test_a_recorded_text_is_read_as_what_it_says(text: str, kind: type[Exception], number: int | None) -> None:
    found = told(text, connecting="SQLDriverConnect" in text)
    assert type(found) is kind
    assert getattr(found, "number", None) == number


def test_the_better_of_two_reasons_is_told() -> None:
    text = next(text for text, _, _ in RECORDED if "4060" in text)
    assert "Cannot open database" in str(told(text, connecting=True))


@pytest.mark.parametrize("number", [number for number, says in MEANINGS.items() if says is Meaning.LOGIN_REFUSED])
def test_a_login_error_inside_a_session_refuses_it_too(number: int) -> None:
    found = told(f"[42000] {S}Not let in. ({number}) (SQLExecDirectW)", connecting=False)
    assert isinstance(found, LoginRefused)
    assert found.number == number


def test_every_number_of_a_refused_login_is_one() -> None:
    refused = {number for number, says in MEANINGS.items() if says is Meaning.LOGIN_REFUSED}
    assert refused >= {18456, 18470, 17892, 4060}


def test_a_link_that_drops_beside_an_error_that_decides_nothing_is_an_answer_lost() -> None:
    """One that decides stays what it is: its transaction is rolled back either way."""
    dropped = f"[08S01] {D}Communication link failure (0)"
    assert isinstance(told(f"[HY000] {S}Something. (3624) (SQLExecDirectW); {dropped}", connecting=False), AnswerLost)
    found = told(f"[40001] {S}Deadlock. (1205) (SQLExecDirectW); {dropped}", connecting=False)
    assert isinstance(found, ServerError)
    assert found.number == 1205


def test_records_keep_their_order_and_words() -> None:
    first, second = records_of(f"[42000] {S}A (1).\nB (7) (SQLExecDirectW); [01000] {D}C (0)")
    assert (first.state, first.native, first.words, first.from_server) == ("42000", 7, "A (1). B", True)
    assert (second.state, second.native, second.words, second.from_server) == ("01000", 0, "C", False)


def test_time_outs_are_told_from_broken_links() -> None:
    assert timed_out(f"[HYT00] {D}Query timeout expired (0) (SQLExecDirectW)")
    assert not timed_out(f"[08S01] {D}Communication link failure (0) (SQLExecDirectW)")
