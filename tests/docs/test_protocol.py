"""The explanation of the protocol agrees with the state machines, the registry of guards and the control schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, product

import pytest

from dpone_provider.domain import attempt, gate, occurrence, publication
from tests.docs.pages import page
from tests.docs.reference_invariants import (
    INVARIANTS,
    PLACES,
    guards_of,
    is_defined,
    laws,
    registry,
    schema_objects,
    trigger_functions,
)

PROTOCOL = page("explanation-protocol.md")
MACHINES = {
    "occurrence": occurrence.EDGES,
    "attempt": attempt.EDGES,
    "gate": gate.EDGES,
    "publication": publication.EDGES,
}


def shown_edges() -> Iterator[tuple[str, str, str]]:
    """The edges of the drawing: machine, before, after."""
    _, _, rest = PROTOCOL.text.partition("## The state machines")
    machine = ""
    for line in rest.split("```")[1].strip().splitlines():
        named = re.match(r"[a-z]+", line)
        machine = named[0] if named else machine
        stages = [stage.split(" | ") for stage in line.removeprefix(machine if named else "").strip().split(" → ")]
        for before, after in pairwise(stages):
            yield from ((machine, first, second) for first, second in product(before, after))


@pytest.mark.parametrize("machine", MACHINES)
def test_the_drawing_has_exactly_the_edges_of_the_code(machine: str) -> None:
    shown = {(before, after) for name, before, after in shown_edges() if name == machine}
    assert shown == {(str(before), str(after)) for before, after in MACHINES[machine]}


def test_every_invariant_is_explained_once() -> None:
    rows = re.findall(r"^\| (I\d+) \| \S.*? \| \S.*? \|$", PROTOCOL.text, re.MULTILINE)
    assert tuple(row for row in rows if row in INVARIANTS)[: len(INVARIANTS)] == INVARIANTS


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_every_invariant_is_enforced_somewhere(invariant: str) -> None:
    _, _, rest = PROTOCOL.text.partition("Some of it no table can hold:")
    told = re.findall(r"^- (.*?)(?= is |: | are )", rest.partition("\n## ")[0], re.MULTILINE)
    elsewhere = {name for each in told for name in re.findall(r"I\d+", each)}
    assert guards_of(invariant) or schema_objects().get(invariant) or invariant in elsewhere


@pytest.mark.parametrize("place", sorted({place for places in PLACES.values() for place in places}))
def test_the_steps_that_keep_an_invariant_are_where_it_is_said(place: str) -> None:
    assert is_defined(place)


def test_a_step_that_is_not_there_is_noticed() -> None:
    assert not is_defined("domain/slot.py: lose")
    assert not is_defined("sql/postgres/020_gate.sql: on_logout")


def test_every_invariant_has_its_steps() -> None:
    assert tuple(PLACES) == INVARIANTS


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_the_trigger_functions_that_hold_an_invariant_are_run_by_triggers(invariant: str) -> None:
    functions = {name for name in schema_objects().get(invariant, ()) if name.startswith(("guard_", "settle_"))}
    assert functions <= trigger_functions()


def test_guards_name_invariants_that_exist() -> None:
    named = {name for guard in registry().values() for name in guard.invariants}
    assert named <= set(INVARIANTS)
    assert all(guard.invariants for guard in registry().values())


def test_the_control_schema_names_invariants_that_exist() -> None:
    assert set(schema_objects()) <= set(INVARIANTS)


def test_a_law_of_the_triggers_that_is_a_guard_too_has_the_guards_name() -> None:
    """What both halves refuse is refused under one name, so that one line of the reference explains it."""
    shared = laws() & set(registry())
    assert {"occurrence_is_active", "epochs_current", "gates_closed", "proof_read_after_gates"} <= shared
