"""Moves by recorded judgement: only with it, and only those."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpone_provider.domain import gate as gates
from dpone_provider.domain import occurrence as occurrences
from dpone_provider.domain import publication as publications
from dpone_provider.domain import slot as slots
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.identity import Digest, OccurrenceId, ServiceId
from dpone_provider.domain.occurrence import OccurrenceState
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.publication import PublicationState
from dpone_provider.domain.readmission import (
    Burial,
    Readmission,
    ReadmissionKind,
    require_open,
    require_unburied,
)
from dpone_provider.domain.slot import Claim
from tests.domain import records

OPENED = Readmission(
    readmission_id="1",
    kind=ReadmissionKind.READMIT,
    authority_id="2",
    from_incarnation="a",
    incarnation="b",
    because="a backup",
    by="operator",
)
EVIDENCE = Digest("sha256:" + "0" * 64)


def burial_of(service_id: ServiceId) -> Burial:
    """Return a burial of a service."""
    return Burial(service_id=service_id, because="it burnt", by="operator")


def reason(outcome: object) -> str:
    """Return why it was refused."""
    assert isinstance(outcome, Refused), outcome
    return outcome.problem.reason


@pytest.mark.parametrize("because", ["", "x" * 1001])
def test_a_judgement_has_a_reason(because: str) -> None:
    with pytest.raises(ValueError, match="a reason of"):
        replace(OPENED, because=because)
    with pytest.raises(ValueError, match="a reason of"):
        replace(burial_of(ServiceId("1")), because=because)


def test_they_name_themselves() -> None:
    assert str(OPENED) == "readmit 1 by operator"
    assert str(burial_of(ServiceId("7"))) == "burial of service 7 by operator"


def test_what_only_a_readmission_may_do() -> None:
    assert require_open("it", OPENED) is None
    assert reason(require_open("it", None)) == "readmission_is_open"


def test_what_is_for_a_buried_service_is_refused() -> None:
    assert require_unburied("it", None) is None
    assert reason(require_unburied("it", burial_of(ServiceId("7")))) == "service_is_not_buried"


@pytest.mark.parametrize("state", list(OccurrenceState))
def test_every_occurrence_stops_in_a_readmission_only(state: OccurrenceState) -> None:
    one = records.occurrence(state)
    after = {
        OccurrenceState.REQUESTED: OccurrenceState.WITHDRAWN,
        OccurrenceState.PREPARED: OccurrenceState.RETIRING,
        OccurrenceState.ACTIVE: OccurrenceState.RETIRING,
    }.get(state, state)
    assert occurrences.readmit(one, opened=OPENED) == replace(one, state=after)
    assert reason(occurrences.readmit(one, opened=None)) == "readmission_is_open"


@pytest.mark.parametrize("state", list(GateState))
def test_a_gate_is_closed_by_burial_of_its_own_service_only(state: GateState) -> None:
    one: Gate = records.gate(state)
    own, other = burial_of(one.service_id), burial_of(ServiceId("00000000-0000-4000-8000-000000000000"))
    buried = gates.bury(one, burial=own, sequence=9, evidence=EVIDENCE)
    if state is not GateState.CLOSING:
        assert reason(buried) == "gate_is_closing"
        return
    assert buried == replace(one, state=GateState.CLOSED, closed_sequence=9, evidence_digest=EVIDENCE)
    for none in (None, other):
        assert reason(gates.bury(one, burial=none, sequence=9, evidence=EVIDENCE)) == "service_is_buried"


@pytest.mark.parametrize("state", list(PublicationState))
def test_a_publication_is_doubted_by_judgement_only(state: PublicationState) -> None:
    one = records.publication(state)
    settled = state in publications.SETTLED
    doubted = one if settled else replace(one, state=PublicationState.UNKNOWN)
    assert publications.doubt(one, opened=OPENED, burial=None) == doubted
    assert publications.doubt(one, opened=None, burial=burial_of(one.service_id)) == doubted
    other = burial_of(ServiceId("00000000-0000-4000-8000-000000000000"))
    assert reason(publications.doubt(one, opened=None, burial=other)) == "doubted_by_judgement"
    assert reason(publications.doubt(one, opened=None, burial=None)) == "doubted_by_judgement"


@pytest.mark.parametrize(("floor", "epoch"), [(0, 1), (7, 8)])
def test_an_epoch_grows_from_its_floor(floor: int, epoch: int) -> None:
    free = records.slot(None, 0)
    by = OccurrenceId("new")
    gained = slots.gain(free, by=by, predecessor=None, existing=Claim(free.slot_id, by), floor=floor)
    assert gained == replace(free, owner_id=by, epoch=epoch)
