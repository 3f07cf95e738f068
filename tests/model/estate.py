"""The ledger in the parts that a search keeps apart, and numbers for what was met before.

What promotion moves is the *estate*; each try has a *case* of its own. A transaction is given the parts that it may
touch and nothing else, so that what it decides depends on them alone and can be remembered.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dpone_provider.application.ports.ledger import EnvironmentRow, NodeEvent
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import OccurrenceId, SlotId
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.publication import Publication
from dpone_provider.domain.slot import Claim, Slot

Thing = TypeVar("Thing", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estate:
    """Environments, occurrences, slots, claims, receipts and runs: all rows but those of attempts, in order of keys."""

    environments: tuple[EnvironmentRow, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()
    slots: tuple[Slot, ...] = ()
    claims: tuple[Claim, ...] = ()
    receipts: tuple[tuple[OccurrenceId, tuple[tuple[SlotId, int], ...]], ...] = ()
    runs: tuple[tuple[str, str, OccurrenceId], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The rows of one attempt, if it was admitted."""

    attempt: Attempt | None = None
    gates: tuple[Gate, ...] = ()
    publication: Publication | None = None
    nodes: tuple[NodeEvent, ...] = ()


@dataclass(slots=True)
class Numbers(Generic[Thing]):
    """Numbers things in the order in which they are first met."""

    things: list[Thing] = field(default_factory=list)
    _known: dict[Thing, int] = field(default_factory=dict)

    def of(self, thing: Thing) -> int:
        """Return the number of a thing."""
        number = self._known.get(thing)
        if number is None:
            number = self._known[thing] = len(self.things)
            self.things.append(thing)
        return number
