"""Seeded schedules: no invariant falls, everything comes to rest, a seed replays exactly, a breach is found."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.domain.identity import Principal
from dpone_provider.domain.outcomes import Unknown
from tests.simulation.gate import SimulatedGate
from tests.simulation.invariants import Violated
from tests.simulation.schedules import Plant, run
from tests.simulation.soak import play
from tests.simulation.world import World

SCHEDULES = int(os.environ.get("DPONE_TEST_SCHEDULES", "200"))
PARTS = 8
MOST_SEEDS_TO_FIND_A_BREACH = 200


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_schedule_violates_anything(part: int) -> None:
    figures = play(range(part, SCHEDULES, PARTS))
    assert not figures.violations, "\n".join(figures.violations)


def test_a_seed_replays_exactly() -> None:
    for seed in range(12):
        assert run(seed) == run(seed)


class LyingGate(SimulatedGate):
    """Sees nobody, whoever is there."""

    def observe(self, principal: Principal) -> SessionObservation | Unknown:
        """Lie."""
        seen = SimulatedGate.observe(self, principal)
        if isinstance(seen, Unknown):
            return seen
        return replace(seen, sessions=(), half_open=(), transactions=())


def lying(world: World) -> None:
    """Let every gate lie about quiescence."""
    for service_id, gate in world.gates.items():
        assert isinstance(gate, SimulatedGate)
        world.gates[service_id] = LyingGate(gate.server, gate.wire, gate.entropy)


@pytest.mark.parametrize("plant", [lying], ids=["quiescence lies"])
def test_a_breach_is_found(plant: Plant) -> None:
    """What the ledger cannot know, the watch sees."""
    for seed in range(MOST_SEEDS_TO_FIND_A_BREACH):
        try:
            run(seed, plant)
        except Violated as error:
            assert "I8" in str(error) or "I11" in str(error), error  # noqa: PT017
            return
    raise AssertionError("never found")
