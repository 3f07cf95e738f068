"""Seeded schedules: no invariant falls, everything comes to rest, a seed replays exactly, a breach is found."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count

import pytest

from dpone_provider.application.ports.gate import SessionObservation
from dpone_provider.domain.identity import Principal
from dpone_provider.domain.outcomes import Unknown
from tests.simulation.gate import SimulatedGate
from tests.simulation.invariants import Violated
from tests.simulation.schedules import FEWEST_FAULTS, MOST_FAULTS, Plant, run
from tests.simulation.soak import KINDS, Figures, play, replayed
from tests.simulation.world import World

SCHEDULES = int(os.environ.get("DPONE_TEST_SCHEDULES", "80"))
"""Those of every run of the unit tests; the suite ``simulation`` runs thousands (`tests.simulation.soak`)."""
PARTS = 4
MOST_SEEDS_TO_FIND_A_BREACH = 200
MOST_SEEDS_TO_MEET_EVERYTHING = 300


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_schedule_violates_anything(part: int) -> None:
    figures = play(range(part, SCHEDULES, PARTS))
    assert not figures.violations, "\n".join(figures.violations)
    assert figures.each.keys() == {*range(FEWEST_FAULTS, MOST_FAULTS + 1)}


def test_every_kind_of_fault_is_really_injected() -> None:
    figures = Figures()
    for seed in count():
        figures.add(run(seed))
        if not figures.never:
            return
        assert seed < MOST_SEEDS_TO_MEET_EVERYTHING, figures.never


def test_a_kind_that_never_comes_up_is_told() -> None:
    figures = Figures()
    assert figures.never == sorted(KINDS)
    figures.faults["CRASH"] += 1
    assert figures.never == sorted(KINDS - {"CRASH"})


def test_a_seed_replays_exactly_in_an_interpreter_that_hashes_otherwise() -> None:
    figures = play(range(6))
    assert replayed(figures, 0, 6) == 6
    figures.digests[0] = "another"
    assert replayed(figures, 0, 6) == 5


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
