"""The lab's ClickHouse, out of libchdb or given: rights, pool, and data that outlives the process."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

import pytest

from dpone_provider import lab
from dpone_provider.adapters.clickhouse.sql_users import create_statements, let_in_statement
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.account import engine_account
from dpone_provider.lab.clickhouse_program import LIBRARY_VARIABLE, find_library
from dpone_provider.lab.clickhouse_server import ClickhouseHome, start_library
from dpone_provider.lab.clickhouse_session import ClickhouseSession
from dpone_provider.lab.clickhouse_users import CONTROLLER, READER, STAGE, lab_users, users_xml
from dpone_provider.lab.condition import sweep
from dpone_provider.lab.places import places_for, prepare
from dpone_provider.lab.processes import take_lock
from dpone_provider.lab.provisioning import new_secret
from tests.acceptance.world import clickhouse_session

pytestmark = pytest.mark.lab

NOT_ALLOWED = r"\(ACCESS_DENIED\)"


def from_pool(state: lab.LabState, number: int) -> ClickhouseSession:
    assert state.clickhouse is not None
    name, password = state.pool()[number]
    return ClickhouseSession(port=state.clickhouse.port, user=name, password=password)


def worker_for(state: lab.LabState, controller: ClickhouseSession, table: str) -> ClickhouseSession:
    """Return a login for a staged table: from the pool, or made as the gate makes one."""
    if state.pool():
        return from_pool(state, 0)
    name, password = f"dpone_v3_{token_hex(16)}", new_secret()
    for statement in (*create_statements(name, password, [Relation(STAGE, table)]), let_in_statement(name, ())):
        controller.ask(statement)
    return replace(controller, user=name, password=password)


@pytest.fixture
def controller(clickhouse_lab: lab.LabState) -> ClickhouseSession:
    return clickhouse_session(clickhouse_lab, "analytics_controller")


def test_both_databases_are_atomic(controller: ClickhouseSession) -> None:
    query = "SELECT name, engine FROM system.databases WHERE name IN ('mart', 'dpone_stage') ORDER BY name"
    assert controller.ask(query) == "dpone_stage\tAtomic\nmart\tAtomic"


def test_the_controller_stages_exchanges_and_drops(controller: ClickhouseSession, clickhouse_lab: lab.LabState) -> None:
    worker = worker_for(clickhouse_lab, controller, "a")
    uuid = "11111111-2222-4333-8444-555555555555"
    controller.ask(f"CREATE TABLE dpone_stage.a UUID '{uuid}' (x Int64) ENGINE = MergeTree ORDER BY x")
    controller.ask("CREATE TABLE mart.a (x Int64) ENGINE = MergeTree ORDER BY x")
    worker.ask("INSERT INTO dpone_stage.a SETTINGS async_insert = 0 VALUES (1), (2)")
    assert worker.ask("SELECT sum(x) FROM dpone_stage.a") == "3"
    controller.ask("EXCHANGE TABLES dpone_stage.a AND mart.a")
    assert controller.ask("SELECT uuid FROM system.tables WHERE database = 'mart' AND name = 'a'") == uuid
    assert clickhouse_session(clickhouse_lab, "analytics_reader").ask("SELECT count() FROM mart.a") == "2"
    controller.ask("DROP TABLE dpone_stage.a SYNC SETTINGS max_table_size_to_drop = 0")
    controller.ask("DROP TABLE mart.a SYNC")


def test_the_controller_sees_everything_that_enrolment_asks_about(controller: ClickhouseSession) -> None:
    for table in ("users", "grants", "row_policies", "mutations", "projections", "processes", "tables"):
        assert controller.ask(f"SELECT count() >= 0 FROM system.{table}") == "1"


@pytest.mark.pool
def test_the_controller_sees_every_user_of_the_pool(controller: ClickhouseSession) -> None:
    seen = controller.ask("SELECT count() FROM system.users WHERE name LIKE 'dpone_v3_pool_%'")
    assert seen == "256"


@pytest.mark.pool
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE USER mine IDENTIFIED BY 'x'",
        "GRANT SELECT ON mart.* TO analytics_reader",
        "CREATE DATABASE other ENGINE = Atomic",
        "CREATE TABLE mart.f (x String) ENGINE = File(TSV)",
        "SELECT * FROM file('/etc/passwd', 'LineAsString')",
        "SYSTEM STOP LISTEN HTTP",
    ],
)
def test_the_controller_manages_no_access_and_reaches_no_file(controller: ClickhouseSession, statement: str) -> None:
    with pytest.raises(DponeError, match=NOT_ALLOWED):
        controller.ask(statement)


@pytest.mark.pool
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO mart.b VALUES (1)",
        "SELECT * FROM mart.b",
        "CREATE TABLE dpone_stage.mine (x Int8) ENGINE = MergeTree ORDER BY x",
        "DROP TABLE dpone_stage.b",
        "ALTER TABLE dpone_stage.b DELETE WHERE 1",
        "TRUNCATE TABLE dpone_stage.b",
        "EXCHANGE TABLES dpone_stage.b AND mart.b",
        "KILL QUERY WHERE 1",
        "SELECT * FROM system.processes",
        "SELECT * FROM system.users",
    ],
)
def test_a_pool_user_can_only_fill_and_read_what_is_staged(
    controller: ClickhouseSession, clickhouse_lab: lab.LabState, statement: str
) -> None:
    for database in ("mart", "dpone_stage"):
        controller.ask(f"CREATE TABLE IF NOT EXISTS {database}.b (x Int64) ENGINE = MergeTree ORDER BY x")
    with pytest.raises(DponeError, match=NOT_ALLOWED):
        from_pool(clickhouse_lab, 1).ask(statement)


@pytest.mark.pool
@pytest.mark.parametrize(
    "statement",
    ["SYSTEM STOP LISTEN HTTP", "SHOW DATABASES", "SELECT * FROM mart.b", "CREATE DATABASE x", "SHOW USERS"],
)
def test_the_passwordless_user_can_do_nothing_over_http(clickhouse_lab: lab.LabState, statement: str) -> None:
    assert clickhouse_lab.clickhouse is not None
    default = ClickhouseSession(port=clickhouse_lab.clickhouse.port, user="default", password=Secret("any"))
    with pytest.raises(DponeError, match=r"QUOTA_EXCEEDED|ACCESS_DENIED|UNKNOWN_TABLE"):
        default.ask(statement)


def test_what_a_killed_query_was_doing_is_told(controller: ClickhouseSession, clickhouse_lab: lab.LabState) -> None:
    assert controller.ask("KILL QUERY WHERE user = 'dpone_v3_pool_0002' SYNC") == ""
    assert controller.ask("SELECT count() FROM system.processes WHERE user = 'dpone_v3_pool_0002'") == "0"


def test_a_test_brings_users_of_its_own(tmp_path: Path) -> None:
    outsider = lab.ClickhouseUser(name="outsider", password=Secret("x"), grants=("INSERT ON mart.*",))
    with lab.clickhouse_only(tmp_path, extra=[outsider]) as state:
        found = clickhouse_session(state, "analytics_controller").ask(
            "SELECT access_type FROM system.grants WHERE user_name = 'outsider' FORMAT JSONCompactEachRow"
        )
    assert json.loads(found) == ["INSERT"]


def test_data_survives_sigkill(tmp_path: Path) -> None:
    account = engine_account()
    places = places_for(tmp_path, account)
    prepare(places, account)
    lock = take_lock(places.lock, seconds=0)
    assert lock is not None
    passwords = {CONTROLLER: Secret("c"), READER: Secret("r")}
    home = ClickhouseHome(account=account, directory=places.engines / "clickhouse", log=places.logs / "clickhouse.log")
    users = users_xml(lab_users(passwords)).encode()
    library = find_library({})
    first = start_library(library, home, users_xml=users, lock=lock.fileno())
    asked = ClickhouseSession(port=first.port, user=CONTROLLER, password=passwords[CONTROLLER])
    asked.ask("CREATE DATABASE mart ENGINE = Atomic")
    asked.ask("CREATE TABLE mart.t (x Int64) ENGINE = MergeTree ORDER BY x SETTINGS fsync_after_insert = 1")
    asked.ask("INSERT INTO mart.t SELECT number FROM numbers(1000)")
    uuids = asked.ask("SELECT uuid FROM system.databases WHERE name = 'mart'")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    second = start_library(library, home, users_xml=users, lock=lock.fileno())
    again = ClickhouseSession(port=second.port, user=CONTROLLER, password=passwords[CONTROLLER])
    assert again.ask("SELECT count(), sum(x) FROM mart.t") == "1000\t499500"
    assert again.ask("SELECT uuid FROM system.databases WHERE name = 'mart'") == uuids
    second.stop()
    assert second.process.returncode == 0
    lock.release()
    assert sweep(places)


@pytest.mark.parametrize(
    ("version", "found"),
    [("26.8.1-stable.1", "26.8.1-stable.1"), (None, "without a package.json")],
)
def test_another_release_of_the_library_is_refused(tmp_path: Path, version: str | None, found: str) -> None:
    library = tmp_path / "libchdb.so"
    library.touch()
    if version:
        (tmp_path / "package.json").write_text(json.dumps({"version": version}))
    with pytest.raises(DponeError, match="clickhouse_library_missing") as raised:
        find_library({LIBRARY_VARIABLE: str(library)})
    assert found in str(raised.value)
    assert "make env" in str(raised.value)
