"""What the lab makes on a given server is written down before, and dropped again by what is written down."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from dpone_provider.domain.outcomes import DponeError, Failed
from dpone_provider.lab.mssql import making
from dpone_provider.lab.mssql.making import drop_made, make, new_names, read_record, write_record
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc
from tests.lab.mssql.stand_in import StandIn

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
        assert (kept[0].endpoint, kept[1]) == (given.endpoint, names)
        assert kept[0].credential.password.reveal() == PASSWORD
        before = len(stand_in.asked())
        drop_made(record)
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
        assert stand_in.databases == set(found[1].databases)
        drop_made(record)
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
        drop_made(record)
    assert stand_in.logins == set()
    assert stand_in.busy[names.controller_login] == 0


def test_a_server_that_is_gone_is_told_and_what_is_left_is_remembered(tmp_path: Path) -> None:
    stand_in, record = StandIn(), tmp_path / "record"
    with stand_in.serving() as given:
        names, _ = make(given, record)
    with pytest.raises(DponeError) as raised:
        drop_made(record)
    assert isinstance(raised.value.failure, Failed)
    problem = raised.value.failure.problem
    assert problem.reason == "given_server_not_cleared"
    for name in (*names.databases, *names.logins):
        assert name in problem.next_command
    assert PASSWORD not in str(problem)
    assert record.exists()


def test_nothing_is_dropped_where_nothing_was_made(tmp_path: Path) -> None:
    drop_made(tmp_path / "record")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"url": "mssql://a:b@c/d", "names": {}}'])
def test_a_record_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "record").write_text(text)
    with pytest.raises(DponeError, match="given_server_record_unreadable"):
        drop_made(tmp_path / "record")


def test_a_record_says_how_the_server_is_reached(tmp_path: Path) -> None:
    with StandIn().serving() as given:
        write_record(tmp_path / "record", given, new_names())
    document = json.loads((tmp_path / "record").read_text())
    assert document["url"].endswith(f"/sales?encrypt={given.endpoint.tls}")
