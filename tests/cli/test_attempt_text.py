"""`dpone attempt show` for a person, of attempts that a simulated world ran."""

from __future__ import annotations

import json

import pytest

from dpone_provider.application.ledger.calls import require
from dpone_provider.application.ports.time import Deadline
from dpone_provider.cli.attempt_text import attempt_text
from tests.simulation.deployments import Work
from tests.simulation.outcomes import succeeded
from tests.simulation.world import FLIGHTS, MARTS, World


@pytest.fixture
def world() -> World:
    """A world with everything promoted."""
    return World()


def text_of(world: World, workload: Work) -> str:
    """Run a workload, and return what is shown of its attempt."""
    binding = world.binding(world.active(), workload)
    succeeded(world.run(binding))
    deadline = Deadline.after(world.clock, 60.0)
    record = world.front_door.record(binding.attempt_id, deadline)
    proofs = require(world.ledger, "read", lambda tx: tx.evidence(binding.attempt_id), deadline)
    return attempt_text(record, [json.loads(one) for one in proofs])


def test_a_transfer(world: World) -> None:
    lines = text_of(world, FLIGHTS).splitlines()
    assert lines[0].endswith(": SUCCEEDED")
    assert [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")] == [
        *("workload", "task", "slots", "gate", "publication", "gates", "outcome"),
    ]
    gate, publication = (
        next(line for line in lines if line.startswith(f"  {word} ")) for word in ("gate", "publication")
    )
    assert gate.endswith("CLOSED (delivered)")
    assert "PUBLISHED by replace, " in publication


def test_a_dbt_run(world: World) -> None:
    assert "  dbt nodes   " in text_of(world, MARTS)
