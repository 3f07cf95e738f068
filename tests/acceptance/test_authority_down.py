"""The authority is down, cut off, hanging or slow at each step of cache-sync.

At each step the command ends with its documented exit code, says truthfully whether state may have changed, and names
the command that goes on; that command then completes the promotion, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from dpone_provider.application.promotion import Ended, PromotionReport
from dpone_provider.domain.outcomes import StateChange, Unknown
from tests.acceptance.commands import Said, cache_sync, dpone
from tests.acceptance.wire import Phase, Wire
from tests.acceptance.world import TIMES, Deployment, Place, World

OPENS, COMMITS, ANSWERED = Phase.OPENS, Phase.COMMITS, Phase.ANSWERED

TRANSACTIONS = (
    ("read", 1),  # what stands
    ("authority", 1),
    ("read", 2),  # the ledger's sequence
    ("read", 3),  # the registered slots
    ("read", 4),  # the slots of others
    ("request", 1),
    ("read", 5),  # what lives of the predecessor
    ("drain", 1),
    ("read", 6),  # again, after it was stopped
    ("read", 7),  # the request
    ("authority", 2),
    ("read", 8),  # the ledger's sequence
    ("prepare", 1),
    ("read back", 1),
    ("read", 9),  # the ledger's sequence, for the marks
    ("activate", 1),
    ("read", 10),  # read back
)
"""Every ledger transaction of a promotion over a predecessor, in order: its name, and how many of it there were."""
WRITES = ("request", "drain", "prepare", "activate")


@dataclass(slots=True)
class Stage:
    """A place whose two deployments are promoted over each other, again and again."""

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
        assert self.place.pointer.read_text().find(self.deployments[self.active].deployment_id) >= 0


@pytest.fixture(scope="module")
def stage(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    place = Place(the_world, tmp_path_factory.mktemp("authority"), times=replace(TIMES, ledger=1.0))
    place.source("orders")
    first = place.release(place.transfer("orders"))
    second = place.release(place.transfer("orders", timeout_seconds=60))
    place.promote(first)
    yield Stage(place, [first, second])
    the_world.up()
    assert the_world.violations() == []


def test_a_promotion_is_made_of_these_transactions(stage: Stage) -> None:
    """So that no step is forgotten below."""
    before = stage.place.generation()
    stage.wire.seen.clear()
    stage.finish(before)
    counts: dict[str, int] = {}
    opened = []
    for script, phase in stage.wire.seen:
        if phase is OPENS:
            counts[script] = counts.get(script, 0) + 1
            opened.append((script, counts[script]))
    assert tuple(opened) == TRANSACTIONS


def moments() -> list[tuple[str, int, Phase]]:
    """Return before each transaction, before each COMMIT that changes something, and after it."""
    found = []
    for script, nth in TRANSACTIONS:
        found += [(script, nth, phase) for phase in (Phase if script in WRITES else (OPENS,))]
    return found


def told_truly(said: Said, changed: bool) -> None:
    """Check the exit code, and what is said of state and of the next command."""
    assert said.err.count("unknown: ") == 1, said.err
    assert said.code == (13 if "unknown: activation_incomplete" in said.err else 12), said.everything
    state = said.err.split("state:   ")[1].split("\n")[0]
    assert not (changed and state == StateChange.NONE), said.err
    if state == StateChange.SAID:
        assert "now stands" in said.err or "activation_incomplete" in said.err
    following = said.err.split("next:    ")[1]
    assert "same" in following or "cache-sync" in following, said.err


@pytest.mark.parametrize(("script", "nth", "phase"), moments())
def test_down(stage: Stage, script: str, nth: int, phase: Phase) -> None:
    before, generation = stage.stands(), stage.place.generation()
    moment = stage.wire.at(script, phase, stage.wire.down, nth=nth)
    said = cache_sync(stage.place, stage.next)
    assert moment.fired.is_set()
    after = stage.stands()
    told_truly(said, after != before)
    stage.finish(generation)


@pytest.mark.parametrize("phase", [COMMITS, ANSWERED])
@pytest.mark.parametrize("script", WRITES)
def test_cut_off_at_a_commit(stage: Stage, script: str, phase: Phase) -> None:
    """The connection ends; the authority itself goes on, so what stands can be said."""
    before, generation = stage.stands(), stage.place.generation()
    moment = stage.wire.at(script, phase, stage.wire.cut)
    said = cache_sync(stage.place, stage.next)
    assert moment.fired.is_set()
    told_truly(said, stage.stands() != before)
    assert "nothing changed" not in said.err
    stage.finish(generation)


@pytest.mark.parametrize(
    ("script", "phase"), [("read", OPENS), ("request", COMMITS), ("prepare", COMMITS), ("activate", ANSWERED)]
)
def test_a_connection_that_hangs(stage: Stage, script: str, phase: Phase) -> None:
    """It is given up after its deadline."""
    before, generation = stage.stands(), stage.place.generation()
    moment = stage.wire.at(script, phase, stage.wire.hang)
    outcome = stage.place.try_to_promote(stage.next)
    assert moment.fired.is_set()
    assert isinstance(outcome, Unknown), outcome
    assert not (stage.stands() != before and outcome.change is StateChange.NONE)
    stage.finish(generation)


def test_a_server_that_falls_silent(stage: Stage) -> None:
    generation = stage.place.generation()
    stage.wire.at("prepare", COMMITS, stage.wire.silent)
    outcome = stage.place.try_to_promote(stage.next)
    assert isinstance(outcome, Unknown), outcome
    assert outcome.change is StateChange.MAYBE
    stage.finish(generation)


def test_an_authority_that_answers_slowly(stage: Stage) -> None:
    stage.wire.slow(0.02)
    outcome = stage.place.try_to_promote(stage.next)
    assert isinstance(outcome, PromotionReport), outcome
    assert outcome.ended is Ended.ACTIVATED
    stage.active = 1 - stage.active
    stage.place.world.up()


def test_every_other_command_says_that_it_is_down(stage: Stage) -> None:
    before = stage.stands()
    occurrence = before[0][0]
    stage.wire.down()
    for arguments in (
        ("status",),
        ("recover",),
        ("recover", "--attempt", "0" * 64),
        ("occurrence", "list"),
        ("occurrence", "withdraw", str(occurrence)),
        ("occurrence", "abandon", str(occurrence)),
        ("occurrence", "retire", str(occurrence)),
        ("attempt", "list"),
        ("attempt", "show", "0" * 64),
        ("attempt", "reconcile", "0" * 64),
    ):
        said = dpone(stage.place, *arguments, "--format", "json")
        assert (said.code, said.json["reason"]) == (12, "authority_unreachable"), arguments
        assert said.json["state_change"] == "nothing changed"
    stage.place.world.up()
    assert stage.stands() == before
