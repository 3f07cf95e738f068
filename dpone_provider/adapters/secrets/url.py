"""Connection URLs, read without ever telling what was in them.

``postgresql://user:password@host:port/database?option=value``, user and password percent-encoded. The problems here are
constants: no text of a URL reaches a message, also not through an exception's own text or cause.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from dpone_provider.application.ports.credentials import ResolvedReference
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.secret import Secret

MAX_URL_LENGTH = 4096
_KINDS = {
    "postgresql": EngineKind.POSTGRES,
    "postgres": EngineKind.POSTGRES,
    "mssql": EngineKind.MSSQL,
    "clickhouse": EngineKind.CLICKHOUSE,
}
DEFAULT_PORTS = {EngineKind.POSTGRES: 5432, EngineKind.MSSQL: 1433, EngineKind.CLICKHOUSE: 8123}
_HOST = re.compile(r"[\w.:%-]+")
_SECRET_OPTION = re.compile(r"pass|pwd|secret|token|key|credential", re.IGNORECASE)


class UrlProblem(Exception):
    """What is wrong with a URL, in words that hold no part of it."""


def parse_url(text: str) -> ResolvedReference:
    """Return the parts of a connection URL; a missing port is the engine's own.

    Raises:
        UrlProblem: it is not such a URL; the text is one of a fixed set.
    """
    if len(text) > MAX_URL_LENGTH or not text.isprintable() or text != text.strip():
        raise UrlProblem("a value that is too long, or holds blanks at its ends or control characters")
    parts = _split(text)
    kind = _KINDS.get(parts.scheme)
    if kind is None:
        raise UrlProblem("a value whose scheme is not one of " + ", ".join(sorted(_KINDS)))
    return ResolvedReference(
        kind=kind,
        host=_host(parts),
        port=_port(parts) or DEFAULT_PORTS[kind],
        database=_database(parts),
        credential=Credential(
            user=unquote(_present(parts.username, "user")),
            password=Secret(unquote(_present(parts.password, "password"))),
        ),
        options=_options(parts),
    )


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
    except ValueError:
        raise UrlProblem("a value that is not a URL") from None
    if parts.fragment or "#" in text:
        raise UrlProblem("a URL with a fragment; '#' in a password is written %23")
    return parts


def _present(part: str | None, name: str) -> str:
    if not part:
        raise UrlProblem(f"a URL without {name}")
    return part


def _host(parts: SplitResult) -> str:
    host = _present(parts.hostname, "host")
    if not _HOST.fullmatch(host):
        raise UrlProblem("a URL whose host holds something else than letters, digits, '.', '-', '_', ':' and '%'")
    return host


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise UrlProblem(
            "a URL whose port is not a number from 1 to 65535; '/' and '@' in a password are encoded"
        ) from None


def _database(parts: SplitResult) -> str:
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in database:
        raise UrlProblem("a URL whose path is not exactly one database name")
    return database


def _options(parts: SplitResult) -> tuple[tuple[str, str], ...]:
    try:
        options = tuple(sorted(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))))
    except ValueError:
        raise UrlProblem("a URL whose query is not name=value pairs") from None
    if any(_SECRET_OPTION.search(name) for name, _ in options):
        raise UrlProblem("a URL with a secret among its options; user and password stand before the host")
    return options
