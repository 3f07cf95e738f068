"""Sessions over Microsoft's real ODBC driver, against a server that answers as a test says."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

import pytest

from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.errors import AnswerLost, LoginRefused, Meaning, ServerError
from dpone_provider.adapters.mssql.parameters import HEAD
from dpone_provider.application.installation.tsql import batches
from dpone_provider.sql_files import shipped_sql
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc, server_at
from tests.adapters.mssql.tds_server import Answer, Cell, Cut, Error, Rows, Script, Silence, Told, serving
from tests.waiting import wait_until

pytestmark = needs_odbc

NUMBERS = Rows(("number",), [(1,), (2,)])


def always(*answers: Answer, to: str = "ask") -> Script:
    """Return a script that answers one batch, and everything else with nothing."""

    def script(text: str, values: Sequence[Cell], session: int) -> Sequence[Answer]:
        return answers if to in text else ()

    return script


def test_rows_and_values_go_through_whole() -> None:
    cells = (7, "a€😀", b"\x00\x01", None)
    with serving(always(Rows(("a", "b", "c", "d"), [cells, (None, "", b"", None)]))) as server:
        with server_at(server.port).session("dpone test", 5) as own:
            long = "x" * 5000
            rows = own.rows("ask", {"text": long, "name": "n", "number": 2**40, "data": b"\xff\x00"})
        assert rows == [cells, (None, "", b"", None)]
        text, values = server.batches[-1]
        assert text.startswith(f"{HEAD}\nDECLARE @text nvarchar(max) = @P1; DECLARE @name nvarchar(4000) = @P2;")
        assert values == (long, "n", 2**40, b"\xff\x00")
        assert server.programs == ["dpone test"]
        assert server.passwords == [PASSWORD]


def test_every_batch_says_its_settings_first() -> None:
    with serving(always()) as server:
        with server_at(server.port).session("dpone test", 5) as own:
            own.run("ask")
        assert all(text.startswith("SET NOCOUNT, XACT_ABORT ON;") for text in server.sent())
        assert "QUOTED_IDENTIFIER ON" in server.sent()[0]
        assert "SET LOCK_TIMEOUT 4500" in server.sent()[0]


def test_each_batch_of_the_scripts_arrives_as_it_stands() -> None:
    # A module must be the first statement of its batch; a question mark in a comment is no parameter.
    written = [batch.text for path in sorted(shipped_sql("mssql").glob("*.sql")) for batch in batches(path.read_text())]
    assert any("?" in text for text in written)
    with serving(always()) as server:
        with server_at(server.port).session("dpone test", 30) as own:
            for text in written:
                own.as_written(text)
        assert server.sent()[-len(written) :] == written


def test_an_error_of_a_batch_as_it_stands_is_told() -> None:
    refusing = always(Error(51000, "the schema exists already"))
    with (
        serving(refusing) as server,
        server_at(server.port).session("dpone test", 5) as own,
        pytest.raises(ServerError, match="exists already"),
    ):
        own.as_written("ask")


@pytest.mark.parametrize(
    "answers",
    [
        (
            NUMBERS,
            Error(2627, "Violation of PRIMARY KEY constraint."),
            Error(3621, "The statement has been terminated.", 0),
        ),
        (Told("words"), Error(2627, "Violation of PRIMARY KEY constraint.")),
        (*[NUMBERS] * 28, Error(2627, "Violation of PRIMARY KEY constraint."), NUMBERS),
    ],
    ids=["selects then throws", "prints then throws", "the 29th of 30 fails"],
)
def test_a_batch_is_drained_to_its_error(answers: tuple[Answer, ...]) -> None:
    with serving(always(*answers)) as server, server_at(server.port).session("dpone test", 5) as own:
        with pytest.raises(ServerError) as raised:
            own.run("ask")
        assert (raised.value.number, raised.value.meaning) == (2627, Meaning.UNIQUE)
        assert own.results("then") == []


@pytest.mark.parametrize(
    ("number", "meaning"),
    [
        (1205, Meaning.DEADLOCK),
        (1222, Meaning.LOCK_TIMEOUT),
        (3960, Meaning.SNAPSHOT_CONFLICT),
        (3961, Meaning.SNAPSHOT_CONFLICT),
        (2627, Meaning.UNIQUE),
        (2601, Meaning.UNIQUE),
        (547, Meaning.CONSTRAINT),
        (2628, Meaning.TRUNCATION),
        (229, Meaning.PERMISSION),
        (334, Meaning.OUTPUT_ON_TRIGGER),
        (1934, Meaning.SETTINGS),
        (51002, Meaning.FENCE),
        (50000, Meaning.OTHER),
    ],
)
def test_the_native_number_survives_the_driver(number: int, meaning: Meaning) -> None:
    words = "Words with (1222), brackets [and] more; (229)"
    with serving(always(Error(number, words))) as server, server_at(server.port).session("dpone test", 5) as own:
        with pytest.raises(ServerError) as raised:
            own.run("ask")
        assert (raised.value.number, raised.value.meaning, raised.value.text) == (number, meaning, words)


@pytest.mark.parametrize("number", [18456, 18470, 17892, 4060])
def test_a_login_that_is_not_let_in(number: int) -> None:
    refusal = Error(number, f"Login failed for user 'controller' with {PASSWORD}.", 14)
    with serving(always(), refuse=refusal) as server:
        with pytest.raises(LoginRefused) as raised, server_at(server.port).session("dpone test", 5):
            pass
        assert str(number) in str(raised.value)
        assert PASSWORD not in "".join(traceback.format_exception(raised.value))


def test_a_server_that_takes_no_logins_at_present_says_nothing_of_the_login() -> None:
    with (
        serving(always(), refuse=Error(18401, "Server is in script upgrade mode.", 14)) as server,
        pytest.raises(AnswerLost, match="upgrade"),
        server_at(server.port).session("dpone test", 5),
    ):
        pass


def test_a_cut_connection_is_an_answer_lost() -> None:
    with serving(always(NUMBERS, Cut())) as server:
        with pytest.raises(AnswerLost), server_at(server.port).session("dpone test", 5) as own:
            own.run("ask")
        assert len([text for text in server.sent() if text.endswith("ask")]) == 1, "never sent again"


@pytest.mark.parametrize("attentive", [True, False])
def test_silence_ends_with_the_time_that_was_given(attentive: bool) -> None:
    with serving(always(Silence(attentive))) as server:
        with pytest.raises(AnswerLost), server_at(server.port).session("dpone test", 1) as own:
            own.run("ask")
        wait_until(lambda: server.open_connections == 0, what="the end of the connection")


def test_nobody_listening_is_an_answer_lost() -> None:
    with serving(always()) as server:
        port = server.port
    with pytest.raises(AnswerLost), server_at(port).session("dpone test", 1):
        pass


def test_closing_a_session_ends_its_connection() -> None:
    with serving(always()) as server:
        assert driver.pyodbc().pooling is False
        with server_at(server.port).session("dpone test", 5):
            assert server.open_connections == 1
        wait_until(lambda: server.open_connections == 0, what="the end of the connection")


def test_a_kept_session_is_used_again_and_replaced_when_it_broke() -> None:
    with serving(always(Cut())) as server:
        kept = server_at(server.port).kept("dpone test")
        for _ in range(2):
            with kept.use(5) as own:
                own.run("first")
        assert len(server.users) == 1
        with pytest.raises(AnswerLost), kept.use(5) as own:
            own.run("ask")
        with kept.use(5) as own:
            own.run("again")
        assert len(server.users) == 2
        kept.close()
        wait_until(lambda: server.open_connections == 0, what="the end of the connections")


def test_a_transaction_is_rolled_back_when_its_block_fails() -> None:
    states = {"XACT_STATE())": [Rows(("state",), [(0,)])], "ask": [Error(547, "A constraint.")]}

    def script(text: str, values: Sequence[Cell], session: int) -> Sequence[Answer]:
        return next((answers for part, answers in states.items() if part in text), ())

    with serving(script) as server, server_at(server.port).session("dpone test", 5) as own:
        with pytest.raises(ServerError), own.transaction():
            own.run("ask")
        assert [text.splitlines()[-1] for text in server.sent()[-3:]] == [
            "BEGIN TRANSACTION;",
            "ask",
            "IF XACT_STATE() <> 0 ROLLBACK TRANSACTION;",
        ]


def test_a_handle_that_is_none_of_pyodbcs_is_not_borrowed() -> None:
    assert server_at(1).borrowed(object()) is None
