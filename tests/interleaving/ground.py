"""What a stage stands on: a server with the ledger and the fence, which keeps scenes and tells who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tests.interleaving.engine import Monitor
from tests.interleaving.works import FenceHand, LedgerSide

Row = tuple[str | None, ...]
Rows = dict[str, frozenset[Row]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was saved: its name, which is a schema on the server, and the rows of each table as text."""

    name: str
    rows: Rows


class Ground(Monitor, Protocol):
    """One server. The two sides and the two fences keep their connections from run to run."""

    @property
    def sides(self) -> Mapping[str, LedgerSide]:
        """Both sides' ledgers, by name."""

    @property
    def fences(self) -> Mapping[str, FenceHand]:
        """Both sides' hands for a fenced transaction."""

    def save(self, name: str) -> Snapshot:
        """Keep every row of the ledger that is there now, on the server."""

    def restore(self, snapshot: Snapshot) -> None:
        """Make the rows what they were, past every trigger and foreign key."""

    def rows(self, unstable: frozenset[str] = frozenset()) -> Rows:
        """Return the rows of every table that has some, values as text, without the log and ``unstable`` columns."""

    def tidy(self) -> None:
        """Remove what many restores leave behind."""

    def violations(self) -> list[str]:
        """Return which invariants are violated, in words."""
