"""The attempt's machine: admission, sealing, reconciliation."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from dpone_provider.domain import attempt as machine
from dpone_provider.domain.attempt import EDGES, LIVE, Attempt, AttemptState, Proof, ProofKind
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.guards import without
from dpone_provider.domain.identity import Digest, GateName, OccurrenceId, digest_of
from dpone_provider.domain.occurrence import OccurrenceState
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.slot import Slot
from tests.domain.records import (
    FIRST,
    OTHER_SERVICE,
    PACK,
    PLAN,
    SECOND,
    SERVICE,
    attempt,
    gate,
    occurrence,
    principal,
    proof,
    reason,
    slot,
)

A = AttemptState
ENDS = (A.SUCCEEDED, A.FAILED, A.COMMIT_UNKNOWN)


def admitted(
    new: Attempt | None = None,
    *,
    state: OccurrenceState = OccurrenceState.ACTIVE,
    digests: tuple[Digest, Digest] | None = (PACK, PLAN),
    run: OccurrenceId | None = None,
    slots: tuple[Slot, ...] = (slot(),),
    newest: int | None = None,
    writers: tuple[Attempt, ...] = (),
    readers: tuple[Attempt, ...] = (),
    spent: bool = False,
) -> Attempt | Refused:
    """Admit an attempt of the first occurrence; nothing is in its way unless the test says so."""
    return machine.admit(
        new or attempt(try_number=2),
        occurrence=occurrence(state),
        requested_digests=digests,
        run_occurrence=run,
        slots=slots,
        newest_try=newest,
        live_writers=writers,
        running_readers=readers,
        spent=spent,
    )


def test_an_attempt_that_a_target_knows_from_before_is_refused() -> None:
    """The ledger went back, and has forgotten it."""
    assert reason(admitted(spent=True)) == "attempt_is_not_spent"


def test_an_attempt_that_nothing_is_in_the_way_of_is_admitted() -> None:
    """Also as the second of its run, and after an earlier try."""
    assert admitted() == attempt(try_number=2)
    assert admitted(run=FIRST, newest=1) == attempt(try_number=2)


@pytest.mark.parametrize("state", [one for one in OccurrenceState if one is not OccurrenceState.ACTIVE])
def test_only_an_active_occurrence_admits(state: OccurrenceState) -> None:
    """I5."""
    assert reason(admitted(state=state)) == "occurrence_is_active"


def test_what_refuses_an_admission() -> None:
    """Each guard by itself."""
    other = digest_of(b"other")
    assert reason(admitted(run=SECOND)) == "run_of_this_occurrence"
    for digests in (None, (other, PLAN), (PACK, other)):
        assert reason(admitted(digests=digests)) == "digests_as_requested"
    for newest in (2, 3):
        assert reason(admitted(newest=newest)) == "not_superseded"
    for slots in ((), (slot(SECOND),), (slot(epoch=2),), (slot(None),), (slot(name="planes"),)):
        assert reason(admitted(slots=slots)) == "epochs_current"
    assert reason(admitted(writers=(attempt(),))) == "no_live_writer"
    assert reason(admitted(readers=(attempt(),))) == "no_running_reader"


def test_a_refusal_names_who_is_in_the_way() -> None:
    """By attempt, state, workload, run and try."""
    refused = admitted(writers=(attempt(A.COMMIT_UNKNOWN),))
    assert isinstance(refused, Refused)
    assert "(COMMIT_UNKNOWN) of load [run manual, try 1]" in refused.problem.found


@pytest.mark.parametrize("state", A)
def test_power_needs_a_running_attempt(state: A) -> None:
    """I6."""
    assert reason(machine.require_running(attempt(state))) == ("" if state is A.RUNNING else "attempt_is_running")


@pytest.mark.parametrize(("state", "end"), list(product(A, ENDS)))
def test_seal_and_reconcile_from_each_state(state: A, end: A) -> None:
    """RUNNING is sealed, COMMIT_UNKNOWN reconciled to what is known; nothing else moves."""
    sealed = machine.seal(attempt(state), end, gates=[gate()], proof=proof())
    assert sealed == attempt(end) if state is A.RUNNING else reason(sealed) == "attempt_is_running"
    settled = machine.reconcile(attempt(state), end, gates=[gate()], proof=proof())
    if state is not A.COMMIT_UNKNOWN:
        assert reason(settled) == "attempt_is_unknown"
    elif end is A.COMMIT_UNKNOWN:
        assert reason(settled) == "no_commit_unknown"
    else:
        assert settled == attempt(end)


def test_the_transitions_are_the_edges() -> None:
    """Out of RUNNING by sealing, out of COMMIT_UNKNOWN by reconciliation."""
    sealed = {(A.RUNNING, end) for end in ENDS}
    assert sealed | {(A.COMMIT_UNKNOWN, end) for end in ENDS if end is not A.COMMIT_UNKNOWN} == EDGES
    assert {A.RUNNING, A.COMMIT_UNKNOWN} == LIVE


def test_running_is_no_end() -> None:
    """A fault of the caller, not of the world."""
    with pytest.raises(ValueError, match="end state"):
        machine.seal(attempt(), A.RUNNING, gates=[gate()], proof=proof())


OTHER_GATE = gate(service=OTHER_SERVICE, closed_sequence=20)
TWO = (SERVICE, OTHER_SERVICE)
NAMES = (principal().gate_name, principal(OTHER_SERVICE).gate_name)


@pytest.mark.parametrize(
    ("services", "gates", "evidence", "refused"),
    [
        (TWO, (gate(), OTHER_GATE), proof(21, names=NAMES), ""),
        ((SERVICE,), (), proof(), "gate_for_every_service"),
        (TWO, (gate(),), proof(), "gate_for_every_service"),
        ((SERVICE,), (gate(GateState.JOURNALED),), proof(), "gates_closed"),
        ((SERVICE,), (gate(GateState.READY),), proof(), "gates_closed"),
        ((SERVICE,), (gate(GateState.CLOSING),), proof(), "gates_closed"),
        (TWO, (gate(), gate(GateState.CLOSING, service=OTHER_SERVICE)), proof(), "gates_closed"),
        ((SERVICE,), (gate(),), None, "proof_read_after_gates"),
        ((SERVICE,), (gate(),), proof(10), "proof_read_after_gates"),
        ((SERVICE,), (gate(),), proof(9), "proof_read_after_gates"),
        (TWO, (gate(), OTHER_GATE), proof(15, names=NAMES), "proof_read_after_gates"),
        # The login has one name on both services; a proof that names the gate of one has not followed the other.
        (TWO, (gate(), OTHER_GATE), proof(21, names=NAMES[:1]), "proof_read_after_gates"),
        (TWO, (gate(), OTHER_GATE), proof(21, names=NAMES[1:]), "proof_read_after_gates"),
        ((SERVICE,), (gate(),), proof(kind=ProofKind.GATES_CLOSED), "proof_read_after_gates"),
        ((SERVICE,), (gate(),), proof(names=()), "proof_read_after_gates"),
        ((SERVICE,), (gate(),), proof(names=(NAMES[0], GateName(SERVICE, "dpone_v3_x"))), "proof_read_after_gates"),
        (
            (SERVICE,),
            (gate(),),
            replace(proof(), attempt_id=attempt(try_number=2).attempt_id),
            "proof_read_after_gates",
        ),
    ],
)
def test_an_end_wants_closed_gates_and_a_proof_after_them(
    services: tuple[str, ...], gates: tuple[Gate, ...], evidence: Proof | None, refused: str
) -> None:
    """I9, for sealing and for reconciliation."""
    running = attempt(services=services)  # type: ignore[arg-type]
    assert reason(machine.seal(running, A.FAILED, gates=gates, proof=evidence)) == refused
    unknown = replace(running, state=A.COMMIT_UNKNOWN)
    assert reason(machine.reconcile(unknown, A.FAILED, gates=gates, proof=evidence)) == refused


def test_an_open_gate_has_no_number_to_compare() -> None:
    """The guard on open gates refuses it, and no other one: each condition has one guard."""
    with without("gates_closed"):
        sealed = machine.seal(attempt(), A.FAILED, gates=[gate(GateState.CLOSING)], proof=proof())
    assert sealed == attempt(A.FAILED)


def test_a_wrong_attempt_cannot_be_built() -> None:
    """Another binding's id, no service, no slot."""
    with pytest.raises(ValueError, match="binding"):
        replace(attempt(), attempt_id=attempt(try_number=2).attempt_id)
    with pytest.raises(ValueError, match="at least one"):
        attempt(services=())
    with pytest.raises(ValueError, match="at least one"):
        attempt(writes=())
