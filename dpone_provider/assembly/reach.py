"""Turning references and registry entries into endpoints with credentials, late, and refusing where they disagree."""

from __future__ import annotations

from dpone_provider.application.ports.credentials import Credentials, ResolvedReference
from dpone_provider.assembly.refusals import no_authority_on
from dpone_provider.assembly.worker_job import Login
from dpone_provider.documents.connection_registry import Connection
from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused, refuse, unwind

_TLS_OF_SSLMODE = {
    "disable": TlsMode.DISABLED,
    "require": TlsMode.TRUST,
    "verify-full": TlsMode.VERIFY,
}
_TLS_OPTION = {
    EngineKind.POSTGRES: ("sslmode", _TLS_OF_SSLMODE),
    EngineKind.MSSQL: ("encrypt", {mode.value: mode for mode in TlsMode}),
}
"""How the URL of an authority says how to connect: the option, and what each of its values means."""
AUTHORITIES = frozenset(_TLS_OPTION)
"""The engines that a control authority can be on."""
_REPEATED = ("allow", "prefer", "verify-ca", "yes", "no", "true", "false", "mandatory", "optional")
"""Values of the drivers' own that may be repeated: anything else may be a part of a password that was not encoded."""


def authority_login(credentials: Credentials, reference: str) -> Login:
    """Return where the authority is and who connects; the URL's ``sslmode`` (PostgreSQL) or ``encrypt`` (SQL Server)
    gives the TLS mode: without it the certificate is verified.

    Raises:
        DponeError: Refused when the reference cannot be resolved or is not a ledger's engine.
    """
    found = _resolved(credentials, reference)
    if found.kind not in AUTHORITIES:
        unwind(no_authority_on(found.kind, f"authority {reference}"))
    tls = _tls(found, reference)
    endpoint = Endpoint(kind=found.kind, host=found.host, port=found.port, database=found.database, tls=tls)
    return Login(endpoint, found.credential)


def _tls(found: ResolvedReference, reference: str) -> TlsMode:
    option, modes = _TLS_OPTION[found.kind]
    said = dict(found.options).get(option)
    if said is None:
        return TlsMode.VERIFY
    if said not in modes:
        unwind(
            refuse(
                "tls_option_unsupported",
                f"authority {reference}",
                found=f"{option}={said}" if said in _REPEATED else f"another {option}",
                allowed=", ".join(modes),
                next_command="correct the URL that the reference resolves to",
            )
        )
    return modes[said]


def controller_login(credentials: Credentials, connection: Connection) -> Login:
    """Return the controller's login of a connection.

    Raises:
        DponeError: Refused when there is none, or it points elsewhere.
    """
    return _login(credentials, connection, connection.credentials.controller, "controller")


def reader_login(credentials: Credentials, connection: Connection) -> Login:
    """Return the binding's read-only login of a connection.

    Raises:
        DponeError: Refused when there is none, or it points elsewhere.
    """
    return _login(credentials, connection, connection.credentials.reader, "reader")


def observing_login(credentials: Credentials, connection: Connection) -> Login:
    """Return the controller's login, or the reader's for a pure source."""
    if connection.credentials.controller is not None:
        return controller_login(credentials, connection)
    return reader_login(credentials, connection)


def _login(credentials: Credentials, connection: Connection, reference: str | None, role: str) -> Login:
    if reference is None:
        unwind(
            refuse(
                "credential_not_bound",
                f"connection {connection.reference}",
                found=f"no {role} credential",
                allowed=f"credentials.{role} in the environment file",
                next_command="add it, then build the deployment anew",
            )
        )
    found = _resolved(credentials, reference)
    wanted = connection.address
    points_at = (found.kind, found.host, found.port, found.database)
    if points_at != (wanted.kind, wanted.host, wanted.port, wanted.database):
        unwind(
            refuse(
                "credential_points_elsewhere",
                f"credential {reference} of connection {connection.reference}",
                found=f"{found.kind}://{found.host}:{found.port}/{found.database}",
                allowed=str(wanted),
                next_command="correct what the reference resolves to, or the endpoint in the environment file",
            )
        )
    return Login(wanted, found.credential)


def _resolved(credentials: Credentials, reference: str) -> ResolvedReference:
    found = credentials.resolve(reference)
    if isinstance(found, Refused):
        unwind(found)
    return found
