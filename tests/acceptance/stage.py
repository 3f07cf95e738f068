"""A place whose two deployments are promoted over each other, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpone_provider.application.times import AttemptTimes
from tests.acceptance.commands import cache_sync
from tests.acceptance.wire import Phase, Wire
from tests.acceptance.world import TIMES, Deployment, Place, World

TRANSACTIONS = (
    ("standing", 1),  # whether the authority went back
    ("read", 1),  # what stands
    ("authority", 1),
    ("read", 2),  # the ledger's sequence
    ("read", 3),  # the registered slots
    ("read", 4),  # what another life of the database left
    ("read", 5),  # the slots of others
    ("request", 1),
    ("read", 6),  # what lives of the predecessor
    ("drain", 1),
    ("read", 7),  # again, after it was stopped
    ("read", 8),  # the request
    ("authority", 2),
    ("read", 9),  # the ledger's sequence
    ("prepare", 1),
    ("read back", 1),
    ("read", 10),  # the ledger's sequence, for the marks
    ("activate", 1),
    ("read", 11),  # read back
)
"""Every ledger transaction of a promotion over a predecessor, in order: its name, and how many of it there were."""
WRITES = ("request", "drain", "prepare", "activate")
"""The names of those that change something."""


def moments() -> list[tuple[str, int, Phase]]:
    """Return before each transaction, before each COMMIT that changes something, and after it."""
    found = []
    for script, nth in TRANSACTIONS:
        found += [(script, nth, phase) for phase in (Phase if script in WRITES else (Phase.OPENS,))]
    return found


@dataclass(slots=True)
class Stage:
    """One of the two deployments is ACTIVE; the other is promoted next."""

    place: Place
    deployments: list[Deployment]
    active: int = 0

    @property
    def wire(self) -> Wire:
        """The one in front of the authority."""
        return self.place.world.wires["authority"]

    @property
    def next(self) -> Deployment:
        """The deployment that is not ACTIVE."""
        return self.deployments[1 - self.active]

    def stands(self) -> tuple[Any, ...]:
        """Return everything of the environment in the ledger."""
        rows = self.place.ledger(
            "SELECT occurrence_id, state, generation FROM dpone_control.occurrence WHERE environment = %s ORDER BY 1",
            self.place.name,
        )
        return (*rows, self.place.generation())

    def finish(self, before: int) -> None:
        """Run the very same command again: the promotion is complete, and happened once."""
        self.place.world.up()
        done = cache_sync(self.place, self.next)
        assert done.code == 0, done.everything
        self.active = 1 - self.active
        assert self.place.generation() == before + 1
        assert self.place.states()[-1] == "ACTIVE"
        assert set(self.place.states()[:-1]) <= {"RETIRED", "WITHDRAWN"}
        assert self.deployments[self.active].deployment_id in self.place.pointer.read_text()


@contextmanager
def set_stage(world: World, root: Path, times: AttemptTimes = TIMES) -> Iterator[Stage]:
    """Promote the first of two deployments of one table."""
    place = Place(world, root, times=times)
    place.source("orders")
    first = place.release(place.transfer("orders"))
    second = place.release(place.transfer("orders", timeout_seconds=60))
    place.promote(first)
    yield Stage(place, [first, second])
    world.up()
    assert world.violations() == []
