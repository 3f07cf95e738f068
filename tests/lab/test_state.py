"""The state document and the credential files."""

from __future__ import annotations

import dataclasses
import json
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.state import (
    EngineState,
    LabState,
    parse_state,
    url_of,
    write_pool,
    write_private,
    write_state,
)


def engine(kind: str) -> EngineState:
    return EngineState(kind=kind, host="127.0.0.1", port=20000, pid=1, version="1", facts={"log": "/log"})


def state(root: Path) -> LabState:
    return LabState(
        root=root,
        supervisor_pid=7,
        started_at="2026-11-29T12:00:00+00:00",
        postgres=engine("embedded"),
        clickhouse=None,
    )


def test_a_state_is_read_back_as_written(tmp_path: Path) -> None:
    written = dataclasses.replace(state(tmp_path), clickhouse=engine("library"))
    write_state(written)
    path = tmp_path / "state.json"
    assert parse_state(path.read_text(), path=path) == written
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"schema": "dpone.lab-state.v2"}', '{"schema": 3'])
def test_another_document_is_refused(text: str) -> None:
    with pytest.raises(DponeError, match="lab_state_unreadable"):
        parse_state(text, path=Path("state.json"))


def test_a_document_with_another_field_is_refused(tmp_path: Path) -> None:
    write_state(state(tmp_path))
    document = json.loads((tmp_path / "state.json").read_text()) | {"more": 1}
    with pytest.raises(DponeError, match="lab_state_unreadable"):
        parse_state(json.dumps(document), path=tmp_path / "state.json")


@given(user=st.text(min_size=1), password=st.text(min_size=1), database=st.text(min_size=1))
def test_a_url_holds_any_user_password_and_database(user: str, password: str, database: str) -> None:
    url = url_of("postgresql", user=user, password=Secret(password), host="127.0.0.1", port=1, database=database)
    parts = urlsplit(url.reveal())
    assert (unquote(parts.username or ""), unquote(parts.password or "")) == (user, password)
    assert unquote(parts.path[1:]) == database


def test_a_url_holds_an_address_of_ipv6() -> None:
    url = url_of("mssql", user="sa", password=Secret("x"), host="::1", port=1433, database="d").reveal()
    parts = urlsplit(url)
    assert (parts.hostname, parts.port) == ("::1", 1433)


def test_a_private_file_replaces_what_was_there_whatever_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


def test_a_pool_is_read_back_and_absent_where_users_are_made_by_sql(tmp_path: Path) -> None:
    (tmp_path / "credentials").mkdir()
    assert state(tmp_path).pool() == []
    write_pool(tmp_path / "credentials", {"dpone_v3_pool_0000": Secret("a"), "dpone_v3_pool_0001": Secret("b")})
    pool = [(user, password.reveal()) for user, password in state(tmp_path).pool()]
    assert pool == [("dpone_v3_pool_0000", "a"), ("dpone_v3_pool_0001", "b")]
