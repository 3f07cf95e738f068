"""A whole lab with a given ClickHouse, which a stand-in plays: made, enrolled, loaded, and nothing of it left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dpone_provider import lab
from dpone_provider.cli.lab import lab as lab_command
from dpone_provider.documents.environment import EnvironmentV1
from dpone_provider.documents.reading import read
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.lab.clickhouse.given import GivenClickhouse
from dpone_provider.lab.clickhouse.making import make
from dpone_provider.lab.condition import claimed
from dpone_provider.lab.enrolment import enrol_once
from dpone_provider.lab.state import GIVEN_ANALYTICS_FILE, GIVEN_FILE
from tests.acceptance.commands import dpone
from tests.acceptance.world import Place, World, succeeded, world
from tests.adapters.mssql.odbc import needs_odbc
from tests.lab.clickhouse.stand_in import ADMINISTRATOR, StandIn
from tests.lab.mssql.stand_in import environ_of
from tests.lab.mssql.whole_stand_in import WholeStandIn

pytestmark = pytest.mark.lab


@pytest.fixture
def whole(stand_in: StandIn, tmp_path: Path) -> Iterator[World]:
    """Hold a lab that is enrolled with it."""
    with world(tmp_path / "world") as made:
        yield made


def test_a_table_is_refreshed_on_it_by_users_that_sql_makes(whole: World, stand_in: StandIn, tmp_path: Path) -> None:
    """One whole lab: what is written down of it, a refresh and its reconciliation, and who was made for it."""
    state = whole.lab
    assert state.analytics is not None
    assert state.clickhouse is None
    assert (state.analytics.controller, state.analytics.port) == (ADMINISTRATOR, stand_in.given.endpoint.port)
    assert lab.read_state(state.root) == state
    _is_the_same_lab(state, stand_in.given)
    shown = CliRunner().invoke(lab_command, ["status", "--root", str(state.root)]).output
    assert f"ClickHouse 26.7.2.1 (given) on 127.0.0.1:{state.analytics.port}, databases mart and dpone_stage" in shown
    document = yaml.safe_load((state.root / "environment.yaml").read_text())
    environment = read(EnvironmentV1, json.dumps(document).encode(), "the environment file")
    assert isinstance(environment, EnvironmentV1), environment
    analytics = environment.connections["analytics.lab"]
    assert (analytics.kind, analytics.endpoint.port) == (EngineKind.CLICKHOUSE, stand_in.given.endpoint.port)
    assert "login_issuer" not in document["connections"]["analytics.lab"]

    place = Place(whole, tmp_path / "place")
    place.source("orders", rows=3)
    promoted = place.promote(place.release(place.onward("orders")))
    succeeded(place.run(promoted, "orders"))
    assert place.mart("orders") == ["1\tword 1\t1.25", "2\tword 2\t2.50", "3\tword 3\t3.75"]
    assert dpone(place, "reconcile").code == 0
    assert whole.violations() == []

    made = [one for one in stand_in.users.statements if one.startswith("CREATE USER `dpone_v3_")]
    assert len(made) == 1
    assert list(stand_in.users.users) == [state.analytics.reader], "the attempt's own was dropped when it ended"


def _is_the_same_lab(state: lab.LabState, given: GivenClickhouse) -> None:
    """Say what is up when it is asked for again: the same lab, unless another server is named, or none."""
    assert lab.up(state.root, analytics=given) == state
    elsewhere = replace(given, endpoint=replace(given.endpoint, port=1))
    for another in (None, elsewhere):
        with pytest.raises(DponeError, match="lab_with_another_analytics"):
            lab.up(state.root, analytics=another)


def test_what_a_dead_lab_left_does_not_stand_in_the_way_of_the_next(stand_in: StandIn, tmp_path: Path) -> None:
    """Its databases have the names of the next one's, which is refused here for another reason and so ends at once."""
    (tmp_path / "lab.lock").touch()
    make(stand_in.given, tmp_path / GIVEN_ANALYTICS_FILE)
    stand_in.users.lacks["version"] = "version 24.3.1.1"
    with pytest.raises(DponeError, match="given_server_unfit") as raised:
        lab.up(tmp_path, analytics=stand_in.given)
    assert "version 24.3.1.1" in str(raised.value)
    assert "database mart" not in str(raised.value)
    assert stand_in.databases() == set()
    assert not any(tmp_path.iterdir())


@needs_odbc
def test_it_stands_beside_a_given_sql_server(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are enrolled with one authority, and cleared when the lab ends."""
    mssql = WholeStandIn()
    with mssql.serving() as given:
        for name, value in environ_of(given).items():
            monkeypatch.setenv(name, value)
        with lab.running(tmp_path, given=given, analytics=stand_in.given) as state:
            enrolled = enrol_once(state, progress=lambda _: None)
            connections = yaml.safe_load(enrolled.environment_file.read_text())["connections"]
            assert state.postgres is not None
            assert state.clickhouse is None
        assert mssql.made.databases | mssql.made.logins == set()
    assert {name: (one["kind"], one["endpoint"]["port"]) for name, one in connections.items()} == {
        "shop.lab": ("postgres", state.postgres.port),
        "warehouse.lab": ("mssql", given.endpoint.port),
        "analytics.lab": ("clickhouse", stand_in.given.endpoint.port),
    }
    assert not any(tmp_path.iterdir())


def test_what_cannot_be_cleared_keeps_nothing_else_from_being(stand_in: StandIn, tmp_path: Path) -> None:
    """Of two servers one is gone: the other is cleared, and the lab remembers the one."""
    (tmp_path / "lab.lock").touch()
    make(stand_in.given, tmp_path / GIVEN_ANALYTICS_FILE)
    (tmp_path / GIVEN_FILE).write_text("")
    with pytest.raises(DponeError, match="given_server_record_unreadable"):
        lab.down(tmp_path)
    assert stand_in.databases() == set()
    assert not (tmp_path / GIVEN_ANALYTICS_FILE).exists()
    assert (tmp_path / GIVEN_FILE).exists()


def test_a_start_that_fails_drops_what_it_made(stand_in: StandIn, tmp_path: Path) -> None:
    def fail_half_way() -> None:
        with claimed(tmp_path) as (places, _):
            make(stand_in.given, places.given_analytics)
            assert stand_in.databases() == {"mart", "dpone_stage"}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert stand_in.databases() == set()
    assert not (tmp_path / GIVEN_ANALYTICS_FILE).exists()


def test_what_a_dead_lab_left_on_the_server_is_dropped_by_the_next_command(stand_in: StandIn, tmp_path: Path) -> None:
    # As after a kill: the lock, the record, and what it names.
    (tmp_path / "lab.lock").touch()
    make(stand_in.given, tmp_path / GIVEN_ANALYTICS_FILE)
    assert lab.status(tmp_path).condition is lab.LabCondition.DEAD
    assert lab.down(tmp_path)
    assert stand_in.databases() == set()
    assert not any(tmp_path.iterdir())
