"""What the lab makes on a given server is written down before, and dropped again by what is written down."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.lab.mssql import making
from dpone_provider.lab.mssql.given import VARIABLE
from dpone_provider.lab.mssql.making import drop_made, make, new_names, read_record, write_record
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc
from tests.lab.mssql.stand_in import StandIn, environ_of

pytestmark = needs_odbc


def test_no_two_labs_share_a_name() -> None:
    made = [new_names() for _ in range(50)]
    assert len({name for one in made for name in (*one.databases, *one.logins)}) == 200


def test_databases_and_logins_are_made_and_dropped_again(tmp_path: Path) -> None:
    stand_in, record = StandIn(), tmp_path / "record"
    with stand_in.serving() as given:
        names, credentials = make(given, record)
        assert stand_in.databases == set(names.databases)
        assert stand_in.logins == set(names.logins)
        assert stat.S_IMODE(record.stat().st_mode) == 0o600
        kept = read_record(record)
        assert kept is not None
        assert (kept.host, kept.port, kept.names) == (given.endpoint.host, given.endpoint.port, names)
        before = len(stand_in.asked())
        drop_made(record, environ_of(given))
        gone = stand_in.asked()[before:]
    assert (stand_in.databases, stand_in.logins) == (set(), set())
    assert not record.exists()
    assert "DROP TRIGGER dpone_gate" in gone[0]
    assert f"[{names.control_database}]" in gone[0]
    last = credentials["authority"].reveal()
    assert last.startswith(f"mssql://{names.controller_login}:")
    assert last.endswith(f"/{names.control_database}?encrypt={given.endpoint.tls}")
    for name, login in (("warehouse_controller", names.controller_login), ("warehouse_reader", names.reader_login)):
        assert credentials[name].reveal().startswith(f"mssql://{login}:")
        assert credentials[name].reveal().endswith(f"/{names.target_database}")


def test_what_was_begun_is_written_down_before_the_first_statement(tmp_path: Path) -> None:
    stand_in, record = StandIn(refusing="CREATE LOGIN"), tmp_path / "record"
    with stand_in.serving() as given:
        with pytest.raises(DponeError, match="given_server_statement_failed"):
            make(given, record)
        found = read_record(record)
        assert found is not None
        assert stand_in.databases == set(found.names.databases)
        drop_made(record, environ_of(given))
    assert stand_in.databases == set()
    assert not record.exists()


def test_a_login_whose_last_session_is_still_ending_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "POLL_SECONDS", 0.0)
    stand_in, record = StandIn(), tmp_path / "record"
    with stand_in.serving() as given:
        names, _ = make(given, record)
        stand_in.busy[names.controller_login] = 3
        drop_made(record, environ_of(given))
    assert stand_in.logins == set()
    assert stand_in.busy[names.controller_login] == 0


def test_a_server_that_is_gone_is_told_and_what_is_left_is_remembered(tmp_path: Path) -> None:
    stand_in, record = StandIn(), tmp_path / "record"
    with stand_in.serving() as given:
        names, _ = make(given, record)
    with pytest.raises(DponeError) as raised:
        drop_made(record, environ_of(given))
    assert isinstance(raised.value.failure, Failed)
    problem = raised.value.failure.problem
    assert problem.reason == "given_server_not_cleared"
    for name in (*names.databases, *names.logins):
        assert name in problem.next_command
    assert PASSWORD not in str(problem)
    assert record.exists()


def test_nothing_is_dropped_where_nothing_was_made(tmp_path: Path) -> None:
    drop_made(tmp_path / "record", {})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"host": "db", "port": 1433, "names": {}}', '{"host": "db"}'])
def test_a_record_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "record").write_text(text)
    with pytest.raises(DponeError, match="given_server_record_unreadable"):
        drop_made(tmp_path / "record", {})


def test_a_record_says_where_and_never_who(tmp_path: Path) -> None:
    """The administrator's password is of a server that is not the lab's: it is written down nowhere."""
    with StandIn().serving() as given:
        write_record(tmp_path / "record", given, new_names())
    text = (tmp_path / "record").read_text()
    assert set(json.loads(text)) == {"host", "port", "names"}
    for secret in (PASSWORD, *environ_of(given).values(), given.credential.user):
        assert secret not in text


@pytest.mark.parametrize("named", [None, "mssql://sa:pw@elsewhere:1433/master", "mssql://sa:pw@127.0.0.1:1/master"])
def test_whoever_drops_names_the_very_server_again(tmp_path: Path, named: str | None) -> None:
    stand_in, record = StandIn(), tmp_path / "record"
    with stand_in.serving() as given:
        names, _ = make(given, record)
        before = len(stand_in.asked())
        with pytest.raises(DponeError, match="given_server_not_named") as raised:
            drop_made(record, {} if named is None else {VARIABLE: named})
        assert len(stand_in.asked()) == before
        assert isinstance(raised.value.failure, Refused)
        problem = raised.value.failure.problem
        assert f"{given.endpoint.host}:{given.endpoint.port}" in problem.next_command
        assert names.control_database in problem.next_command
        assert "pw" not in str(problem)
        assert record.exists()
        drop_made(record, environ_of(given))
    assert not record.exists()
