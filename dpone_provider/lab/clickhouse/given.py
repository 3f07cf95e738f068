"""The ClickHouse that ``DPONE_TEST_CLICKHOUSE_URL`` names, and its user's sessions, for the lab and the demo.

The user of the URL is the lab's controller there. It cannot be somebody beside it: whoever else could write the mart is
refused at admission, and an administrator always could.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Never

from dpone_provider.adapters.clickhouse.errors import ERRORS, AnswerLost, ClickHouseError, ServerError
from dpone_provider.adapters.clickhouse.session import ClickHouseServer, Session
from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.credentials import ResolvedReference
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Failed, Refused, fail, refuse, unwind

VARIABLE: Final = "DPONE_TEST_CLICKHOUSE_URL"
"""``clickhouse://user:password@host:port/database``: the HTTP port; ``?encrypt=verify`` for HTTPS. The server may be
lost, and nobody but this user can write on it. The database is not used."""
CONNECT_SECONDS: Final = 20.0
STATEMENT_SECONDS: Final = 120.0
_TLS: Final[Mapping[str, TlsMode]] = {mode.value: mode for mode in (TlsMode.DISABLED, TlsMode.TRUST, TlsMode.VERIFY)}
_NOT_LET_IN: Final = (192, 193, 194, 195, 516)
"""Unknown user, wrong or missing password, another address, authentication failed. Source: ``ErrorCodes.cpp``."""
UNSET: Final = f"unset {VARIABLE} to use the lab's own engines"


@dataclass(frozen=True, slots=True)
class GivenClickhouse:
    """The server, as the lab's controller reaches it. ``endpoint`` names the database that the URL does."""

    endpoint: Endpoint
    credential: Credential

    @property
    def address(self) -> str:
        """Where it is, for messages."""
        return f"ClickHouse {self.endpoint.host}:{self.endpoint.port}"

    def server(self) -> ClickHouseServer:
        """Return it for the adapter."""
        return ClickHouseServer(
            endpoint=self.endpoint,
            credential=self.credential,
            connect_seconds=CONNECT_SECONDS,
            statement_seconds=STATEMENT_SECONDS,
        )

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Give a session for a block; it connects with its first statement.

        Raises:
            DponeError: Refused when the user is not let in, Failed when nobody answers or a statement is refused.
        """
        own = Session(self.server())
        failure: ClickHouseError
        try:
            yield own
            return
        except ERRORS as error:
            failure = error
        finally:
            own.release()
        unwind(_told(self, failure))


def given_clickhouse(environ: Mapping[str, str]) -> GivenClickhouse | None:
    """Return the server that the variable names, None where it is not set; nothing is connected.

    Raises:
        DponeError: Refused when its value is no URL of a ClickHouse.
    """
    if not environ.get(VARIABLE):
        return None
    found = settled(ReferencedCredentials(environ).resolve(f"env:{VARIABLE}"))
    if found.kind is not EngineKind.CLICKHOUSE:
        _another_engine(found.kind)
    endpoint = Endpoint(kind=found.kind, host=found.host, port=found.port, database=found.database, tls=_tls(found))
    return GivenClickhouse(endpoint, found.credential)


def _tls(found: ResolvedReference) -> TlsMode:
    """Nothing said is plain HTTP, which is what port 8123 speaks."""
    if len(found.options) > 1 or any(name != "encrypt" for name, _ in found.options):
        unwind(
            refuse(
                "url_option_unknown",
                f"variable {VARIABLE}",
                found="an option that is not known here, or one that is given twice",
                allowed=f"?encrypt={'|'.join(_TLS)}, once",
                next_command=f"correct {VARIABLE}, or {UNSET}",
            )
        )
    said = dict(found.options).get("encrypt", TlsMode.DISABLED.value)
    if said not in _TLS:
        unwind(
            refuse(
                "tls_option_unsupported",
                f"variable {VARIABLE}",
                found="another encrypt",
                allowed=", ".join(_TLS),
                next_command=f"correct {VARIABLE}, or {UNSET}",
            )
        )
    return _TLS[said]


def _another_engine(kind: EngineKind) -> Never:
    unwind(
        refuse(
            "given_server_engine",
            f"variable {VARIABLE}",
            found=f"a URL of {kind}",
            allowed="clickhouse://user:password@host:8123/default",
            next_command=f"correct {VARIABLE}, or {UNSET}",
        )
    )


def _told(given: GivenClickhouse, failure: ClickHouseError) -> Refused | Failed:
    match failure:
        case ServerError() if failure.code in _NOT_LET_IN:
            return refuse(
                "given_server_refused_login",
                given.address,
                found=failure,
                allowed="a ClickHouse that lets the user of the URL in",
                next_command=f"correct {VARIABLE}, or {UNSET}",
            )
        case AnswerLost():
            return fail(
                "given_server_unreachable",
                given.address,
                found=failure,
                allowed="a ClickHouse that answers HTTP at this address",
                next_command=f"correct {VARIABLE} (?encrypt=verify or trust for HTTPS), or {UNSET}",
            )
        case _:
            return fail(
                "given_server_statement_failed",
                given.address,
                found=failure,
                allowed="a server that carries out what the lab's controller asks",
                next_command=(
                    "put right what it names, then run the command again; `dpone lab down` removes what was made"
                ),
            )
