"""The slot's machine: claim, gain, release; the epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.domain import slot as machine
from dpone_provider.domain.identity import OccurrenceId
from dpone_provider.domain.slot import Claim, Slot
from tests.domain.records import FIRST, SECOND, THIRD, reason, slot


@pytest.mark.parametrize(
    ("owner", "existing", "refused"),
    [
        (None, None, ""),
        (FIRST, None, ""),
        (None, SECOND, ""),
        (THIRD, None, "slot_free_or_predecessors"),
        (None, THIRD, "slot_unclaimed"),
        (SECOND, None, "slot_free_or_predecessors"),
    ],
)
def test_claim(owner: OccurrenceId | None, existing: OccurrenceId | None, refused: str) -> None:
    """Free or the predecessor's, and nobody else's claim."""
    one = slot(owner, epoch=1)
    standing = None if existing is None else Claim(one.slot_id, existing)
    outcome = machine.claim(one, by=SECOND, predecessor=FIRST, existing=standing)
    assert reason(outcome) == refused
    if not refused:
        assert outcome == Claim(one.slot_id, SECOND)


def test_new_slots_stand_beside_compared_ones_only() -> None:
    """I1: what was registered after the observation may be the same relation under another spelling."""
    one, other = slot().relation, slot(name="Flights").relation
    assert machine.register("warehouse", registered={one}, compared={one, other}) is None
    refused = machine.register("warehouse", registered={one, other}, compared={one})
    assert reason(refused) == "slots_registered_meanwhile"


@pytest.mark.parametrize("owner", [None, FIRST])
def test_gain_grows_the_epoch_by_one(owner: OccurrenceId | None) -> None:
    """From nobody or from the predecessor, by the claimant."""
    one = slot(owner, epoch=3)
    outcome = machine.gain(one, by=SECOND, predecessor=FIRST, existing=Claim(one.slot_id, SECOND))
    assert outcome == replace(one, owner_id=SECOND, epoch=4)


def test_gain_wants_its_own_claim_and_no_third_owner() -> None:
    """I1, I2."""
    one = slot(FIRST)
    assert reason(machine.gain(one, by=SECOND, predecessor=FIRST, existing=None)) == "slot_claimed_by_it"
    other = Claim(one.slot_id, THIRD)
    assert reason(machine.gain(one, by=SECOND, predecessor=FIRST, existing=other)) == "slot_claimed_by_it"
    taken = slot(THIRD)
    mine = Claim(taken.slot_id, SECOND)
    assert reason(machine.gain(taken, by=SECOND, predecessor=FIRST, existing=mine)) == "slot_free_or_predecessors"


def test_release_keeps_the_epoch() -> None:
    """By the owner alone."""
    assert machine.release(slot(FIRST, epoch=5), by=FIRST) == slot(None, epoch=5)
    for owner in (None, SECOND):
        assert reason(machine.release(slot(owner, epoch=5), by=FIRST)) == "slot_owned_by_it"


@given(st.lists(st.tuples(st.sampled_from(["gain", "release"]), st.sampled_from([FIRST, SECOND, THIRD])), max_size=12))
def test_epochs_count_the_owners(steps: list[tuple[str, OccurrenceId]]) -> None:
    """Whatever is tried: the epoch is the number of gains, and only grows."""
    current, gains = slot(None, epoch=0), 0
    for what, who in steps:
        before = current
        outcome = (
            machine.gain(current, by=who, predecessor=current.owner_id, existing=Claim(current.slot_id, who))
            if what == "gain"
            else machine.release(current, by=who)
        )
        if isinstance(outcome, Slot):
            gains += what == "gain"
            current = outcome
        assert current.epoch == gains
        assert current.epoch >= before.epoch


def test_a_wrong_slot_cannot_be_built() -> None:
    """Another relation's id, a negative epoch, an owner that never gained one."""
    with pytest.raises(ValueError, match="not that of"):
        replace(slot(), slot_id=slot(name="planes").slot_id)
    for owner, epoch in ((None, -1), (FIRST, 0)):
        with pytest.raises(ValueError, match="at epoch"):
            slot(owner, epoch=epoch)


def test_a_name_for_messages() -> None:
    """Schema and name."""
    assert str(slot()) == "slot stage.flights"
