"""One user's conversation with one server: reads, single mutations, Arrow streams in and out.

Nothing that changes data is ever sent twice. clickhouse-connect 1.12 repeats a mutating request in exactly two places,
read from its source and held by tests: ``raw_insert`` with a body of bytes after a remote close (so bodies here are
generators, which it cannot replay), and urllib3's own retry of errors that are neither connects nor reads (so its
retries are 0). Statements that are not reads are not repeated by ``command`` at all.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import IOBase
from typing import Any, Final, cast

import clickhouse_connect
from clickhouse_connect.driver import exceptions
from clickhouse_connect.driver.httpclient import HttpClient
from clickhouse_connect.driver.httputil import get_pool_manager
from clickhouse_connect.driver.summary import QuerySummary
from urllib3 import Timeout

from dpone_provider.adapters.clickhouse.errors import AnswerLost, ServerError
from dpone_provider.adapters.clickhouse.names import qualified
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import Relation

# The driver logs broken connections with a traceback before it raises; the error itself is told once, by us.
logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)

CONNECT_SECONDS: Final = 10.0
STATEMENT_SECONDS: Final = 60.0
_SHORTEST_SECONDS: Final = 0.05
_SHOWN_CHARACTERS: Final = 400
_CREDENTIAL_WORD: Final = "IDENTIFIED"
"""A statement with it is never echoed: the server's words about it are left out."""

READ_SETTINGS: Final[dict[str, Any]] = {
    # A user's profile may cut results off without an error; none of these may.
    "limit": 0,
    "offset": 0,
    "read_overflow_mode": "throw",
    "result_overflow_mode": "throw",
    "timeout_overflow_mode": "throw",
    "use_query_cache": 0,
    "final": 0,
}
"""Sent with every read."""
MUTATION_SETTINGS: Final[dict[str, Any]] = {"wait_end_of_query": 1, "send_progress_in_http_headers": 0}
"""Sent with every mutation: the status line is written only when the outcome is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClickHouseServer:
    """Where a server is, and who connects. ``connect_seconds`` bounds connecting, ``statement_seconds`` one answer."""

    endpoint: Endpoint
    credential: Credential
    connect_seconds: float = CONNECT_SECONDS
    statement_seconds: float = STATEMENT_SECONDS

    def __str__(self) -> str:
        """Return a name for messages, without any secret."""
        return f"{self.endpoint} as {self.credential.user}"


class Session:
    """A connection that is made when it is first needed. Not for several threads at once.

    Raises:
        ServerError: the server answered with an error.
        AnswerLost: it did not answer, or not as ClickHouse does.
    """

    def __init__(self, server: ClickHouseServer) -> None:
        """Hold where to connect; nothing is sent yet."""
        self.server = server
        self._client: HttpClient | None = None

    def rows(
        self, sql: str, parameters: Mapping[str, Any] | None = None, *, seconds: float | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one read (or KILL, which answers with rows) and return its rows."""
        with _translated():
            result = self._connected(seconds).query(sql, parameters=dict(parameters or {}), settings=READ_SETTINGS)
            return [tuple(row) for row in result.result_rows]

    def mutate(
        self,
        sql: str,
        *,
        query_id: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Send one statement that changes something, once."""
        sent = MUTATION_SETTINGS | dict(settings or {}) | {"query_id": query_id}
        with _translated(hide_words=_CREDENTIAL_WORD in sql):
            client = self._connected(seconds)
            answer = client.command(sql, parameters=dict(parameters or {}), settings=sent)
        if not isinstance(answer, QuerySummary):
            raise AnswerLost(f"a body where none belongs: {answer!r:.{_SHOWN_CHARACTERS}}")

    def stream(self, sql: str, *, arrow_settings: Mapping[str, Any], parameters: Mapping[str, Any]) -> IOBase:
        """Run one read and return its answer in Arrow's stream format, unread."""
        with _translated():
            return self._connected().raw_stream(
                sql,
                parameters=dict(parameters),
                fmt="ArrowStream",
                settings=READ_SETTINGS | {"send_progress_in_http_headers": 0} | dict(arrow_settings),
            )

    def insert(
        self,
        table: Relation,
        columns: Sequence[str],
        body: Iterator[memoryview],
        *,
        query_id: str,
        settings: Mapping[str, Any],
        seconds: float | None = None,
    ) -> int:
        """Send one INSERT of an Arrow stream, once; return the rows that the server says it wrote."""
        sent = MUTATION_SETTINGS | dict(settings) | {"query_id": query_id}
        with _translated():
            summary = self._connected(seconds).raw_insert(
                qualified(table), list(columns), _unrepeatable(body), settings=sent, fmt="ArrowStream"
            )
            return int(summary.written_rows)

    def release(self) -> None:
        """Close the sockets, so that the next call is on a fresh connection; what was learned of the server stays."""
        if self._client is not None:
            self._client.close_connections()

    def _connected(self, seconds: float | None = None) -> HttpClient:
        if self._client is None:
            self._client = _connect(self.server)
        read = self.server.statement_seconds if seconds is None else max(seconds, _SHORTEST_SECONDS)
        self._client.timeout = Timeout(connect=self.server.connect_seconds, read=read)
        return self._client


def _connect(server: ClickHouseServer) -> HttpClient:
    endpoint = server.endpoint
    client = clickhouse_connect.get_client(
        interface="http" if endpoint.tls is TlsMode.DISABLED else "https",
        host=endpoint.host,
        port=endpoint.port,
        username=server.credential.user,
        password=server.credential.password.reveal(),
        compress=False,
        query_retries=0,
        connect_timeout=int(server.connect_seconds) or 1,
        send_receive_timeout=int(server.statement_seconds) or 1,
        show_clickhouse_errors="scrub",
        autogenerate_session_id=False,
        # A pool of our own: sockets that nobody shares, and never a proxy that the environment names.
        pool_mgr=get_pool_manager(verify=endpoint.tls is not TlsMode.TRUST),
        client_name="dpone",
    )
    http = cast(HttpClient, client)
    http.http_retries = 0
    return http


def _unrepeatable(body: Iterator[memoryview]) -> Generator[Any]:
    """Return a generator whatever ``body`` is: the driver repeats a request only if its body is bytes."""
    yield from body


@contextmanager
def _translated(*, hide_words: bool = False) -> Iterator[None]:
    try:
        yield
    except exceptions.Error as error:
        if error.code is not None:
            raise ServerError(error.code, error.name or "", "" if hide_words else _words(error)) from None
        raise AnswerLost(_cause(error)) from None


def _words(error: exceptions.Error) -> str:
    text = str(error).partition("server response: ")[2] or str(error)
    return text.strip()[:_SHOWN_CHARACTERS]


def _cause(error: BaseException) -> str:
    """Name what broke, without urllib3's texts: those hold the URL with every parameter."""
    causes = [type(error).__name__]
    while (error := error.__cause__ or error.__context__) is not None:  # type: ignore[assignment]
        causes.append(type(error).__name__)
    return " from ".join(causes)
