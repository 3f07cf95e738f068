"""A whole lab with a given server, which a stand-in plays: made, installed, tried, enrolled, and nothing of it left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from dpone_provider import lab
from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.assembly.reach import authority_login
from dpone_provider.documents.environment import EnvironmentV1
from dpone_provider.documents.reading import read
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.lab.condition import claimed
from dpone_provider.lab.enrolment import enrol_once
from dpone_provider.lab.mssql.given import VARIABLE, GivenServer
from dpone_provider.lab.mssql.installing import (
    BREAK_GLASS,
    CONTROL,
    ENABLE,
    SCHEMA,
    TARGET,
    VERIFY,
    GivenInstance,
    install,
)
from dpone_provider.lab.mssql.making import make
from dpone_provider.lab.state import GIVEN_FILE, write_credentials
from dpone_provider.sql_files import shipped_sql
from tests.adapters.mssql.fake_instance import GUIDS
from tests.adapters.mssql.odbc import needs_odbc
from tests.lab.mssql.stand_in import VERSION, StandIn, environ_of
from tests.lab.mssql.whole_stand_in import WholeStandIn

pytestmark = needs_odbc


def named(monkeypatch: pytest.MonkeyPatch, given: GivenServer) -> None:
    """Name the server in the environment of this process."""
    for name, value in environ_of(given).items():
        monkeypatch.setenv(name, value)


def begins(script: str) -> str:
    """Return the first line of a script, by which its batches are told apart."""
    return (shipped_sql("mssql") / script).read_text().partition("\n")[0]


@pytest.mark.lab
def test_a_lab_is_enrolled_on_it_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in, told = WholeStandIn(), list[str]()
    with stand_in.serving() as given:
        named(monkeypatch, given)
        with lab.running(tmp_path, given=given, progress=told.append) as state:
            assert state.mssql is not None
            assert state.mssql.version == VERSION
            assert stand_in.made.databases == {state.mssql.control_database, state.mssql.target_database}
            enrolled = enrol_once(state, progress=told.append)
            written = yaml.safe_load(enrolled.environment_file.read_text())
            environment = read(EnvironmentV1, json.dumps(written).encode(), "the environment file")
            assert isinstance(environment, EnvironmentV1), environment
            assert lab.read_state(tmp_path) == state
            assert enrol_once(state, progress=told.append) == enrolled
            assert lab.up(tmp_path, given=given) == state
            with pytest.raises(DponeError, match="lab_with_another_warehouse"):
                lab.up(tmp_path)
        left = stand_in.made.databases | stand_in.made.logins
    warehouse = environment.connections["warehouse.lab"]
    assert warehouse.kind == EngineKind.MSSQL
    assert (warehouse.endpoint.port, warehouse.tls) == (given.endpoint.port, given.endpoint.tls)
    assert warehouse.composition_service_id == GUIDS["service"]
    assert set(warehouse.databases[state.mssql.target_database].managed_schemas) == {"mart", "stage"}
    assert environment.connections["shop.lab"].kind == EngineKind.POSTGRES
    assert environment.connections["analytics.lab"].kind == EngineKind.CLICKHOUSE
    assert enrolled.warehouse is EngineKind.MSSQL
    heads = [batch.partition("\n")[0] for batch in stand_in.scripts if "SET ANSI_NULLS ON;" in batch]
    assert heads == [begins(one) for one in (*CONTROL, ENABLE, TARGET, SCHEMA, SCHEMA, VERIFY)]
    assert left == set()
    assert stand_in.instance.logins == {}
    assert not any(tmp_path.iterdir())
    assert "enabling the LOGON gate, and trying it" in told


def test_a_gate_that_lets_one_of_ours_in_is_disabled_again(tmp_path: Path) -> None:
    stand_in = WholeStandIn()
    stand_in.instance.guards = False
    with stand_in.serving() as given:
        names, credentials = make(given, tmp_path / "record")
        write_credentials(tmp_path, credentials)
        controller = authority_login(ReferencedCredentials(), f"file:{tmp_path / 'authority'}")
        instance = GivenInstance(given=given, controller=controller, names=names)
        with pytest.raises(DponeError, match="gate_let_a_login_in"):
            install(instance, names, ("mart",), lambda line: None)
    heads = [batch.partition("\n")[0] for batch in stand_in.scripts if "SET ANSI_NULLS ON;" in batch]
    assert heads == [begins(one) for one in (*CONTROL, ENABLE, BREAK_GLASS)]
    assert stand_in.instance.logins == {}


def test_a_start_that_fails_drops_what_it_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = StandIn()

    def fail_half_way(given: GivenServer) -> None:
        named(monkeypatch, given)
        with claimed(tmp_path) as (places, _):
            make(given, places.given)
            assert len(stand_in.databases | stand_in.logins) == 4
            raise ZeroDivisionError

    with stand_in.serving() as given, pytest.raises(ZeroDivisionError):
        fail_half_way(given)
    assert stand_in.databases | stand_in.logins == set()
    assert not (tmp_path / GIVEN_FILE).exists()


def test_what_a_dead_lab_left_on_the_server_is_dropped_by_the_next_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = StandIn()
    with stand_in.serving() as given:
        # As after a kill: the lock, the record, and what it names.
        (tmp_path / "lab.lock").touch()
        make(given, tmp_path / GIVEN_FILE)
        assert lab.status(tmp_path).condition is lab.LabCondition.DEAD
        monkeypatch.delenv(VARIABLE, raising=False)
        with pytest.raises(DponeError, match="given_server_not_named"):
            lab.down(tmp_path)
        named(monkeypatch, given)
        assert lab.down(tmp_path)
    assert stand_in.databases | stand_in.logins == set()
    assert not any(tmp_path.iterdir())


def test_a_lab_stays_down_and_remembers_while_the_server_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandIn().serving() as given:
        named(monkeypatch, given)
        (tmp_path / "lab.lock").touch()
        make(given, tmp_path / GIVEN_FILE)
    for _ in range(2):
        with pytest.raises(DponeError, match="given_server_not_cleared"):
            lab.down(tmp_path)
    assert (tmp_path / GIVEN_FILE).exists()
