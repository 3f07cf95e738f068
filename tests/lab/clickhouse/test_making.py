"""What the lab makes on a given ClickHouse is written down before, and dropped again by what is written down."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpone_provider.domain.outcomes import DponeError, Failed
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse.given import VARIABLE, GivenClickhouse
from dpone_provider.lab.clickhouse.making import Names, drop_made, made_by, make, new_names, read_record, write_record
from dpone_provider.lab.ports import free_port
from tests.adapters.clickhouse.fault_proxy import AnswerError, Fault, Seen
from tests.lab.clickhouse.stand_in import StandIn

NAMES = Names(
    reader="dpone_lab_reader_1",
    mart_uuid="11111111-1111-4111-8111-111111111111",
    staging_uuid="22222222-2222-4222-8222-222222222222",
)


@pytest.fixture
def record(stand_in: StandIn, tmp_path: Path) -> Iterator[Path]:
    """Where it is written down; what is still written there at the end is dropped."""
    path = tmp_path / "record"
    yield path
    stand_in.proxy.rule = stand_in.users
    drop_made(path, os.environ)


def run(given: GivenClickhouse, statement: str) -> None:
    with given.session() as own:
        own.mutate(statement, query_id="by-hand")


def test_no_two_labs_share_a_name_or_a_uuid() -> None:
    made = [new_names() for _ in range(50)]
    assert len({name for one in made for name in (one.reader, *one.databases.values())}) == 150


def test_the_statements_hold_uuids_and_the_hash_and_no_password() -> None:
    made = made_by(NAMES, Secret("hush-hush"))
    assert made[:2] == [
        f"CREATE DATABASE `mart` UUID '{NAMES.mart_uuid}' ENGINE = Atomic",
        f"CREATE DATABASE `dpone_stage` UUID '{NAMES.staging_uuid}' ENGINE = Atomic",
    ]
    assert made[3] == "GRANT SELECT ON mart.* TO `dpone_lab_reader_1`"
    assert not any("hush" in statement for statement in made)


@pytest.mark.lab
def test_databases_and_a_reader_are_made_and_dropped_again(stand_in: StandIn, record: Path) -> None:
    given = stand_in.given
    names, credentials = make(given, record)
    with given.session() as own:
        made = dict(own.rows("SELECT name, toString(uuid) FROM system.databases WHERE engine = 'Atomic'"))
    assert made == names.databases
    assert stand_in.users.users[names.reader].grants == ["SELECT ON mart.*"]
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    kept = read_record(record)
    assert kept is not None
    assert (kept.host, kept.port, kept.names) == (given.endpoint.host, given.endpoint.port, names)
    assert given.credential.password.reveal() not in record.read_text()
    at = f"127.0.0.1:{given.endpoint.port}/mart"
    assert {name: url.reveal().partition("@")[2] for name, url in credentials.items()} == {
        "analytics_controller": at,
        "analytics_reader": at,
    }
    assert credentials["analytics_reader"].reveal().startswith(f"clickhouse://{names.reader}:")
    drop_made(record, os.environ)
    assert stand_in.databases() == set()
    assert stand_in.users.users == {}
    assert not record.exists()


@pytest.mark.lab
def test_logins_of_attempts_and_every_table_go_with_it(stand_in: StandIn, record: Path) -> None:
    make(stand_in.given, record)
    run(stand_in.given, "CREATE TABLE mart.t (x Int8) ENGINE = MergeTree ORDER BY x")
    run(stand_in.given, "CREATE VIEW mart.v AS SELECT * FROM mart.t")
    left = "dpone_v3_0123456789abcdef0123456789abcdef"
    run(stand_in.given, f"CREATE USER `{left}` IDENTIFIED WITH sha256_hash BY '{'0' * 64}' HOST NONE")
    drop_made(record, os.environ)
    assert stand_in.users.users == {}
    killed = [seen for seen in stand_in.proxy.seen if seen.statement.startswith("KILL QUERY")]
    assert len(killed) == 1


@pytest.mark.lab
def test_what_was_begun_is_written_down_before_the_first_statement(stand_in: StandIn, record: Path) -> None:
    def refusing(seen: Seen) -> Fault:
        refused = seen.statement.startswith("CREATE USER")
        return AnswerError(497, "ACCESS_DENIED") if refused else stand_in.users(seen)

    stand_in.proxy.rule = refusing
    with pytest.raises(DponeError, match="given_server_statement_failed"):
        make(stand_in.given, record)
    assert stand_in.databases() == {"mart", "dpone_stage"}
    drop_made(record, os.environ)
    assert stand_in.databases() == set()


@pytest.mark.lab
def test_databases_that_are_not_the_labs_are_left_alone(stand_in: StandIn, record: Path) -> None:
    """Somebody made a mart between the lab's question and its CREATE DATABASE."""
    run(stand_in.given, "CREATE DATABASE mart ENGINE = Atomic")
    with pytest.raises(DponeError, match="given_server_statement_failed"):
        make(stand_in.given, record)
    run(stand_in.given, f"CREATE USER `dpone_v3_{'a' * 32}` IDENTIFIED WITH sha256_hash BY '{'0' * 64}' HOST NONE")
    drop_made(record, os.environ)
    assert stand_in.databases() == {"mart"}
    assert len(stand_in.users.users) == 1, "its logins are those of another installation"
    run(stand_in.given, "DROP DATABASE mart")
    stand_in.users.users.clear()


@pytest.mark.lab
def test_a_server_that_is_gone_is_told_and_what_is_left_is_remembered(stand_in: StandIn, tmp_path: Path) -> None:
    record = tmp_path / "record"
    gone = replace(stand_in.given, endpoint=replace(stand_in.given.endpoint, port=free_port()))
    write_record(record, gone, NAMES)
    with pytest.raises(DponeError) as raised:
        drop_made(
            record, {VARIABLE: stand_in.url.replace(f":{stand_in.given.endpoint.port}/", f":{gone.endpoint.port}/")}
        )
    assert isinstance(raised.value.failure, Failed)
    problem = raised.value.failure.problem
    assert problem.reason == "given_server_not_cleared"
    for name in (*NAMES.databases, NAMES.reader):
        assert name in problem.next_command
    assert stand_in.given.credential.password.reveal() not in str(problem)
    assert record.exists()


def test_nothing_is_dropped_where_nothing_was_made(tmp_path: Path) -> None:
    drop_made(tmp_path / "record", os.environ)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"host": "c", "port": 8123, "names": {}}'])
def test_a_record_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "record").write_text(text)
    with pytest.raises(DponeError, match="given_server_record_unreadable"):
        drop_made(tmp_path / "record", os.environ)


@pytest.mark.lab
@pytest.mark.parametrize("named", ["nothing", "another"])
def test_only_the_server_that_is_named_is_cleared(stand_in: StandIn, record: Path, named: str) -> None:
    """No password is written down, so the variable has to say who may drop what was made."""
    make(stand_in.given, record)
    environ = {} if named == "nothing" else {VARIABLE: "clickhouse://me:hush-hush@db.internal:8123/default"}
    with pytest.raises(DponeError) as raised:
        drop_made(record, environ)
    problem = raised.value.failure.problem
    assert problem.reason == "given_server_not_named"
    assert ("is not set" if named == "nothing" else "names ClickHouse db.internal:8123") in problem.found
    for name in (*NAMES.databases, f"127.0.0.1:{stand_in.given.endpoint.port}", str(record)):
        assert name in problem.next_command
    assert record.exists()
    assert stand_in.databases() == set(NAMES.databases)
