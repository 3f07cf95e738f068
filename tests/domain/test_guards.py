"""The registry of guards, and what dropping one does."""

from __future__ import annotations

import re

import pytest

from dpone_provider.domain import attempt, gate, occurrence, publication, slot
from dpone_provider.domain.guards import GUARDS, guard, unmet, without

MACHINES = (attempt, gate, occurrence, publication, slot)
ONE, OTHER = GUARDS["occurrence_is_active"], GUARDS["no_live_writer"]


def test_every_guard_says_what_it_is_for() -> None:
    """A snake-case name, invariants of the protocol, a rule in words, a way out."""
    assert MACHINES
    assert len(GUARDS) >= 30
    for name, one in GUARDS.items():
        assert re.fullmatch(r"[a-z][a-z_]+", name)
        assert one.name == name
        assert one.invariants
        assert all(re.fullmatch(r"I([1-9]|1[0-7])", part) for part in one.invariants)
        assert one.says
        assert one.next_command


def test_a_name_is_registered_once() -> None:
    """Twice would make one of them unreachable."""
    with pytest.raises(ValueError, match="twice"):
        guard(ONE.name, "I1", says="again")


def test_the_first_check_that_does_not_hold_refuses() -> None:
    """In the order in which they are given."""
    assert unmet("it", (ONE, True, "a"), (OTHER, True, "b")) is None
    refused = unmet("it", (ONE, True, "a"), (OTHER, False, "b"), (ONE, False, "c"))
    assert refused is not None
    problem = refused.problem
    assert (problem.reason, problem.subject, problem.found) == (OTHER.name, "it", "b")
    assert (problem.allowed, problem.next_command) == (OTHER.says, OTHER.next_command)


def test_a_dropped_guard_does_not_refuse() -> None:
    """Within the block, nested blocks too; the others still do."""
    with without(ONE.name):
        assert unmet("it", (ONE, False, "a")) is None
        assert unmet("it", (OTHER, False, "b")) is not None
        with without(OTHER.name):
            assert unmet("it", (ONE, False, "a"), (OTHER, False, "b")) is None
        assert unmet("it", (OTHER, False, "b")) is not None
    assert unmet("it", (ONE, False, "a")) is not None


def test_a_dropped_guard_is_one_that_exists() -> None:
    """A spelling mistake would drop nothing and prove nothing."""
    with pytest.raises(ValueError, match="no such guard: never, nor_this"), without("nor_this", "never"):
        pass


def test_the_registry_cannot_be_written() -> None:
    """It is filled by the machines' own modules only."""
    with pytest.raises(TypeError):
        GUARDS["mine"] = ONE  # type: ignore[index]
