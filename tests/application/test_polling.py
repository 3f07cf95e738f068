"""How often something is looked at: often at first, more rarely the longer it lasts, never beyond the deadline."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dpone_provider.application.polling import Poll
from dpone_provider.application.ports.time import Deadline
from tests.simulation.actors import Actors
from tests.simulation.clock import SimulatedClock


@pytest.fixture
def clock() -> SimulatedClock:
    """A clock that moves when somebody waits."""
    return SimulatedClock(Actors())


def looks(clock: SimulatedClock, seconds: float) -> list[float]:
    """Return when a wait of so many seconds looks, from its beginning."""
    began, deadline = clock.monotonic(), Deadline.after(clock, seconds)
    poll = Poll.begin(clock, 0.25, 2.0)
    times = [0.0]
    while not deadline.passed():
        poll.pause(deadline)
        times.append(clock.monotonic() - began)
    return times


def test_pauses_grow_from_the_shortest_to_the_longest(clock: SimulatedClock) -> None:
    times = looks(clock, 100.0)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[0] == pytest.approx(0.25)
    assert max(pauses) == pytest.approx(2.0)
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(pauses[:-1]))


def test_a_change_is_seen_later_by_a_tenth_of_the_wait_at_most(clock: SimulatedClock) -> None:
    for earlier, later in pairwise(looks(clock, 100.0)):
        assert later - earlier <= max(0.25, earlier / 10) + 1e-9


def test_the_last_look_is_at_the_deadline(clock: SimulatedClock) -> None:
    assert looks(clock, 33.3)[-1] == pytest.approx(33.3)
    assert looks(clock, 0.1) == pytest.approx([0.0, 0.1])
