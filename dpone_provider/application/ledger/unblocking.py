"""A ledger for ``recover`` and the drain: what a stopped controller keeps locked does not stop them.

A controller that is stopped between two statements keeps its rows locked for as long as its connection lives. Nothing
of its transaction was committed, so ending its session costs its work and nothing else. Everybody else waits, and is
told who keeps them waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from dpone_provider.application.ports.ledger import (
    ROW_LOCKED,
    Authority,
    Conflict,
    Ledger,
    LedgerTransaction,
)
from dpone_provider.application.ports.readmission import AuthorityStanding
from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.outcomes import Busy, Failed, Refused, Unknown

Result = TypeVar("Result")
PATIENCE_SECONDS = 5.0
"""How long a lock is waited for before sleepers are looked for, and between two looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnblockingLedger:
    """Implements ``Ledger`` over another one; ``told`` hears of each session that is ended."""

    ledger: Ledger
    told: Callable[[str], None]
    patience: float = PATIENCE_SECONDS

    def run(
        self, name: str, script: Callable[[LedgerTransaction], Result], deadline: Deadline
    ) -> Result | Conflict | Refused | Busy | Failed | Unknown:
        """Run ``script``; a lock wait of ``patience`` seconds ends who sleeps in an open transaction, and goes on."""
        while True:
            soon = Deadline(deadline.clock, min(deadline.at, deadline.clock.monotonic() + self.patience))
            result = self.ledger.run(name, script, soon)
            if not isinstance(result, Busy) or result.problem.reason != ROW_LOCKED or deadline.passed():
                return result
            self.end_sleepers()

    def afresh(self) -> UnblockingLedger:
        """Return the same over a ledger with a new connection for every run."""
        return UnblockingLedger(ledger=self.ledger.afresh(), told=self.told, patience=self.patience)

    def end_sleepers(self) -> tuple[str, ...] | Refused | Unknown:
        """End stopped controllers' sessions, and tell of each."""
        ended = self.ledger.end_sleepers()
        if isinstance(ended, tuple):
            for who in ended:
                self.told(f"ended the session of a stopped controller: {who}; nothing of its transaction was committed")
        return ended

    def authority(self) -> Authority | Refused | Unknown:
        """Read the authority's identity."""
        return self.ledger.authority()

    def standing(self) -> AuthorityStanding | Refused | Unknown:
        """Read how the authority stands."""
        return self.ledger.standing()

    def regardless(self) -> Ledger:
        """Return the ledger for reading only: it waits for nobody."""
        return self.ledger.regardless()

    def readmitting(self) -> UnblockingLedger:
        """Return the same for a readmission."""
        return UnblockingLedger(ledger=self.ledger.readmitting(), told=self.told, patience=self.patience)
