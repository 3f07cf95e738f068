"""Airflow's connections, imported only when a reference asks for one: importing Airflow takes seconds."""

from __future__ import annotations

from typing import Any

from dpone_provider.adapters.secrets.url import DEFAULT_PORTS
from dpone_provider.application.ports.credentials import ResolvedReference
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused, refuse
from dpone_provider.domain.secret import Secret

CONNECTION_TYPES = {
    "postgres": EngineKind.POSTGRES,
    "postgresql": EngineKind.POSTGRES,
    "mssql": EngineKind.MSSQL,
    "clickhouse": EngineKind.CLICKHOUSE,
}


def read_connection(reference: str, conn_id: str) -> ResolvedReference | Refused:
    """Return Airflow's connection ``conn_id``; its extra fields are not read: TLS is the registry's to say."""
    connection = _look_up(reference, conn_id)
    return connection if isinstance(connection, Refused) else _parts(reference, conn_id, connection)


def _look_up(reference: str, conn_id: str) -> Any:
    try:
        from airflow.providers.common.compat.sdk import BaseHook
    except ImportError as error:
        return refuse(
            "airflow_missing",
            f"credential reference {reference}",
            found=f"Airflow cannot be imported ({error.name})",
            allowed="an environment with apache-airflow and apache-airflow-providers-common-compat",
            next_command="make env",
        )
    try:
        return BaseHook.get_connection(conn_id)
    # Secrets backends are plug-ins and raise what they like; their text may quote the value, so only the type is told.
    except Exception as error:  # noqa: BLE001
        return refuse(
            "airflow_connection_missing",
            f"credential reference {reference}",
            found=f"Airflow gave no connection {conn_id} ({type(error).__name__})",
            allowed="a connection that Airflow's secrets backends, environment or metadata database know",
            next_command=f"airflow connections get {conn_id}",
        )


def _parts(reference: str, conn_id: str, connection: Any) -> ResolvedReference | Refused:
    kind = CONNECTION_TYPES.get(connection.conn_type)
    wanted = {
        "a known type": kind,
        "a host": connection.host,
        "a schema (the database)": connection.schema,
        "a login": connection.login,
        "a password": connection.password,
    }
    missing = [name for name, value in wanted.items() if not value]
    if kind is None or missing:
        return refuse(
            "airflow_connection_incomplete",
            f"credential reference {reference}",
            found="a connection without " + ", ".join(missing),
            allowed=f"type {', '.join(sorted(CONNECTION_TYPES))} with host, schema (the database), login and password",
            next_command=f"airflow connections get {conn_id}",
        )
    return ResolvedReference(
        kind=kind,
        host=connection.host,
        port=connection.port or DEFAULT_PORTS[kind],
        database=connection.schema,
        credential=Credential(connection.login, Secret(connection.password)),
    )
