"""Which server is given, and what is said where none can be used."""

from __future__ import annotations

import pytest

from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.outcomes import DponeError, Failed, Refused
from dpone_provider.lab.mssql.given import VARIABLE, GivenServer, given_server
from dpone_provider.lab.ports import free_port
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc, server_at
from tests.adapters.mssql.tds_server import Error, serving


def test_none_is_given_unless_the_variable_says_so() -> None:
    assert given_server({}) is None
    assert given_server({VARIABLE: ""}) is None


def test_the_certificate_is_verified_unless_the_url_says_otherwise() -> None:
    url = "mssql://sa:se%40cret@db.internal/master"
    plain, trusting = given_server({VARIABLE: url}), given_server({VARIABLE: url + "?encrypt=trust"})
    assert plain is not None
    assert trusting is not None
    assert (plain.endpoint.tls, trusting.endpoint.tls) == (TlsMode.VERIFY, TlsMode.TRUST)
    assert (plain.endpoint.port, plain.endpoint.database) == (1433, "master")
    assert plain.credential.password.reveal() == "se@cret"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("db.internal:1433", "credential_malformed"),
        ("mssql://sa@db.internal/master", "credential_malformed"),
        ("postgresql://sa:hush-hush@db.internal/master", "given_server_engine"),
        ("clickhouse://sa:hush-hush@db.internal/master", "authority_engine_unsupported"),
        ("mssql://sa:hush-hush@db.internal/master?encrypt=maybe", "tls_option_unsupported"),
    ],
)
def test_a_value_that_is_no_url_of_a_sql_server_is_refused_and_not_repeated(value: str, reason: str) -> None:
    with pytest.raises(DponeError) as raised:
        given_server({VARIABLE: value})
    assert isinstance(raised.value.failure, Refused)
    assert raised.value.failure.problem.reason == reason
    assert "hush" not in str(raised.value)


@needs_odbc
def test_a_wrong_password_is_refused_with_the_variable_to_correct() -> None:
    with serving(lambda *_: (), refuse=Error(18456, "Login failed for user 'sa'.", 14)) as server:
        found = server_at(server.port)
        with pytest.raises(DponeError) as raised, GivenServer(found.endpoint, found.credential).session(5):
            pass
    assert isinstance(raised.value.failure, Refused)
    problem = raised.value.failure.problem
    assert problem.reason == "given_server_refused_login"
    assert "18456" in problem.found
    assert VARIABLE in problem.next_command
    assert PASSWORD not in str(problem)


@needs_odbc
def test_where_nobody_listens_it_is_said_at_once() -> None:
    found = server_at(free_port())
    with pytest.raises(DponeError) as raised, GivenServer(found.endpoint, found.credential).session(5):
        pass
    assert isinstance(raised.value.failure, Failed)
    assert raised.value.failure.problem.reason == "given_server_unreachable"
    assert "nobody listens" in raised.value.failure.problem.found


@needs_odbc
def test_a_statement_that_is_refused_is_told_with_the_servers_words() -> None:
    with serving(
        lambda text, *_: [Error(262, "CREATE DATABASE permission denied.")] if "ask" in text else []
    ) as server:
        found = server_at(server.port)
        with pytest.raises(DponeError) as raised, GivenServer(found.endpoint, found.credential).session(5) as own:
            own.run("ask")
    assert raised.value.failure.problem.reason == "given_server_statement_failed"
    assert "262" in raised.value.failure.problem.found
