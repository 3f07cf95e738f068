"""Where an authority is, as the URL of its reference says."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.assembly.reach import authority_login
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import DponeError

CANARY = "p%40ss-canary"
REFERENCE = "env:DPONE_TEST_AUTHORITY"
TWICE = "an option that is not known here, or one that is given twice"


def give(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Let the reference stand for ``url``."""
    monkeypatch.setenv("DPONE_TEST_AUTHORITY", url)


@pytest.mark.parametrize(
    ("url", "kind", "port", "tls"),
    [
        ("postgresql://me:{0}@db/warehouse", EngineKind.POSTGRES, 5432, TlsMode.VERIFY),
        ("postgresql://me:{0}@db/warehouse?sslmode=disable", EngineKind.POSTGRES, 5432, TlsMode.DISABLED),
        ("mssql://me:{0}@db/dpone_control", EngineKind.MSSQL, 1433, TlsMode.VERIFY),
        ("mssql://me:{0}@db:2433/dpone_control?encrypt=disabled", EngineKind.MSSQL, 2433, TlsMode.DISABLED),
        ("mssql://me:{0}@db/dpone_control?encrypt=trust", EngineKind.MSSQL, 1433, TlsMode.TRUST),
        ("mssql://me:{0}@db/dpone_control?encrypt=verify", EngineKind.MSSQL, 1433, TlsMode.VERIFY),
        ("mssql://me:{0}@db/dpone_control?encrypt=strict", EngineKind.MSSQL, 1433, TlsMode.STRICT),
    ],
)
def test_an_authority_is_where_its_url_says(
    monkeypatch: pytest.MonkeyPatch, url: str, kind: EngineKind, port: int, tls: TlsMode
) -> None:
    """Certificates are verified unless the URL says otherwise."""
    give(monkeypatch, url.format(CANARY))
    found = authority_login(ReferencedCredentials(), REFERENCE)
    at = found.endpoint
    assert (at.kind, at.host, at.port, at.tls) == (kind, "db", port, tls)
    assert found.credential.password.reveal() == "p@ss-canary"


@pytest.mark.parametrize(
    ("url", "reason", "found"),
    [
        ("clickhouse://me:{0}@db/marts", "authority_engine_unsupported", "a clickhouse URL"),
        ("postgresql://me:{0}@db/w?sslmode=prefer", "tls_option_unsupported", "sslmode=prefer"),
        ("mssql://me:{0}@db/w?encrypt=no", "tls_option_unsupported", "encrypt=no"),
        ("mssql://me:{0}@db/w?encrypt={0}", "tls_option_unsupported", "another encrypt"),
        ("mssql://me:{0}@db/w?trust={0}", "url_option_unknown", TWICE),
        ("mssql://me:{0}@db/w?encrypt=verify&encrypt=trust", "url_option_unknown", TWICE),
        ("postgresql://me:{0}@db/w?sslmode=disable&application_name={0}", "url_option_unknown", TWICE),
    ],
)
def test_another_engine_or_option_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, url: str, reason: str, found: str
) -> None:
    """An unknown value may be a piece of a password."""
    give(monkeypatch, url.format(CANARY))
    with pytest.raises(DponeError) as refused:
        authority_login(ReferencedCredentials(), REFERENCE)
    problem = refused.value.failure.problem
    assert (problem.reason, problem.found) == (reason, found)
    assert "canary" not in str(problem)
