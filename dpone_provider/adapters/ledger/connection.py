"""Opening connections to the control authority."""

from __future__ import annotations

from typing import Any

import psycopg

from dpone_provider.domain.connection import Credential, Endpoint, TlsMode

CONNECT_SECONDS = 5
SILENT_SECONDS = 10
"""After this long without an acknowledgement a peer is taken for gone (TCP_USER_TIMEOUT, keepalives)."""
_SSLMODES = {
    TlsMode.DISABLED: "disable",
    TlsMode.TRUST: "require",
    TlsMode.VERIFY: "verify-full",
    TlsMode.STRICT: "verify-full",
}


def open_connection(
    endpoint: Endpoint,
    credential: Credential,
    *,
    application_name: str,
    autocommit: bool = False,
    seconds: int = CONNECT_SECONDS,
) -> psycopg.Connection[Any]:
    """Open one connection; wait ``seconds`` (2 at least) for it.

    Raises:
        psycopg.OperationalError: nobody answers there, or the login is refused.
    """
    sslmode = _SSLMODES[endpoint.tls]
    # The operating system's trust store; no file of libpq's own is looked for.
    verified: dict[str, Any] = {"sslrootcert": "system"} if sslmode == "verify-full" else {}
    return psycopg.connect(
        host=endpoint.host,
        port=endpoint.port,
        dbname=endpoint.database,
        user=credential.user,
        password=credential.password.reveal(),
        sslmode=sslmode,
        application_name=application_name,
        autocommit=autocommit,
        connect_timeout=seconds,
        tcp_user_timeout=SILENT_SECONDS * 1000,
        keepalives_idle=SILENT_SECONDS,
        keepalives_interval=2,
        keepalives_count=3,
        **verified,
    )
