"""An authority that goes back in a simulated world, and the use cases that an operator then has."""

from __future__ import annotations

from dataclasses import dataclass, field

from dpone_provider.application.front_door import FrontDoor
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.readmission import Readmitted, Readmitter
from dpone_provider.application.standing import LedgerStanding, StandingCheck, targets_of
from dpone_provider.application.writing_off import Buried, Forgetter, Forgotten, Undertaker
from dpone_provider.domain.identity import ServiceId
from tests.simulation.ledger_rows import Rows
from tests.simulation.world import World

BECAUSE = "told by a test"
OPERATOR = "operator"


@dataclass(slots=True)
class Backup:
    """The ledger's rows and its sequence at one instant."""

    world: World
    rows: Rows = field(init=False)
    last: int = field(init=False)
    incarnation: str = field(init=False)

    def __post_init__(self) -> None:
        """Take it."""
        ledger = self.world.ledger
        self.rows, self.last, self.incarnation = ledger.rows.copy(), ledger.numbers.last, ledger.says.incarnation

    def restore(self, *, into: str | None = None) -> None:
        """Put it back, in another incarnation if one is given; the servers have seen what they have seen."""
        ledger = self.world.ledger
        ledger.rows, ledger.numbers.last = self.rows.copy(), self.last
        if into is not None:
            ledger.says.incarnation = into


def standing(world: World) -> LedgerStanding:
    """Look at how the authority stands."""
    parents = world.cache.held.values()
    connections = [one for parent in parents for one in parent.registry.connections]
    check = StandingCheck(
        ledger=world.ledger,
        targets=lambda: targets_of(connections),
        witness=world.witness,
    )
    return check.look()


def readmit(world: World, *, take_over: bool = False, actor: str = OPERATOR) -> Readmitted:
    """Readmit the authority, as ``actor``."""
    ledger = world.ledger.readmitting()
    readmitter = Readmitter(
        ledger=ledger,
        front_door=FrontDoor(ledger=ledger, gates=world.gates, clock=world.clock, grace=world.grace),
        gates=world.gates,
        witness_of=lambda target: world.witness(target.connection),
        generations=lambda: _generations(world),
        clock=world.clock,
        entropy=world.entropy,
        by="dpone_controller",
    )
    with world.actors.acting(actor):
        return readmitter.readmit(standing(world), BECAUSE, take_over=take_over, told=world.told.append)


def forget(world: World, *, actor: str = OPERATOR) -> Forgotten:
    """Make the authority forget, as ``actor``."""
    forgetter = Forgetter(
        ledger=world.ledger.readmitting(), clock=world.clock, entropy=world.entropy, by="dpone_controller"
    )
    with world.actors.acting(actor):
        return forgetter.forget(standing(world), BECAUSE)


def bury(world: World, service_id: ServiceId, *, actor: str = OPERATOR) -> Buried:
    """Bury a service, as ``actor``."""
    with world.actors.acting(actor):
        there = {one.allegiance.service_id for one in standing(world).targets if one.allegiance is not None}
        undertaker = Undertaker(
            ledger=world.ledger,
            front_door=world.front_door,
            answers=there.__contains__,
            clock=world.clock,
            by="dpone_controller",
        )
        return undertaker.bury(service_id, BECAUSE, world.told.append)


def revive(world: World) -> None:
    """Let a process that crashed be started again, without the faults that were planned."""
    world.actors.dead.discard(OPERATOR)
    world.wire.hooks.clear()


def another(incarnation: str) -> str:
    """Return the next timeline of an incarnation."""
    return incarnation[:-1] + "2"


def _generations(world: World) -> tuple[tuple[str, int], ...]:
    environments = sorted({environment for environment, _ in world.cache.held})
    pointers = {name: settled(world.cache.pointer(name)) for name in environments}
    return tuple((name, one.generation) for name, one in pointers.items() if one is not None)
