"""A control database on SQL Server, behind the tests' TDS server: transactions, settle and one table, in memory.

It answers the adapter's own batches, by what they begin with, as ``sql/mssql`` and SQL Server are documented to. It is
no SQL Server: it shows what the adapter sends, in which order, over the real driver, and what it makes of answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from dpone_provider.adapters.ledger.mssql import MssqlDialect
from dpone_provider.adapters.ledger.run import Hook
from dpone_provider.adapters.ledger.sql_ledger import SqlLedger, no_hook
from dpone_provider.adapters.mssql.lending import MssqlLender
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.ports.time import Clock
from tests.adapters.mssql.odbc import server_at
from tests.adapters.mssql.tds_server import Answer, Cell, Error, Rows, TdsServer, serving

AUTHORITY_ID = "5a1d4f0e-6a53-4b6f-9a39-0c8f6f2d7b11"
LIFE = "SQL1/7/GUID/FORK"
_DECLARED = re.compile(r"DECLARE @(\w+) [\w()]+ = (NULL|@P\d+);")
_OPENING = ("authority_id", "incarnation", "observed", "family", "version", "mark", "sequence", "opened")
_TYPES = (str, str, str, str, int, int, int, str, int)
Row = tuple[str, str | None, int]


@dataclass
class Transaction:
    """One that is open: its number, what its session said of itself, and what it wrote."""

    number: int
    context: str
    written: dict[str, Row] = field(default_factory=dict)


@dataclass
class FakeControl:
    """What stands there, and what befalls it: the next batch that holds a text is answered as is given for it."""

    server: TdsServer = field(init=False)
    environments: dict[str, Row] = field(default_factory=dict)
    open: dict[int, Transaction] = field(default_factory=dict)
    opening: dict[str, str | int | None] = field(default_factory=dict)
    settled: int = 0
    blockers: list[tuple[int, str, str, int]] = field(default_factory=list)
    sleepers: list[tuple[int, str, str, int]] = field(default_factory=list)
    asked_about: list[Cell] = field(default_factory=list)
    befalls: list[tuple[str, tuple[Answer, ...]]] = field(default_factory=list)
    places: int = 100
    numbers: Iterator[int] = field(default_factory=lambda: count(7001))

    @contextmanager
    def serving(self) -> Iterator[FakeControl]:
        """Listen until the block ends."""
        with serving(self.answer, door=self.door, closed=self.closed) as self.server:
            yield self

    def ledger(self, on_statement: Hook = no_hook, clock: Clock | None = None) -> SqlLedger:
        """Return the adapter's ledger over it."""
        at = server_at(self.server.port)
        dialect = MssqlDialect(MssqlLender(at.endpoint, at.credential))
        return SqlLedger(dialect, clock or SystemClock(), on_statement=on_statement)

    def sent(self) -> list[str]:
        """Return the batches that came since a connection's first, by the first word that tells what they are."""
        return [_kind(text) for text in self.server.sent() if "@@SPID" not in text]

    def door(self, user: str, password: str, number: int) -> Error | None:
        """Let a login in while there is a place."""
        if self.server.open_connections > self.places:
            return Error(
                17809, "Could not connect because the maximum number of '1' user connections has been reached."
            )
        return None

    def closed(self, session: int) -> None:
        """Roll back what a session left open."""
        self.open.pop(session, None)

    def answer(self, text: str, values: Sequence[Cell], session: int) -> Sequence[Answer]:
        """Answer one batch; an error of the server rolls back, as XACT_ABORT is on."""
        for place, (part, answers) in enumerate(self.befalls):
            if part in text:
                del self.befalls[place]
                if any(isinstance(one, Error) for one in answers):
                    self.open.pop(session, None)
                return answers
        match _kind(text):
            case "number":
                return [Rows(("number",), [(session,)])]
            case "open":
                context = re.search(r"SET CONTEXT_INFO 0x([0-9a-f]+);", text)
                assert context is not None
                self.open[session] = Transaction(next(self.numbers), bytes.fromhex(context[1]).decode())
                return [self._opening(session)]
            case "settle":
                return [self._settle(values, session)]
            case "commit":
                return self._commit(session)
            case "rollback":
                self.open.pop(session, None)
                return []
            case "write":
                return [self._write(text, values, session)]
            case "state":
                return [Rows(("state",), [(int(session in self.open),)])]
            case "read":
                return [self._read(text, values, session)]
            case "blockers":
                self.asked_about += values
                return [_others(self.blockers)]
            case "end_sleepers":
                ended, self.sleepers = self.sleepers, []
                return [_others(ended)]
            case _:
                return []

    def _opening(self, session: int) -> Rows:
        said = {
            "authority_id": AUTHORITY_ID,
            "incarnation": LIFE,
            "observed": LIFE,
            "family": "nonproduction",
            "version": 1,
            "mark": 0,
            "sequence": 9,
            "opened": None,
        } | self.opening
        row = (*(said[name] for name in _OPENING), self.open[session].number)
        return Rows((*_OPENING, "transaction_id"), [row], _TYPES)

    def _settle(self, values: Sequence[Cell], session: int) -> Rows:
        healthy = session in self.open and values[0] == self.open[session].number
        self.settled += healthy and values[1] == 1
        return Rows(("healthy",), [(int(healthy),)])

    def _commit(self, session: int) -> Sequence[Answer]:
        ended = self.open.pop(session, None)
        if ended is None:
            return [Error(3902, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.")]
        self.environments |= ended.written
        return []

    def _write(self, text: str, values: Sequence[Cell], session: int) -> Rows:
        held = self.open.get(session)
        if held is None or held.number != values[0]:
            return Rows(("met",), [(-1,)])
        given = iter(values)
        named = {name: None if said == "NULL" else next(given) for name, said in _DECLARED.findall(text)}
        met = 0
        for number in range(text.count("SET @met +=")):
            if "INSERT INTO dpone_control.environment " in text:
                name, generation = str(named[f"name_{number}"]), named[f"generation_{number}"]
                assert isinstance(generation, int)
                held.written[name] = (name, None, generation)
            else:
                met -= str(named[f"id_name_{number}"]) not in self.environments | held.written
            met += 1
        return Rows(("met",), [(met,)])

    def _read(self, text: str, values: Sequence[Cell], session: int) -> Rows:
        held = self.open.get(session)
        there = self.environments | (held.written if held else {})
        rows = [there[str(one)] for one in values if str(one) in there]
        return Rows(("name", "holder_id", "generation"), rows, (str, str, int))


def _kind(text: str) -> str:
    marks = {
        "@@SPID": "number",
        "BEGIN TRANSACTION;": "open",
        "AS healthy": "settle",
        "COMMIT TRANSACTION WITH": "commit",
        "ROLLBACK TRANSACTION": "rollback",
        "SELECT @met AS met": "write",
        "sys.dm_exec_requests": "blockers",
        "EXEC dpone_gate.end_sleepers": "end_sleepers",
        "FROM dpone_control.environment": "read",
        "SET LOCK_TIMEOUT": "lock_timeout",
        "SELECT CONVERT(int, XACT_STATE())": "state",
    }
    return next((kind for mark, kind in marks.items() if mark in text), "other")


def _others(rows: Sequence[tuple[int, str, str, int]]) -> Rows:
    return Rows(("number", "who", "state", "seconds"), rows, (int, str, str, int))
