"""A server that answers what the lab asks of a given SQL Server, behind the tests' TDS server. It is no SQL Server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpone_provider.adapters.mssql.parameters import HEAD
from dpone_provider.domain.connection import Credential
from dpone_provider.lab.mssql import fitness
from dpone_provider.lab.mssql.given import VARIABLE, GivenServer
from dpone_provider.lab.state import url_of
from tests.adapters.mssql.odbc import server_at
from tests.adapters.mssql.tds_server import Answer, Cell, Error, Rows, TdsServer, serving

VERSION = "16.0.4215.2"
_NOTHING = Rows(("found",), [(None,)], kinds=(str,))


def environ_of(given: GivenServer) -> dict[str, str]:
    """Return the variable that names a server, as whoever runs a command has set it."""
    at, who = given.endpoint, given.credential
    url = url_of("mssql", user=who.user, password=who.password, host=at.host, port=at.port, database=at.database)
    return {VARIABLE: f"{url.reveal()}?encrypt={at.tls}"}


@dataclass
class StandIn:
    """Answers by text. ``lacks``: by the name of a statement of fitness.sql, what the server says instead."""

    lacks: Mapping[str, str | Error] = field(default_factory=dict)
    databases: set[str] = field(default_factory=set)
    logins: set[str] = field(default_factory=set)
    busy: dict[str, int] = field(default_factory=dict)
    """How many times a login cannot be dropped yet."""
    refusing: str = ""
    """A text whose batches are refused."""
    server: TdsServer = field(init=False)

    @contextmanager
    def serving(self) -> Iterator[GivenServer]:
        """Listen until the block ends; give what the lab is given."""
        with serving(self.answer) as self.server:
            found = server_at(self.server.port)
            yield GivenServer(found.endpoint, Credential("administrator", found.credential.password))

    def asked(self) -> list[str]:
        """Return what was sent, without what a session begins with."""
        texts = [text.removeprefix(HEAD).strip() for text in self.server.sent()]
        return [text for text in texts if not text.startswith("SET ANSI_NULLS, ANSI_PADDING")]

    def answer(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        """Answer one batch."""
        body = text.removeprefix(HEAD).strip()
        if self.refusing and self.refusing in body:
            return [Error(51000, "refused by the stand-in")]
        for name, statement in fitness.STATEMENTS.items():
            if body == statement:
                return self._fit(name)
        if body.startswith("SELECT"):
            return [Rows(("n",), [], kinds=(int,))]
        return self._made(body)

    def _fit(self, name: str) -> Sequence[Answer]:
        lacking = self.lacks.get(name)
        match lacking:
            case Error():
                return [lacking]
            case str():
                return [Rows(("found",), [(lacking,)])]
            case None:
                return [Rows(("found",), [(VERSION,)]) if name == "product" else _NOTHING]

    def _made(self, body: str) -> Sequence[Answer]:
        if dropped := re.search(r"DROP LOGIN \[(\w+)\]", body):
            if self.busy.get(dropped[1], 0):
                self.busy[dropped[1]] -= 1
                return [Error(15434, "Could not drop login as the user is currently logged in.")]
            self.logins.discard(dropped[1])
        if dropped := re.search(r"DROP DATABASE \[(\w+)\]", body):
            self.databases.discard(dropped[1])
        if made := re.match(r"CREATE (DATABASE|LOGIN) \[(\w+)\]", body):
            (self.databases if made[1] == "DATABASE" else self.logins).add(made[2])
        return []
