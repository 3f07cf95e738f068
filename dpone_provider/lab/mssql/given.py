"""The SQL Server that ``DPONE_TEST_MSSQL_URL`` names, and its administrator's sessions, for the lab and the demo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Never

from dpone_provider.adapters.mssql.errors import ERRORS, LoginRefused, MssqlError
from dpone_provider.adapters.mssql.session import MssqlServer, Session
from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.assembly.reach import authority_login
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Failed, Refused, fail, refuse, unwind

VARIABLE: Final = "DPONE_TEST_MSSQL_URL"
"""``mssql://administrator:password@host:port/database?encrypt=…``: a member of sysadmin; the server may be lost."""
CONNECT_SECONDS: Final = 20.0
SCRIPT_SECONDS: Final = 120.0
PURPOSE: Final = "dpone lab"


@dataclass(frozen=True, slots=True)
class GivenServer:
    """The server, as its administrator reaches it. ``endpoint`` names the database that the URL does."""

    endpoint: Endpoint
    credential: Credential

    @property
    def address(self) -> str:
        """Where it is, for messages."""
        return f"SQL Server {self.endpoint.host}:{self.endpoint.port}"

    def at(self, database: str) -> GivenServer:
        """Return the same server in another database."""
        return GivenServer(replace(self.endpoint, database=database), self.credential)

    @contextmanager
    def session(self, seconds: float = SCRIPT_SECONDS) -> Iterator[Session]:
        """Open an administrator's session for a block.

        Raises:
            DponeError: Refused when the login is not let in, Failed when nobody answers or a statement is refused.
        """
        failure: MssqlError
        connected = False
        try:
            with MssqlServer(self.endpoint, self.credential).session(PURPOSE, seconds) as own:
                connected = True
                yield own
            return
        except ERRORS as error:
            failure = error
        unwind(_statement_failed(self, failure) if connected else _not_connected(self, failure))


def given_server(environ: Mapping[str, str]) -> GivenServer | None:
    """Return the server that the variable names, None where it is not set; nothing is connected.

    Raises:
        DponeError: Refused when its value is no URL of a SQL Server.
    """
    if not environ.get(VARIABLE):
        return None
    login = authority_login(ReferencedCredentials(environ), f"env:{VARIABLE}")
    if login.endpoint.kind is not EngineKind.MSSQL:
        _another_engine(login.endpoint)
    return GivenServer(login.endpoint, login.credential)


def _another_engine(endpoint: Endpoint) -> Never:
    unwind(
        refuse(
            "given_server_engine",
            f"variable {VARIABLE}",
            found=f"a URL of {endpoint.kind}",
            allowed="mssql://administrator:password@host:port/database?encrypt=trust",
            next_command=f"correct {VARIABLE}, or unset it to use the lab's own engines",
        )
    )


def _not_connected(given: GivenServer, failure: MssqlError) -> Refused | Failed:
    allowed = "a SQL Server that lets the administrator of the URL in, with a certificate that is trusted"
    following = (
        f"correct {VARIABLE} (?encrypt=trust takes a certificate that nobody vouches for), or unset it to use the lab's"
        " own engines"
    )
    if isinstance(failure, LoginRefused):
        return refuse(
            "given_server_refused_login", given.address, found=failure, allowed=allowed, next_command=following
        )
    return fail("given_server_unreachable", given.address, found=failure, allowed=allowed, next_command=following)


def _statement_failed(given: GivenServer, failure: MssqlError) -> Failed:
    return fail(
        "given_server_statement_failed",
        given.address,
        found=failure,
        allowed="a server that carries out what an administrator of the lab asks",
        next_command="put right what it names, then run the command again; `dpone lab down` removes what was made",
    )
