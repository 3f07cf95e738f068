"""The orders of two transactions: complete, each class once, none that locks exclude."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.interleaving.footprints import NOTHING, Blocking, Event, Footprint, Order, class_of, next_order


def event(kind: str, row: str) -> Event:
    """Return a statement of one kind on one row."""
    things = frozenset([("t", row)])
    return Event(
        name=f"{kind} {row}",
        reads=things if kind == "reads" else NOTHING,
        shares=things if kind == "shares" else NOTHING,
        changes=things if kind == "changes" else NOTHING,
        commits=things if kind == "commits" else NOTHING,
    )


def all_orders(one: Footprint, other: Footprint) -> list[Order]:
    """Return every interleaving, dumbly."""
    length = len(one) + len(other)
    return [tuple(step in places for step in range(length)) for places in combinations(range(length), len(one))]


def found(one: Footprint, other: Footprint, blocking: Blocking) -> list[Order]:
    """Return every order that is chosen."""
    seen: set[object] = set()
    orders = []
    while (order := next_order(one, other, seen, blocking)) is not None:
        orders.append(order)
    return orders


FOOTPRINTS = st.lists(
    st.builds(event, st.sampled_from(["reads", "shares", "changes", "commits"]), st.sampled_from("xyz")), max_size=4
).map(tuple)


@settings(max_examples=150)
@given(FOOTPRINTS, FOOTPRINTS)
def test_each_class_once_and_none_left_out(one: Footprint, other: Footprint) -> None:
    """Compared with every interleaving there is."""
    chosen = [class_of(one, other, order) for order in found(one, other, Blocking())]
    assert len(chosen) == len(set(chosen))
    assert set(chosen) == {class_of(one, other, order) for order in all_orders(one, other)}


def test_what_touches_nothing_in_common_has_one_order() -> None:
    """Whoever is first."""
    assert len(found((event("changes", "x"),), (event("changes", "y"),), Blocking())) == 1


def test_plain_reads_meet_commits_only() -> None:
    """They do not see what is not committed."""
    read, change, commit = event("reads", "x"), event("changes", "x"), event("commits", "x")
    assert not read.conflicts(change)
    assert not change.conflicts(read)
    assert read.conflicts(commit)
    assert commit.conflicts(read)
    assert not event("shares", "x").conflicts(event("shares", "x"))
    assert event("shares", "x").conflicts(change)
    assert not change.conflicts(event("changes", "y"))


def test_a_blocked_side_waits_for_the_others_end() -> None:
    """Once seen blocked, it is not tried again while the other one is open."""
    one = (event("changes", "x"), event("changes", "y"), event("commits", "x"))
    free = found(one, one, Blocking())
    blocking = Blocking(first={(0, 1)}, second={(1, 0)})
    held = found(one, one, blocking)
    assert len(held) < len(free)
    assert held == [(True, True, True, False, False, False), (False, False, False, True, True, True)]
