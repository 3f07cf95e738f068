"""Connection strings: quoting, and one TLS value that reaches every driver the same."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.mssql.connection_string import TLS, arrow_parts, connection_string, odbc_parts
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.secret import Secret

CREDENTIAL = Credential("me", Secret("p}w;{d"))


def endpoint(tls: TlsMode) -> Endpoint:
    return Endpoint(kind=EngineKind.MSSQL, host="db.example", port=1433, database="sales", tls=tls)


@pytest.mark.parametrize("tls", TlsMode)
def test_tls_reaches_both_drivers_the_same_and_is_always_said(tls: TlsMode) -> None:
    odbc = odbc_parts(endpoint(tls), CREDENTIAL, driver="ODBC Driver 18 for SQL Server", purpose="dpone")
    arrow = arrow_parts(endpoint(tls), CREDENTIAL)
    for keyword in ("Encrypt", "TrustServerCertificate"):
        assert odbc[keyword] == arrow[keyword] == TLS[tls][keyword]
    assert odbc["ConnectRetryCount"] == arrow["ConnectRetryCount"] == "0"


def test_every_mode_means_what_it_says() -> None:
    assert {mode: dict(TLS[mode]) for mode in TlsMode} == {
        TlsMode.DISABLED: {"Encrypt": "no", "TrustServerCertificate": "no"},
        TlsMode.TRUST: {"Encrypt": "yes", "TrustServerCertificate": "yes"},
        TlsMode.VERIFY: {"Encrypt": "yes", "TrustServerCertificate": "no"},
        TlsMode.STRICT: {"Encrypt": "strict", "TrustServerCertificate": "no"},
    }


def test_no_value_ends_its_keyword() -> None:
    text = connection_string(odbc_parts(endpoint(TlsMode.VERIFY), CREDENTIAL, driver="D", purpose="a;b"))
    assert text == (
        "Driver={D};Server={tcp:db.example,1433};Database={sales};Encrypt={yes};TrustServerCertificate={no};UID={me};"
        "PWD={p}}w;{d};ConnectRetryCount={0};MARS_Connection={no};KeepAlive={10};KeepAliveInterval={2};APP={a;b};"
    )
