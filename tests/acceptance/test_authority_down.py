"""The authority is down, cut off, hanging or slow at each step of cache-sync.

At each step the command ends with its documented exit code, says truthfully whether state may have changed, and names
the command that goes on; that command then completes the promotion, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dpone_provider.application.promotion import Ended, PromotionReport
from dpone_provider.domain.outcomes import StateChange, Unknown
from tests.acceptance.commands import Said, cache_sync, dpone
from tests.acceptance.stage import TRANSACTIONS, WRITES, Stage, moments, set_stage
from tests.acceptance.wire import Phase
from tests.acceptance.world import TIMES, World

OPENS, COMMITS, ANSWERED = Phase.OPENS, Phase.COMMITS, Phase.ANSWERED


@pytest.fixture(scope="module")
def stage(the_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with set_stage(the_world, tmp_path_factory.mktemp("authority"), replace(TIMES, ledger=1.0)) as made:
        yield made


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
    assert moment.came()
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
    assert moment.came()
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
    assert moment.came()
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
