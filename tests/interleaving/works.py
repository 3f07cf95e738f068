"""The works that a side can do: a ledger transaction, or a worker's fenced transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from sqlalchemy import event

from dpone_provider.adapters.ledger.sql_ledger import SqlLedger
from dpone_provider.application.ledger.calls import call
from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.domain.attempt import Attempt
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

    def __init__(self, ledger: Callable[[Hook], SqlLedger], session_of: Callable[[Any], int]) -> None:
        """Connect to nothing yet: ``ledger`` makes it with a hook, ``session_of`` tells the number of a connection."""
        self.ledger = ledger(self._before)
        self._session_of = session_of
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
        self._pid = self._session_of(connection)

    def _on_execute(self, *sent: Any) -> None:
        _, _, text, parameters, _, _ = sent
        # Time-outs are renewed when time has passed, which says nothing about the transaction.
        if not _RENEWS.search(text):
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


class FenceHand(Protocol):
    """A connection of an administrator's that takes on the issued login, and is that login while it works."""

    def session(self) -> int:
        """Return its number on the server."""

    def become(self) -> None:
        """Take the login on, if it has not."""

    def send(self, step: str, attempt_id: str) -> str | None:
        """Send what a step of ``FenceWork`` is; return the server's refusal, after which nothing is left of it."""

    def stop(self) -> None:
        """Be the administrator again, where no transaction is open."""


class FenceWork:
    """A worker's target transaction: the fence, a change, the fence again, commit."""

    STEPS = ("begin", "fence", "change the target", "fence again", "commit")

    def __init__(self, hand: FenceHand, attempt: Attempt) -> None:
        """Work for ``attempt`` through ``hand``."""
        self._hand = hand
        self._attempt = attempt
        self._sent: list[Sent] = []

    def __call__(self, hook: Hook) -> object:
        """Return "committed", or the fence's refusal in the server's words."""
        return self._do(self.STEPS, hook)

    def pid(self) -> int:
        """Return its session's number."""
        return self._hand.session()

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
        self._hand.become()
        try:
            for name in steps:
                hook(name)
                self._sent.append(Sent(name, values=[self._attempt.attempt_id]))
                refused = self._hand.send(name, self._attempt.attempt_id)
                if refused is not None:
                    return refused
        finally:
            self._hand.stop()
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


_RENEWS = re.compile(r"set_config|^(?!.*BEGIN TRANSACTION).*SET LOCK_TIMEOUT", re.DOTALL)
_NONE: tuple[Things, Things] = (NOTHING, NOTHING)


def _values(parameters: Any) -> list[str]:
    if isinstance(parameters, Mapping):
        return [value for one in parameters.values() for value in _values(one)]
    if isinstance(parameters, list | tuple):
        return [value for one in parameters for value in _values(one)]
    if isinstance(parameters, bytes):
        return [parameters.hex()]
    return [] if parameters is None else [str(parameters)]
