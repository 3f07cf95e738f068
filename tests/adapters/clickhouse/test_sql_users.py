"""The gate by SQL users: the text of its statements, read by ClickHouse's own parser, and its refusals in the lab."""

from __future__ import annotations

import hashlib

import pytest

from dpone_provider.adapters.clickhouse.gate import login_gate
from dpone_provider.adapters.clickhouse.sql_users import (
    SqlUsers,
    create_statements,
    drop_statement,
    let_in_statement,
)
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.ports.gate import GrantPlan, LoginGate
from dpone_provider.domain.identity import Principal, Relation, principal_name
from dpone_provider.domain.outcomes import Failed, Refused
from dpone_provider.domain.secret import Secret
from tests.adapters.clickhouse.enrolled import Enrolled, new_attempt

NAME = "dpone_v3_0123456789abcdef0123456789abcdef"
STAGED = Relation("dpone_stage", "dpone_0123456789abcdef_fedcba9876543210")
PASSWORD = Secret("correct-horse-battery")
HASH = hashlib.sha256(b"correct-horse-battery").hexdigest()

EXPECTED = {
    create_statements(NAME, PASSWORD, [STAGED])[0]: (
        f"CREATE USER {NAME} IDENTIFIED WITH sha256_hash BY '{HASH}' HOST NONE SETTINGS async_insert = 0 CONST"
    ),
    create_statements(NAME, PASSWORD, [STAGED])[1]: f"GRANT SELECT, INSERT ON {STAGED.schema}.{STAGED.name} TO {NAME}",
    let_in_statement(NAME, ()): f"ALTER USER {NAME} HOST ANY",
    let_in_statement(NAME, ("10.0.0.0/8", "fd00::/8")): f"ALTER USER {NAME} HOST IP '10.0.0.0/8', 'fd00::/8'",
    drop_statement(NAME): f"DROP USER IF EXISTS {NAME}",
}


@pytest.mark.lab
@pytest.mark.parametrize(("statement", "formatted"), EXPECTED.items(), ids=[text[:11] for text in EXPECTED.values()])
def test_clickhouse_reads_every_statement_as_it_is_meant(enrolled: Enrolled, statement: str, formatted: str) -> None:
    quoted = statement.replace("\\", "\\\\").replace("'", "\\'")
    ((answer,),) = enrolled.ask(f"SELECT formatQuerySingleLine('{quoted}')")
    assert answer == formatted


def test_the_password_itself_is_in_no_statement() -> None:
    assert not any(PASSWORD.reveal() in statement for statement in EXPECTED)


def test_a_network_must_be_one() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        SqlUsers(entropy=SystemEntropy(), networks=("'; DROP",))


@pytest.fixture
def gate(enrolled: Enrolled) -> LoginGate:
    """Give the gate, on a server that can't make users."""
    return login_gate(enrolled.controller, enrolled.service_id, SqlUsers(entropy=SystemEntropy()))


@pytest.mark.lab
def test_the_name_follows_from_the_attempt_and_is_used_once(gate: LoginGate) -> None:
    attempt = new_attempt()
    principal = gate.propose(attempt, ())
    assert isinstance(principal, Principal)
    assert principal.name == principal_name(attempt)
    assert isinstance(gate.propose(attempt, {principal.name}), Refused)


@pytest.mark.lab
def test_a_server_that_cannot_make_users_fails_without_echoing_the_hash(gate: LoginGate, enrolled: Enrolled) -> None:
    principal = gate.propose(new_attempt(), ())
    assert isinstance(principal, Principal)
    failed = gate.create(principal, GrantPlan(staged_tables=(STAGED,)), None)
    assert isinstance(failed, Failed)
    # 497 is what the lab's controller gets, 514 what one gets that may make users.
    assert failed.problem.found in ("code 497 ACCESS_DENIED", "code 514 ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND")


@pytest.mark.lab
def test_a_login_that_was_never_made_is_not_there(gate: LoginGate) -> None:
    principal = gate.propose(new_attempt(), ())
    assert isinstance(principal, Principal)
    seen = gate.read_back(principal)
    assert seen.exists is False  # type: ignore[union-attr]
    assert seen.can_login is False  # type: ignore[union-attr]
