from __future__ import annotations

import json

import pytest

from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.application.ports.credentials import ResolvedReference
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused

CANARY = "c4n4ryS3cret"


def connection(monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    whole = {"conn_type": "postgres", "host": "h", "schema": "warehouse", "login": "me", "password": CANARY, **fields}
    monkeypatch.setenv("AIRFLOW_CONN_DPONE_TEST", json.dumps({k: v for k, v in whole.items() if v is not None}))


def test_a_connection_of_airflow_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, port=6432, extra={"sslmode": "disable", "token": CANARY})
    resolved = ReferencedCredentials().resolve("airflow:dpone_test")
    assert isinstance(resolved, ResolvedReference)
    assert (resolved.kind, resolved.host, resolved.port) == (EngineKind.POSTGRES, "h", 6432)
    assert (resolved.database, resolved.credential.user) == ("warehouse", "me")
    assert resolved.credential.password.reveal() == CANARY
    assert resolved.options == ()


def test_a_missing_port_is_the_engines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    connection(monkeypatch, conn_type="clickhouse")
    resolved = ReferencedCredentials().resolve("airflow:dpone_test")
    assert isinstance(resolved, ResolvedReference)
    assert resolved.port == 8123


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("conn_type", "mysql", "known type"),
        ("host", None, "host"),
        ("schema", None, "database"),
        ("login", None, "login"),
        ("password", None, "password"),
    ],
)
def test_an_incomplete_connection_is_refused_by_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, field: str, value: object, told: str
) -> None:
    connection(monkeypatch, **{field: value})
    outcome = ReferencedCredentials().resolve("airflow:dpone_test")
    assert isinstance(outcome, Refused)
    assert told in outcome.problem.found
    assert CANARY not in f"{outcome!r}"


def test_an_unknown_connection_is_refused_with_airflows_own_command() -> None:
    outcome = ReferencedCredentials().resolve("airflow:dpone_no_such_connection")
    assert isinstance(outcome, Refused)
    assert outcome.problem.reason == "airflow_connection_missing"
    assert "airflow connections get" in outcome.problem.next_command


def test_a_broken_value_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_DPONE_TEST", json.dumps({"conn_type": "postgres", "port": CANARY}))
    outcome = ReferencedCredentials().resolve("airflow:dpone_test")
    assert isinstance(outcome, Refused)
    assert CANARY not in f"{outcome!r}"
