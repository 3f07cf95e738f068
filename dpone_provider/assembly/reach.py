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
_TLS_OPTION: dict[EngineKind, tuple[str, dict[str, TlsMode]]] = {
    EngineKind.POSTGRES: ("sslmode", _TLS_OF_SSLMODE),
    EngineKind.MSSQL: ("encrypt", {mode.value: mode for mode in TlsMode}),
}
"""How a URL says how to connect: the option, and what each of its values means."""
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
    tls = said_tls(found, f"authority {reference}") or TlsMode.VERIFY
    endpoint = Endpoint(kind=found.kind, host=found.host, port=found.port, database=found.database, tls=tls)
    return Login(endpoint, found.credential)


def said_tls(found: ResolvedReference, subject: str) -> TlsMode | None:
    """Return the TLS mode that a URL says; None where it says nothing.

    Raises:
        DponeError: Refused ``tls_option_unsupported``, or ``url_option_unknown`` where it says anything else: an option
            that is not obeyed would be believed.
    """
    option, modes = _TLS_OPTION.get(found.kind, ("", {}))
    values = [value for name, value in found.options if name == option]
    if len(values) != len(found.options) or len(values) > 1:
        unwind(
            refuse(
                "url_option_unknown",
                subject,
                found="an option that is not known here, or one that is given twice",
                allowed=f"?{option}={'|'.join(modes)}, once" if option else "a URL without options",
                next_command="correct the URL that the reference resolves to",
            )
        )
    if not values:
        return None
    if values[0] not in modes:
        unwind(
            refuse(
                "tls_option_unsupported",
                subject,
                found=f"{option}={values[0]}" if values[0] in _REPEATED else f"another {option}",
                allowed=", ".join(modes),
                next_command="correct the URL that the reference resolves to",
            )
        )
    return modes[values[0]]


def require_same_tls(said: TlsMode | None, wanted: TlsMode, subject: str) -> None:
    """Require that a URL says no other TLS mode than the one that holds.

    Raises:
        DponeError: Refused ``tls_modes_differ``.
    """
    if said not in (None, wanted):
        unwind(
            refuse(
                "tls_modes_differ",
                subject,
                found=f"a URL that says {said}",
                allowed=str(wanted),
                next_command="take the option out of the URL, or say the same in both places",
            )
        )


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
    subject = f"credential {reference} of connection {connection.reference}"
    require_same_tls(said_tls(found, subject), wanted.tls, subject)
    return Login(wanted, found.credential)


def _resolved(credentials: Credentials, reference: str) -> ResolvedReference:
    found = credentials.resolve(reference)
    if isinstance(found, Refused):
        unwind(found)
    return found
