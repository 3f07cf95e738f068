from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dpone_provider.adapters.dbt.profile import (
    ADAPTERS,
    SECRET_VARIABLE,
    connection_environment,
    profile_text,
    unsupported,
)
from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind

ENDPOINT = Endpoint(
    kind=EngineKind.POSTGRES, host="db.example", port=6543, database="the_warehouse", tls=TlsMode.DISABLED
)


def output(endpoint: Endpoint) -> dict[str, object]:
    profile = json.loads(profile_text(endpoint, "mart", 4))
    found: dict[str, object] = profile["dpone"]["outputs"]["dpone"]
    return found


@pytest.mark.parametrize("kind", sorted(ADAPTERS))
def test_a_profile_holds_references_and_no_value_of_the_connection(kind: EngineKind) -> None:
    text = profile_text(replace(ENDPOINT, kind=kind), "mart", 4)
    for value in ("db.example", "6543", "the_warehouse"):
        assert value not in text
    assert f"env_var('{SECRET_VARIABLE}')" in text
    assert SECRET_VARIABLE.startswith("DBT_ENV_SECRET_")
    assert json.loads(text)["dpone"]["outputs"]["dpone"]["type"] == ADAPTERS[kind]


def test_dbts_process_looks_for_odbcs_driver_where_this_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODBCSYSINI", "/opt/odbc")
    monkeypatch.delenv("ODBCINSTINI", raising=False)
    on_sql_server = connection_environment(replace(ENDPOINT, kind=EngineKind.MSSQL), "me", "/opt/libmsodbcsql.so")
    assert on_sql_server["ODBCSYSINI"] == "/opt/odbc"
    assert on_sql_server["DPONE_DBT_ODBC_DRIVER"] == "/opt/libmsodbcsql.so"
    assert "ODBCINSTINI" not in on_sql_server
    assert "ODBCSYSINI" not in connection_environment(ENDPOINT, "me")


def test_every_reference_has_its_variable() -> None:
    variables = {**connection_environment(ENDPOINT, "me"), SECRET_VARIABLE: "x"}
    text = profile_text(ENDPOINT, "mart", 4)
    assert {part.split("'")[0] for part in text.split("env_var('")[1:]} <= set(variables)
    assert variables["DPONE_DBT_PORT"] == "6543"
    assert variables["DPONE_DBT_USER"] == "me"


@pytest.mark.parametrize(
    ("tls", "mode"),
    [
        (TlsMode.DISABLED, "disable"),
        (TlsMode.TRUST, "require"),
        (TlsMode.VERIFY, "verify-full"),
        (TlsMode.STRICT, "verify-full"),
    ],
)
def test_libpq_is_told_the_registrys_tls_mode(tls: TlsMode, mode: str) -> None:
    told = output(replace(ENDPOINT, tls=tls))
    assert told["sslmode"] == mode
    assert ("sslrootcert" in told) == (mode == "verify-full")


@pytest.mark.parametrize(
    ("tls", "encrypt", "trust"),
    [(TlsMode.DISABLED, False, False), (TlsMode.TRUST, True, True), (TlsMode.VERIFY, True, False)],
)
def test_sql_servers_adapter_is_told_the_registrys_tls_mode(tls: TlsMode, encrypt: bool, trust: bool) -> None:
    told = output(replace(ENDPOINT, kind=EngineKind.MSSQL, tls=tls))
    assert (told["encrypt"], told["trust_cert"]) == (encrypt, trust)


def test_what_the_adapter_cannot_do_is_refused() -> None:
    assert unsupported(ENDPOINT) is None
    strict = unsupported(replace(ENDPOINT, kind=EngineKind.MSSQL, tls=TlsMode.STRICT))
    assert strict is not None
    assert strict.problem.reason == "dbt_tls_unsupported"
    for name in ("a]b", 'a"b', "a'b", "a;b", "{a"):
        unquoted = unsupported(replace(ENDPOINT, kind=EngineKind.MSSQL, database=name))
        assert unquoted is not None
        assert unquoted.problem.reason == "dbt_name_not_quoted"
        assert unsupported(replace(ENDPOINT, database=name)) is None
    assert unsupported(replace(ENDPOINT, kind=EngineKind.MSSQL, database="Größe 1.0-b")) is None
    unmodelled = unsupported(replace(ENDPOINT, kind=EngineKind.CLICKHOUSE))
    assert unmodelled is not None
    assert unmodelled.problem.reason == "dbt_adapter_unmodelled"
