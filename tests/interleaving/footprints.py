"""What a transaction touches, statement by statement, and the orders of two transactions that can differ at all.

A footprint is recorded by running a script alone. A *thing* is a table with one identifier: ``(occurrence, 73c8…)`` is
the occurrence's row, ``(attempt, 73c8…)`` the attempts of that occurrence, so a search by a column and a row with that
value in it share a thing. Two statements conflict when one changes or locks what the other shares, locks or changes; a
plain read does not see uncommitted rows, so it conflicts with the other's COMMIT only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

MOST = 2000
"""So many classes are looked at, to choose one; no pair has as many."""
Thing = tuple[str, str]
Things = frozenset[Thing]
NOTHING: Things = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One statement: what it reads without a lock, locks in share, locks for itself or changes, or makes visible."""

    name: str
    reads: Things = NOTHING
    shares: Things = NOTHING
    changes: Things = NOTHING
    commits: Things = NOTHING

    def conflicts(self, other: Event) -> bool:
        """Tell whether the order of the two can matter."""
        return self._stops(other) or other._stops(self)

    def _stops(self, other: Event) -> bool:
        seen = other.shares | other.changes
        return not (self.changes.isdisjoint(seen) and self.commits.isdisjoint(seen | other.reads | other.commits))


Footprint = tuple[Event, ...]
Order = tuple[bool, ...]
"""Who goes next, step by step: True is the first transaction."""


@dataclass(slots=True)
class Blocking:
    """What earlier runs of a pair have shown: after ``(i, j)`` steps the first, or the second, cannot take its next."""

    first: set[tuple[int, int]] = field(default_factory=set)
    second: set[tuple[int, int]] = field(default_factory=set)

    def may(self, first: bool, i: int, j: int) -> bool:
        """Tell whether a side was never seen blocked there, or earlier in the other one's transaction.

        Locks are held to the end, so whoever is blocked stays blocked while the other one, still open, goes on.
        """
        if first:
            return not any((i, earlier) in self.first for earlier in range(j + 1))
        return not any((earlier, j) in self.second for earlier in range(i + 1))


def next_order(one: Footprint, other: Footprint, seen: set[object], blocking: Blocking) -> Order | None:
    """Return an order whose class was not seen, and mark it as seen; None when there is none left.

    A class is told apart by the direction of every conflicting pair. Where a side is known to be blocked the other one
    goes, so that orders which the locks make equal fall together. Of those left the one is taken in which the two
    meet earliest: whoever is blocked there is blocked in all the orders in which they meet later.
    """
    left = [(order, key) for order, key in islice(_orders(one, other, blocking), MOST) if key not in seen]
    if not left:
        return None
    order, key = min(left, key=lambda each: _first_meeting(one, other, each[0]))
    seen.add(key)
    return order


def class_of(one: Footprint, other: Footprint, steps: Sequence[bool]) -> object:
    """Return the class of what was really done, as far as both sides did what they do alone."""
    i = j = 0
    key: tuple[int, ...] = ()
    for first in steps:
        if first and i < len(one):
            key = (*key, _earlier(one[i], other[:j]))
            i += 1
        elif not first:
            j += 1
    return key


def _orders(one: Footprint, other: Footprint, blocking: Blocking) -> Iterator[tuple[Order, object]]:
    """Yield orders depth first. A step that conflicts with nothing that the other side still does is no choice."""
    meets = [[event.conflicts(rival) for rival in other] for event in one]
    visited: set[object] = set()
    stack: list[tuple[int, int, Order, tuple[int, ...]]] = [(0, 0, (), ())]
    while stack:
        i, j, order, key = stack.pop()
        if (i, j, key) in visited:
            continue
        visited.add((i, j, key))
        if i == len(one) and j == len(other):
            yield order, key
        for first in reversed(_choices(meets, i, j, len(other), blocking)):
            if first:
                stack.append((i + 1, j, (*order, True), (*key, sum(meets[i][:j]))))
            else:
                stack.append((i, j + 1, (*order, False), key))


def _first_meeting(one: Footprint, other: Footprint, order: Order) -> int:
    """Return after how many steps a side first does what conflicts with the other, which is still open."""
    i = j = 0
    for number, first in enumerate(order):
        mine, done, open_ = (one[i], other[:j], j < len(other)) if first else (other[j], one[:i], i < len(one))
        if open_ and any(mine.conflicts(rival) for rival in done):
            return number
        i, j = (i + 1, j) if first else (i, j + 1)
    return len(order)


def _earlier(event: Event, rivals: Footprint) -> int:
    """Count the rival's conflicting steps before this one: all that the directions of its pairs can say."""
    return sum(event.conflicts(rival) for rival in rivals)


def _choices(meets: Sequence[Sequence[bool]], i: int, j: int, others: int, blocking: Blocking) -> list[bool]:
    first, second = i < len(meets), j < others
    if not (first and second):
        return [True] if first else [False] if second else []
    if not blocking.may(True, i, j):
        return [False]
    if not blocking.may(False, i, j):
        return [True]
    if not any(meets[i][j:]):
        return [True]
    if not any(row[j] for row in meets[i:]):
        return [False]
    return [True, False]
