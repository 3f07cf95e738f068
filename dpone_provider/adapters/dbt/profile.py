"""dbt's profile: what it says of a connection, with references to the environment in place of every value.

Keys: https://docs.getdbt.com/docs/core/connect-data-platform/postgres-setup and .../mssql-setup. A variable that is
named ``DBT_ENV_SECRET_…`` is kept out of dbt's logs and artefacts by dbt itself.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused, refuse

PROFILE: Final = "dpone"
ADAPTERS: Final = MappingProxyType({EngineKind.POSTGRES: "postgres", EngineKind.MSSQL: "sqlserver"})
"""dbt's name of the adapter of each engine that it may run on."""
SECRET_VARIABLE: Final = "DBT_ENV_SECRET_DPONE_PASSWORD"
CONNECT_SECONDS: Final = 10
ODBC_DRIVER: Final = "ODBC Driver 18 for SQL Server"
"""Microsoft's driver as a driver manager knows it, where it is registered; else the profile is given its file."""
DRIVER_REGISTRIES: Final = ("ODBCSYSINI", "ODBCINSTINI")
"""Where unixODBC looks a driver's name up, if not in /etc: dbt's process must find what this one found."""
_NOT_QUOTED: Final = "[]\"';{}"
"""Characters that end a database's name where dbt-sqlserver writes it: ``USE […]``, texts, ``Database=…``."""
_SSL_MODES = {
    TlsMode.DISABLED: "disable",
    TlsMode.TRUST: "require",
    TlsMode.VERIFY: "verify-full",
    TlsMode.STRICT: "verify-full",
}


def profile_text(endpoint: Endpoint, schema: str, threads: int) -> str:
    """Return ``profiles.yml`` (JSON, which is YAML) for an engine that dbt runs on; it holds no value of a connection.

    Raises:
        KeyError: dbt has no adapter for the engine here.
    """
    output = {
        "type": ADAPTERS[endpoint.kind],
        "host": _reference("DPONE_DBT_HOST"),
        "port": "{{ env_var('DPONE_DBT_PORT') | as_number }}",
        "user": _reference("DPONE_DBT_USER"),
        "password": _reference(SECRET_VARIABLE),
        "schema": schema,
        "threads": threads,
        # A refused login is refused: nothing is gained by asking again, and each try is a session to be accounted for.
        "retries": 0,
        **(_postgres(endpoint.tls) if endpoint.kind is EngineKind.POSTGRES else _mssql(endpoint.tls)),
    }
    return json.dumps({PROFILE: {"target": PROFILE, "outputs": {PROFILE: output}}}, indent=1)


def connection_environment(endpoint: Endpoint, user: str, odbc_driver: str = ODBC_DRIVER) -> Mapping[str, str]:
    """Return the variables that the profile refers to, the password's aside. ``odbc_driver``: a name, or its file."""
    named = {
        "DPONE_DBT_HOST": endpoint.host,
        "DPONE_DBT_PORT": str(endpoint.port),
        "DPONE_DBT_USER": user,
        "DPONE_DBT_DATABASE": endpoint.database,
    }
    if endpoint.kind is EngineKind.MSSQL:
        named["DPONE_DBT_ODBC_DRIVER"] = odbc_driver
        named |= {name: os.environ[name] for name in DRIVER_REGISTRIES if name in os.environ}
    authorities = ssl.get_default_verify_paths().cafile
    # libpq's "system" store is OpenSSL's, and the wheel's own OpenSSL does not know where this machine keeps its.
    return named if authorities is None else named | {"SSL_CERT_FILE": authorities}


def unsupported(endpoint: Endpoint) -> Refused | None:
    """Return why dbt cannot run on ``endpoint``, or None."""
    if endpoint.kind not in ADAPTERS:
        return refuse(
            "dbt_adapter_unmodelled",
            f"dbt on {endpoint}",
            found=f"engine {endpoint.kind}",
            allowed=", ".join(sorted(ADAPTERS)),
            next_command="bind the project's connection to one of these engines",
        )
    if endpoint.kind is EngineKind.MSSQL and endpoint.tls is TlsMode.STRICT:
        return refuse(
            "dbt_tls_unsupported",
            f"dbt on {endpoint}",
            found="TLS mode strict, which dbt-sqlserver's profile cannot ask for",
            allowed="verify, trust or disabled",
            next_command="change tls in the environment's file",
        )
    unfit = sorted(set(endpoint.database) & set(_NOT_QUOTED))
    if endpoint.kind is EngineKind.MSSQL and unfit:
        return refuse(
            "dbt_name_not_quoted",
            f"dbt on {endpoint}",
            found=f"a database whose name holds {' '.join(unfit)}, which dbt-sqlserver writes as it stands",
            allowed=f"a name without {' '.join(_NOT_QUOTED)}",
            next_command="let dbt build in another database",
        )
    return None


def _reference(variable: str) -> str:
    return f"{{{{ env_var('{variable}') }}}}"


def _postgres(tls: TlsMode) -> dict[str, object]:
    store = {"sslrootcert": "system"} if _SSL_MODES[tls] == "verify-full" else {}
    return {
        "dbname": _reference("DPONE_DBT_DATABASE"),
        "sslmode": _SSL_MODES[tls],
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "dpone dbt",
        **store,
    }


def _mssql(tls: TlsMode) -> dict[str, object]:
    return {
        "driver": _reference("DPONE_DBT_ODBC_DRIVER"),
        "database": _reference("DPONE_DBT_DATABASE"),
        "encrypt": tls is not TlsMode.DISABLED,
        "trust_cert": tls is TlsMode.TRUST,
        "login_timeout": CONNECT_SECONDS,
        "query_timeout": 0,
    }
