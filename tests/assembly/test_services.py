"""Adapters of registry entries: with whose eyes a database is looked at, and who else is looked for."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.mssql.catalog import MssqlCatalog
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.assembly.reach import controller_login
from dpone_provider.assembly.services import RegistryServices
from dpone_provider.documents.connection_registry import (
    Connection,
    CredentialReferences,
    DatabaseAuthority,
    EndpointText,
)
from dpone_provider.domain.connection import TlsMode
from dpone_provider.domain.identity import EngineKind, Family, Incarnation, Service, ServiceId
from dpone_provider.domain.outcomes import DponeError

SERVICE = Service(EngineKind.MSSQL, ServiceId("6e1b5f0e-0000-4000-8000-000000000004"))
SALES = Incarnation(SERVICE, "sales", (("database_id", "7"),))


def connection(**credentials: str) -> Connection:
    """Return the entry of a database with these credentials."""
    facts = tuple({"name": name, "value": value} for name, value in SALES.facts)
    pinned = {"name": "sales", "incarnation_id": SALES.incarnation_id, "facts": facts, "managed_schemas": ("stage",)}
    return Connection(
        reference="warehouse.main",
        kind=EngineKind.MSSQL,
        endpoint=EndpointText(host="db", port=1433, database="sales"),
        tls=TlsMode.VERIFY,
        composition_service_id=SERVICE.service_id,
        family=Family.NONPRODUCTION,
        databases=(DatabaseAuthority.model_validate(pinned),),
        credentials=CredentialReferences(**credentials),
    )


@pytest.mark.parametrize(
    ("credentials", "observer", "reader"),
    [
        ({"controller": "env:DPONE_TEST_CONTROLLER", "reader": "env:DPONE_TEST_READER"}, "controller", "loader"),
        ({"controller": "env:DPONE_TEST_CONTROLLER"}, "controller", None),
        ({"reader": "env:DPONE_TEST_READER"}, "loader", None),
    ],
)
def test_a_target_is_asked_whether_its_bindings_reader_could_write(
    monkeypatch: pytest.MonkeyPatch, credentials: dict[str, str], observer: str, reader: str | None
) -> None:
    """Through the controller where there is one: a pure source is asked nothing of the kind."""
    monkeypatch.setenv("DPONE_TEST_CONTROLLER", "mssql://controller:secret@db:1433/sales")
    monkeypatch.setenv("DPONE_TEST_READER", "mssql://loader:secret@db:1433/sales")
    services = RegistryServices(credentials=ReferencedCredentials(), entropy=SystemEntropy(), clock=SystemClock())
    catalog = services.catalog(connection(**credentials))
    assert isinstance(catalog, MssqlCatalog)
    assert isinstance(catalog.server, MssqlServer)
    assert (catalog.server.credential.user, catalog.reader) == (observer, reader)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", None),
        ("?encrypt=verify", None),
        ("?encrypt=strict", "tls_modes_differ"),
        ("?encrypt=trust", "tls_modes_differ"),
        ("?TrustServerCertificate=yes", "url_option_unknown"),
    ],
)
def test_a_credential_says_no_other_tls_mode_than_the_registry(
    monkeypatch: pytest.MonkeyPatch, query: str, reason: str | None
) -> None:
    """Found: what a URL asked for was passed over in silence, a stricter mode too."""
    monkeypatch.setenv("DPONE_TEST_CONTROLLER", f"mssql://controller:secret@db:1433/sales{query}")
    entry, credentials = connection(controller="env:DPONE_TEST_CONTROLLER"), ReferencedCredentials()
    if reason is None:
        assert controller_login(credentials, entry).endpoint.tls is TlsMode.VERIFY
        return
    with pytest.raises(DponeError) as refused:
        controller_login(credentials, entry)
    problem = refused.value.failure.problem
    assert problem.reason == reason
    assert "connection warehouse.main" in problem.subject
    assert "secret" not in str(problem)
