"""A proxy for HTTP that breaks chosen requests: before they are sent on, after they were, or in their answers."""

from __future__ import annotations

import http.client
import socket
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request: its query id (empty if none), its statement or body's first bytes, its path, its sender."""

    query_id: str
    statement: str
    path: str
    user: str
    password: str


@dataclass(frozen=True, slots=True)
class PassOn:
    """Send it on and answer as the server did."""


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Send it on, wait for the server's answer, and close the connection instead of giving it."""


@dataclass(frozen=True, slots=True)
class LoseRequest:
    """Read it whole and close the connection; the server never sees it."""


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """Give only the first ``size`` bytes of the answer's body. ``in_order``: end it as if it were whole."""

    size: int
    in_order: bool = False


@dataclass(frozen=True, slots=True)
class AppendToAnswer:
    """Give the answer's first ``size`` bytes, then these, and end in order: an exception's tail in a 200."""

    size: int
    tail: bytes


@dataclass(frozen=True, slots=True)
class AnswerError:
    """Answer with an error of ClickHouse; the server never sees the request unless ``sent_on``."""

    code: int
    name: str
    sent_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SendInstead:
    """Send another statement (None: the same), as another user (None: the same), with one name put for another."""

    statement: str | None = None
    login: tuple[str, str] | None = None
    renamed: tuple[str, str] = ("", "")


Fault: TypeAlias = PassOn | SendInstead | LoseAnswer | LoseRequest | CutAnswer | AppendToAnswer | AnswerError
Rule: TypeAlias = Callable[[Seen], Fault]


@dataclass(slots=True)
class FaultProxy:
    """A running proxy: ``rule`` decides for each request; ``seen`` holds all of them, in order."""

    port: int
    rule: Rule = lambda _: PassOn()
    seen: list[Seen] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)
    """The sizes of the server's own answers, in order."""

    def count(self, part: str) -> int:
        """Return how many requests had ``part`` in their query id or statement."""
        return sum(part in each.query_id or part in each.statement for each in self.seen)


@contextmanager
def fault_proxy(upstream: int) -> Iterator[FaultProxy]:
    """Run a proxy in front of ``upstream`` on loopback while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    proxy = FaultProxy(server.server_address[1])
    server.proxy, server.upstream = proxy, upstream  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Handle one request."""
        body = self._body()
        query = parse_qs(urlsplit(self.path).query)
        statement = "".join(query.get("query", [])) or body[:2000].decode(errors="replace")
        user, password = self._login()
        seen = Seen(
            query_id="".join(query.get("query_id", [])),
            statement=statement,
            path=self.path,
            user=user,
            password=password,
        )
        proxy: FaultProxy = self.server.proxy  # type: ignore[attr-defined]
        proxy.seen.append(seen)
        fault = proxy.rule(seen)
        if isinstance(fault, LoseRequest):
            return self._hang_up()
        if isinstance(fault, AnswerError) and not fault.sent_on:
            return self._answer_error(fault)
        status, headers, answer = self._ask(body, fault if isinstance(fault, SendInstead) else SendInstead())
        proxy.answered.append(len(answer))
        match fault:
            case LoseAnswer():
                self._hang_up()
            case AnswerError():
                self._answer_error(fault)
            case CutAnswer(size, in_order):
                self._answer(status, headers, answer[:size], len(answer[:size]) if in_order else len(answer))
                self._hang_up()
            case AppendToAnswer(size, tail):
                self._answer(status, headers, answer[:size] + tail, len(answer[:size] + tail))
            case _:
                self._answer(status, headers, answer, len(answer))

    do_GET = do_POST  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _login(self) -> tuple[str, str]:
        if "X-ClickHouse-User" in self.headers:
            return self.headers["X-ClickHouse-User"], self.headers.get("X-ClickHouse-Key", "")
        user, _, password = b64decode(self.headers.get("Authorization", "Basic ").split()[-1]).decode().partition(":")
        return user, password

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _ask(self, body: bytes, instead: SendInstead) -> tuple[int, list[tuple[str, str]], bytes]:
        old, new = instead.renamed
        path = self.path.replace(old, new) if old else self.path
        body = body.replace(old.encode(), new.encode()) if old else body
        body = instead.statement.encode() if instead.statement is not None else body
        dropped = {"transfer-encoding", "content-length", "connection", "host"}
        headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
        if instead.login is not None:
            headers = {name: value for name, value in headers.items() if not name.lower().startswith("x-clickhouse-")}
            headers["Authorization"] = "Basic " + b64encode(":".join(instead.login).encode()).decode()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.upstream)  # type: ignore[attr-defined]
        try:
            connection.request(self.command, path, body, headers)
            answer = connection.getresponse()
            kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in dropped]
            return answer.status, kept, answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, length: int) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _answer_error(self, fault: AnswerError) -> None:
        text = f"Code: {fault.code}. DB::Exception: made by the proxy. ({fault.name}) (version 26.7.2.1)\n".encode()
        self._answer(500, [("X-ClickHouse-Exception-Code", str(fault.code))], text, len(text))

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
