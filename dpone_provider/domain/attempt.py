"""The attempt: one try of one workload. ``RUNNING → SUCCEEDED | FAILED | COMMIT_UNKNOWN``; unknown only by evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.guards import Guard, guard, unmet
from dpone_provider.domain.identity import AttemptBinding, AttemptId, Digest, GateName, OccurrenceId, ServiceId, SlotId
from dpone_provider.domain.occurrence import ACTIVE_ONLY, NO_UNKNOWN, Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.slot import Slot


class AttemptState(StrEnum):
    """The closed set of states."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    COMMIT_UNKNOWN = "COMMIT_UNKNOWN"


LIVE = frozenset({AttemptState.RUNNING, AttemptState.COMMIT_UNKNOWN})

EDGES = frozenset(
    {
        (AttemptState.RUNNING, AttemptState.SUCCEEDED),
        (AttemptState.RUNNING, AttemptState.FAILED),
        (AttemptState.RUNNING, AttemptState.COMMIT_UNKNOWN),
        (AttemptState.COMMIT_UNKNOWN, AttemptState.SUCCEEDED),
        (AttemptState.COMMIT_UNKNOWN, AttemptState.FAILED),
    }
)
"""Every edge that exists; the ledger's trigger holds the same table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One row of the ledger with its slots. ``writes`` are (slot, epoch) pairs in slot order, ``reads`` slot ids.

    ``services`` are those that it writes and so needs a gate for. ``ledger_sequence`` orders admissions.
    """

    attempt_id: AttemptId
    binding: AttemptBinding
    environment: str
    services: tuple[ServiceId, ...]
    writes: tuple[tuple[SlotId, int], ...]
    reads: tuple[SlotId, ...]
    state: AttemptState
    ledger_sequence: int

    def __post_init__(self) -> None:
        """Refuse a record whose id is not its binding's, or that writes nothing."""
        if self.attempt_id != self.binding.attempt_id:
            raise ValueError(f"attempt id {self.attempt_id} is not that of its binding")
        if not self.services or not self.writes:
            raise ValueError("an attempt writes at least one slot on one service")

    def __str__(self) -> str:
        """Return a name for messages."""
        tried = self.binding.airflow
        return (
            f"attempt {self.attempt_id[:12]} ({self.state}) of {self.binding.workload_id}"
            f" [run {tried.run_id}, try {tried.try_number}]"
        )


class ProofKind(StrEnum):
    """What a proof proves."""

    GATES_CLOSED = "GATES_CLOSED"
    OUTCOME = "OUTCOME"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Evidence in the ledger: a document's digest with the ledger sequence at which it was entered.

    ``names_gates`` are the gates whose closing the observation followed (OUTCOME) or shows (GATES_CLOSED).
    """

    attempt_id: AttemptId
    kind: ProofKind
    evidence_digest: Digest
    names_gates: tuple[GateName, ...]
    ledger_sequence: int


RUN_OF_THIS_OCCURRENCE = guard(
    "run_of_this_occurrence",
    "I17",
    says="a run whose attempts all belong to the ACTIVE occurrence",
    next_command="trigger a new run",
)
EPOCHS_CURRENT = guard(
    "epochs_current",
    "I5",
    says="slots owned by the attempt's occurrence at its epochs",
    next_command="trigger a new run",
)
DIGESTS_AS_REQUESTED = guard(
    "digests_as_requested",
    "I13",
    says="the pack and plan digests of the request",
    next_command="trigger a new run; if it repeats, run cache-sync again on this machine",
)
NOT_SUPERSEDED = guard(
    "not_superseded",
    "I3",
    "I4",
    says="the newest try of the task",
    next_command="nothing: a later try of the same task was admitted",
)
NOT_SPENT = guard(
    "attempt_is_not_spent",
    "I4",
    says="an attempt that no target knows from before the ledger went back",
    next_command="trigger a new run",
)
NO_LIVE_WRITER = guard("no_live_writer", "I3", says="no live attempt that writes a slot which this one writes or reads")
NO_RUNNING_READER = guard("no_running_reader", "I3", says="no running attempt that reads a slot which this one writes")
RUNNING_ONLY = guard("attempt_is_running", "I6", "I9", says="a RUNNING attempt", next_command="dpone attempt show ID")
UNKNOWN_ONLY = guard(
    "attempt_is_unknown", "I9", "I10", says="an attempt in COMMIT_UNKNOWN", next_command="dpone attempt show ID"
)
GATE_PER_SERVICE = guard(
    "gate_for_every_service",
    "I9",
    says="a gate row for every service that the attempt writes",
    next_command="dpone recover --attempt ID",
)
GATES_CLOSED = guard("gates_closed", "I8", "I9", says="every gate CLOSED", next_command="dpone recover --attempt ID")
PROOF_AFTER_GATES = guard(
    "proof_read_after_gates",
    "I9",
    says="an outcome proof that was entered after every gate was CLOSED and names them",
    next_command="dpone recover --attempt ID",
)


def admit(
    new: Attempt,
    *,
    occurrence: Occurrence,
    requested_digests: tuple[Digest, Digest] | None,
    run_occurrence: OccurrenceId | None,
    slots: Sequence[Slot],
    newest_try: int | None,
    live_writers: Sequence[Attempt],
    running_readers: Sequence[Attempt],
    spent: bool = False,
) -> Attempt | Refused:
    """Accept ``new`` as RUNNING.

    ``slots`` are the rows that it writes, locked; ``run_occurrence`` is what earlier attempts of the run belonged to;
    ``newest_try`` the highest try number of the task admitted so far; ``live_writers`` write a slot that this one
    writes or reads; ``running_readers`` read one that it writes; ``spent`` tells that a target knows it from before.
    """
    owned = {slot.slot_id: (slot.owner_id, slot.epoch) for slot in slots}
    current = all(owned.get(slot) == (occurrence.occurrence_id, epoch) for slot, epoch in new.writes)
    digests = (new.binding.pack_digest, new.binding.plan_digest)
    of_this = run_occurrence in (None, occurrence.occurrence_id)
    is_newest = newest_try is None or newest_try < new.binding.airflow.try_number
    return (
        unmet(
            str(new),
            (RUN_OF_THIS_OCCURRENCE, of_this, f"an earlier attempt of the run under occurrence {run_occurrence}"),
            (ACTIVE_ONLY, occurrence.state is OccurrenceState.ACTIVE, occurrence),
            (DIGESTS_AS_REQUESTED, digests == requested_digests, "other digests"),
            (NOT_SUPERSEDED, is_newest, f"try {newest_try} already admitted"),
            (NOT_SPENT, not spent, "a receipt or a staged table of it"),
            (EPOCHS_CURRENT, current, "another owner or epoch"),
            (NO_LIVE_WRITER, not live_writers, _names(live_writers)),
            (NO_RUNNING_READER, not running_readers, _names(running_readers)),
        )
        or new
    )


def require_running(attempt: Attempt) -> Refused | None:
    """Refuse unless the attempt is RUNNING: what JOURNALED, READY and DELIVERED need under its row's lock."""
    return unmet(str(attempt), (RUNNING_ONLY, attempt.state is AttemptState.RUNNING, attempt.state))


def seal(attempt: Attempt, outcome: AttemptState, *, gates: Sequence[Gate], proof: Proof | None) -> Attempt | Refused:
    """RUNNING → an end state, with every gate CLOSED and an outcome proof that was read after them."""
    return unmet(
        str(attempt),
        (RUNNING_ONLY, attempt.state is AttemptState.RUNNING, attempt.state),
        *_closed_and_proven(attempt, gates, proof),
    ) or replace(attempt, state=_end(outcome))


def reconcile(
    attempt: Attempt, outcome: AttemptState, *, gates: Sequence[Gate], proof: Proof | None
) -> Attempt | Refused:
    """COMMIT_UNKNOWN → SUCCEEDED | FAILED, by evidence that was entered after the gates were CLOSED."""
    return unmet(
        str(attempt),
        (UNKNOWN_ONLY, attempt.state is AttemptState.COMMIT_UNKNOWN, attempt.state),
        (NO_UNKNOWN, outcome is not AttemptState.COMMIT_UNKNOWN, outcome),
        *_closed_and_proven(attempt, gates, proof),
    ) or replace(attempt, state=_end(outcome))


def _closed_and_proven(
    attempt: Attempt, gates: Sequence[Gate], proof: Proof | None
) -> tuple[tuple[Guard, bool, object], ...]:
    by_service = {gate.service_id for gate in gates}
    missing = [service for service in attempt.services if service not in by_service]
    open_gates = [gate for gate in gates if gate.state is not GateState.CLOSED]
    proven = (
        proof is not None
        and proof.kind is ProofKind.OUTCOME
        and proof.attempt_id == attempt.attempt_id
        and set(proof.names_gates) == {gate.principal.gate_name for gate in gates}
        and all(gate.closed_sequence is None or gate.closed_sequence < proof.ledger_sequence for gate in gates)
    )
    return (
        (GATE_PER_SERVICE, not missing, f"no gate row for service {', '.join(missing)}"),
        (GATES_CLOSED, not open_gates, ", ".join(str(gate) for gate in open_gates)),
        (PROOF_AFTER_GATES, proven, proof),
    )


def _end(outcome: AttemptState) -> AttemptState:
    if outcome is AttemptState.RUNNING:
        raise ValueError("RUNNING is not an end state")
    return outcome


def _names(attempts: Sequence[Attempt]) -> str:
    return ", ".join(str(attempt) for attempt in attempts)
