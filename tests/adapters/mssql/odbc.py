"""Microsoft's ODBC driver against a server of the tests' own: where the driver and the driver manager are installed."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.mssql import driver
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.domain.secret import Secret

PASSWORD = "p}w;{d=é"


def _missing() -> str | None:
    try:
        driver.driver_name()
    except DponeError as error:
        return str(error)
    return None


MISSING = _missing()
needs_odbc = pytest.mark.skipif(MISSING is not None, reason=f"no ODBC here: {MISSING}")
"""Skipped, visibly, where pyodbc, its driver manager or the driver is not installed."""


def server_at(port: int, password: str = PASSWORD) -> MssqlServer:
    """Return the adapter's view of a server of the tests' own."""
    endpoint = Endpoint(kind=EngineKind.MSSQL, host="127.0.0.1", port=port, database="sales", tls=TlsMode.DISABLED)
    return MssqlServer(endpoint, Credential("controller", Secret(password)))
