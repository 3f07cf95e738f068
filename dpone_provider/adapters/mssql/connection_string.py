"""Connection strings: one typed TLS value, translated once, the same words for every ODBC-based driver.

Keywords: "DSN and connection string keywords" of Microsoft's ODBC driver 18. ``ConnectRetryCount=0``: a session that
the driver would silently replace has lost its transaction, its locks and its settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dpone_provider.domain.connection import Credential, Endpoint, TlsMode

TLS: Final = MappingProxyType(
    {
        TlsMode.DISABLED: MappingProxyType({"Encrypt": "no", "TrustServerCertificate": "no"}),
        TlsMode.TRUST: MappingProxyType({"Encrypt": "yes", "TrustServerCertificate": "yes"}),
        TlsMode.VERIFY: MappingProxyType({"Encrypt": "yes", "TrustServerCertificate": "no"}),
        TlsMode.STRICT: MappingProxyType({"Encrypt": "strict", "TrustServerCertificate": "no"}),
    }
)
"""Both keywords are always said: each driver and each version has another default."""


def connection_string(parts: Mapping[str, str]) -> str:
    """Return keywords and values in ODBC's form: values in braces, closing braces doubled."""
    return ";".join(f"{name}={_braced(value)}" for name, value in parts.items()) + ";"


def _braced(value: str) -> str:
    return "{" + value.replace("}", "}}") + "}"


def server_parts(endpoint: Endpoint) -> dict[str, str]:
    """Return where to connect and how: what every driver is told."""
    return {"Server": f"tcp:{endpoint.host},{endpoint.port}", "Database": endpoint.database, **TLS[endpoint.tls]}


def odbc_parts(endpoint: Endpoint, credential: Credential, *, driver: str, purpose: str) -> dict[str, str]:
    """Return the whole of it for pyodbc."""
    return {
        "Driver": driver,
        **server_parts(endpoint),
        "UID": credential.user,
        "PWD": credential.password.reveal(),
        "ConnectRetryCount": "0",
        "MARS_Connection": "no",
        "KeepAlive": "10",
        "KeepAliveInterval": "2",
        "APP": purpose,
    }


def arrow_parts(endpoint: Endpoint, credential: Credential) -> dict[str, str]:
    """Return the whole of it for mssql-python, which knows fewer keywords and names its driver itself."""
    return {
        **server_parts(endpoint),
        "UID": credential.user,
        "PWD": credential.password.reveal(),
        "ConnectRetryCount": "0",
    }
