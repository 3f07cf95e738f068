"""The works that a side can do: a ledger transaction, or a worker's fenced transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import psycopg
from psycopg import pq, sql
from sqlalchemy import event

from dpone_provider.adapters.ledger.ledger import PostgresLedger
from dpone_provider.application.ledger.calls import call
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.domain.attempt import Attempt
from tests.conformance.installed_ledger import InstalledLedger
from tests.conformance.ledger_world import deadline
from tests.interleaving.actors import Hook
from tests.interleaving.footprints import NOTHING, Event, Footprint, Things

Script = Callable[[LedgerTransaction], object]


@dataclass(slots=True)
class Sent:
    """What was sent after one stop: the statement's name, its texts, and every value that went with them."""

    name: str
    texts: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


def _go_on(statement: str) -> None:
    """Stop before nothing."""


class LedgerSide:
    """One side's ledger: its connection is kept from run to run. It notes what the connection sends."""

    def __init__(self, installed: InstalledLedger) -> None:
        """Connect to nothing yet."""
        self.ledger: PostgresLedger = installed.ledger(self._before)
        self.sent: list[Sent] = []
        self._hook: Hook = _go_on
        self._pid = 0
        event.listen(self.ledger._engine, "checkout", self._on_checkout)
        event.listen(self.ledger._engine, "before_cursor_execute", self._on_execute)

    def work(self, name: str, script: Script) -> LedgerWork:
        """Return the work that runs ``script`` on this side."""
        return LedgerWork(self, name, script)

    def run(self, name: str, script: Script, hook: Hook) -> object:
        """Run the script, stopped by ``hook``; return what it came to, failures as values."""
        self._hook = hook
        self.sent = []
        try:
            return call(self.ledger, name, cast("Callable[[LedgerTransaction], Any]", script), deadline(120))
        finally:
            self._hook = _go_on

    @property
    def process(self) -> int:
        """The server's process of the current transaction."""
        return self._pid

    def close(self) -> None:
        """Close the connection."""
        self.ledger.close()

    def _before(self, name: str) -> None:
        self._hook(name)
        self.sent.append(Sent(name))

    def _on_checkout(self, connection: Any, record: object, proxy: object) -> None:
        self._pid = connection.info.backend_pid

    def _on_execute(self, *sent: Any) -> None:
        _, _, text, parameters, _, _ = sent
        # Time-outs are renewed when time has passed, which says nothing about the transaction.
        if "set_config" not in text:
            self.sent[-1].texts.append(text)
            self.sent[-1].values.extend(_values(parameters))


class LedgerWork:
    """One transaction of a ledger."""

    def __init__(self, side: LedgerSide, name: str, script: Script) -> None:
        """Run ``script`` on ``side``."""
        self.side = side
        self._name = name
        self._script = script

    def __call__(self, hook: Hook) -> object:
        """Run it."""
        return self.side.run(self._name, self._script, hook)

    def pid(self) -> int:
        """Return its server process."""
        return self.side.process

    def sent(self) -> Sequence[Sent]:
        """Return what it sent, stop by stop."""
        return self.side.sent


class FenceWork:
    """A worker's target transaction: the fence, a change, the fence again, commit."""

    STEPS = ("begin", "fence", "change the target", "fence again", "commit")
    _STATEMENTS: Mapping[str, bytes] = {
        "begin": b"BEGIN",
        "fence": b"SELECT dpone_gate.require_current(%(attempt)s)",
        "change the target": b"INSERT INTO public.target VALUES (%(attempt)s)",
        "fence again": b"SELECT dpone_gate.require_current(%(attempt)s)",
        "commit": b"COMMIT",
    }

    def __init__(self, connection: psycopg.Connection[Any], login: str, attempt: Attempt) -> None:
        """Work on a superuser's connection that takes on the issued login as its session's user."""
        self._connection = connection
        self._login = login
        self._attempt = attempt
        self._sent: list[Sent] = []

    def __call__(self, hook: Hook) -> object:
        """Return "committed", or the fence's refusal in the server's words."""
        return self._do(self.STEPS, hook)

    def pid(self) -> int:
        """Return its server process."""
        return self._connection.info.backend_pid

    def sent(self) -> Sequence[Sent]:
        """Return what it sent, stop by stop."""
        return self._sent

    def footprint(self) -> Footprint:
        """Return what its last run touched: attempt and slots shared until COMMIT, its gate read."""
        slots = [("slot", slot) for slot, _ in self._attempt.writes]
        shared = frozenset([("attempt", self._attempt.attempt_id), *slots])
        gate = frozenset([("login_gate", self._attempt.attempt_id)])
        touched = {"fence": (gate, shared), "fence again": (gate, shared)}
        return tuple(
            Event(name=one.name, commits=shared)
            if one.name == "commit"
            else Event(name=one.name, reads=touched.get(one.name, _NONE)[0], shares=touched.get(one.name, _NONE)[1])
            for one in self._sent
        )

    def _do(self, steps: Sequence[str], hook: Hook) -> str:
        self._sent = []
        self._connection.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(self._login)))
        try:
            for name in steps:
                hook(name)
                self._sent.append(Sent(name, values=[self._attempt.attempt_id]))
                parameters = {"attempt": self._attempt.attempt_id} if b"%" in self._STATEMENTS[name] else None
                self._connection.execute(self._STATEMENTS[name], parameters)
        except psycopg.Error as error:
            self._connection.execute("ROLLBACK")
            return str(error.diag.message_primary)
        finally:
            if self._connection.info.transaction_status == pq.TransactionStatus.IDLE:
                self._connection.execute("RESET SESSION AUTHORIZATION")
        return "committed"


class FencedCommit(FenceWork):
    """The same, past its last fence: all that is left is COMMIT. Until then it keeps what the fence has locked."""

    def prelude(self) -> None:
        """Do everything before, while the gate is READY."""
        outcome = self._do(self.STEPS[:-1], lambda _: None)
        assert outcome == "committed", outcome

    def __call__(self, hook: Hook) -> object:
        """Commit."""
        return self._do(self.STEPS[-1:], hook)


_NONE: tuple[Things, Things] = (NOTHING, NOTHING)


def _values(parameters: Any) -> list[str]:
    if isinstance(parameters, Mapping):
        return [str(value) for value in parameters.values() if value is not None]
    return [value for one in parameters or () for value in _values(one)]
