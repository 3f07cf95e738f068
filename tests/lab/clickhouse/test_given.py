"""Which ClickHouse is given, and what is said where it cannot be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse.given import VARIABLE, GivenClickhouse, given_clickhouse
from dpone_provider.lab.ports import free_port
from tests.lab.clickhouse.stand_in import ADMINISTRATOR, StandIn


def test_none_is_given_unless_the_variable_says_so() -> None:
    assert given_clickhouse({}) is None
    assert given_clickhouse({VARIABLE: ""}) is None


def test_port_8123_speaks_plain_http_and_the_url_says_otherwise() -> None:
    url = "clickhouse://me:se%40cret@db.internal/default"
    plain, verified = given_clickhouse({VARIABLE: url}), given_clickhouse({VARIABLE: url + "?encrypt=verify"})
    assert plain is not None
    assert verified is not None
    assert (plain.endpoint.tls, verified.endpoint.tls) == (TlsMode.DISABLED, TlsMode.VERIFY)
    assert (plain.endpoint.port, plain.address) == (8123, "ClickHouse db.internal:8123")
    assert plain.credential.password.reveal() == "se@cret"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("db.internal:8123", "credential_malformed"),
        ("clickhouse://me@db.internal/default", "credential_malformed"),
        ("mssql://me:hush-hush@db.internal/master", "given_server_engine"),
        ("postgresql://me:hush-hush@db.internal/postgres", "given_server_engine"),
        ("clickhouse://me:hush-hush@db.internal/default?encrypt=maybe", "tls_option_unsupported"),
        ("clickhouse://me:hush-hush@db.internal/default?encrypt=strict", "tls_option_unsupported"),
        ("clickhouse://me:hush-hush@db.internal/default?secure=1", "url_option_unknown"),
    ],
)
def test_a_value_that_is_no_url_of_a_clickhouse_is_refused_and_not_repeated(value: str, reason: str) -> None:
    with pytest.raises(DponeError) as raised:
        given_clickhouse({VARIABLE: value})
    assert isinstance(raised.value.failure, Refused)
    assert raised.value.failure.problem.reason == reason
    assert "hush" not in str(raised.value)


@pytest.mark.lab
def test_a_wrong_password_is_refused_with_the_variable_to_correct(stand_in: StandIn) -> None:
    wrong = replace(stand_in.given, credential=Credential(ADMINISTRATOR, Secret("not-the-one")))
    with pytest.raises(DponeError) as raised, wrong.session() as own:
        own.rows("SELECT 1")
    assert isinstance(raised.value.failure, Refused)
    problem = raised.value.failure.problem
    assert problem.reason == "given_server_refused_login"
    assert VARIABLE in problem.next_command
    assert "not-the-one" not in str(problem)


def test_where_nobody_listens_it_is_said() -> None:
    at = Endpoint(
        kind=EngineKind.CLICKHOUSE, host="127.0.0.1", port=free_port(), database="default", tls=TlsMode.DISABLED
    )
    with pytest.raises(DponeError) as raised, GivenClickhouse(at, Credential("me", Secret("x"))).session() as own:
        own.rows("SELECT 1")
    assert isinstance(raised.value.failure, Failed)
    assert raised.value.failure.problem.reason == "given_server_unreachable"


@pytest.mark.lab
def test_a_statement_that_is_refused_is_told_with_the_servers_words(stand_in: StandIn) -> None:
    with pytest.raises(DponeError) as raised, stand_in.given.session() as own:
        own.rows("SELECT 1 FROM system.nothing_of_the_kind")
    assert raised.value.failure.problem.reason == "given_server_statement_failed"
    assert "nothing_of_the_kind" in raised.value.failure.problem.found
