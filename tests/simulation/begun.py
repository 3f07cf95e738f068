"""What a first promotion leaves behind: made once for each deployment, and gone on from in many worlds."""

from __future__ import annotations

from dataclasses import dataclass

from dpone_provider.application.parent import Parent
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.domain.identity import Digest
from tests.simulation.ledger_rows import Rows
from tests.simulation.world import World


@dataclass(frozen=True, slots=True)
class Begun:
    """The parts of a world that a promotion changes. Nothing of it is ever written: worlds get copies."""

    rows: Rows
    last: int
    marks: dict[str, int]
    held: dict[tuple[str, Digest], Parent]
    pointers: dict[str, CurrentPointerV1]
    journal: tuple[CurrentPointerV1, ...]

    @classmethod
    def by_promoting(cls, parent: Parent) -> Begun:
        """Promote a deployment in a world of its own."""
        world = World()
        world.active(parent)
        ledger, cache = world.ledger, world.cache
        marks = {alias: one.enrolled.mark for alias, one in world.servers.items() if one.enrolled is not None}
        return cls(ledger.rows, ledger.numbers.last, marks, cache.held, cache.pointers, tuple(cache.journal))

    def put_into(self, world: World) -> None:
        """Put it into a world in which nothing has happened."""
        ledger, cache = world.ledger, world.cache
        ledger.rows, ledger.numbers.last = self.rows.copy(), self.last
        for alias, mark in self.marks.items():
            enrolled = world.servers[alias].enrolled
            assert enrolled is not None
            enrolled.mark = mark
        cache.held.update(self.held)
        cache.pointers.update(self.pointers)
        cache.journal += self.journal


_KNOWN: dict[Digest, Begun] = {}


def promoted(world: World, parent: Parent) -> None:
    """Let a deployment be ACTIVE in a world in which nothing has happened."""
    if parent.deployment_id not in _KNOWN:
        _KNOWN[parent.deployment_id] = Begun.by_promoting(parent)
    _KNOWN[parent.deployment_id].put_into(world)
