"""The occurrence: one activation of one deployment in one environment.

``REQUESTED → PREPARED → ACTIVE → RETIRING → RETIRED``; ``REQUESTED → WITHDRAWN``; ``PREPARED → RETIRING``.
Transitions are pure: they take the record, and what the ledger's transaction read under its locks, and return the new
record or a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from dpone_provider.domain.guards import guard, unmet
from dpone_provider.domain.identity import Digest, OccurrenceId
from dpone_provider.domain.outcomes import Refused
from dpone_provider.domain.readmission import Readmission, require_open


class OccurrenceState(StrEnum):
    """The closed set of states."""

    REQUESTED = "REQUESTED"
    PREPARED = "PREPARED"
    ACTIVE = "ACTIVE"
    RETIRING = "RETIRING"
    RETIRED = "RETIRED"
    WITHDRAWN = "WITHDRAWN"


PENDING = frozenset({OccurrenceState.REQUESTED, OccurrenceState.PREPARED})
HOLDING = frozenset({OccurrenceState.PREPARED, OccurrenceState.ACTIVE, OccurrenceState.RETIRING})
FINAL = frozenset({OccurrenceState.RETIRED, OccurrenceState.WITHDRAWN})

EDGES = frozenset(
    {
        (OccurrenceState.REQUESTED, OccurrenceState.PREPARED),
        (OccurrenceState.REQUESTED, OccurrenceState.WITHDRAWN),
        (OccurrenceState.PREPARED, OccurrenceState.ACTIVE),
        (OccurrenceState.PREPARED, OccurrenceState.RETIRING),
        (OccurrenceState.ACTIVE, OccurrenceState.RETIRING),
        (OccurrenceState.RETIRING, OccurrenceState.RETIRED),
    }
)
"""Every edge that exists; the ledger's trigger holds the same table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One row of the ledger. ``generation`` is set by prepare; ``predecessor_id`` is what the request expected."""

    occurrence_id: OccurrenceId
    environment: str
    deployment_id: Digest
    release_id: Digest
    request_digest: Digest
    predecessor_id: OccurrenceId | None
    state: OccurrenceState
    generation: int | None = None

    def __post_init__(self) -> None:
        """Refuse a record that no history gives: a generation exists exactly from PREPARED on."""
        never_prepared = self.state in (OccurrenceState.REQUESTED, OccurrenceState.WITHDRAWN)
        if (self.generation is None) != never_prepared:
            raise ValueError(f"occurrence {self.occurrence_id}: state {self.state} with generation {self.generation}")
        if self.predecessor_id == self.occurrence_id:
            raise ValueError(f"occurrence {self.occurrence_id} precedes itself")

    def __str__(self) -> str:
        """Return a name for messages."""
        return f"occurrence {self.occurrence_id} ({self.state}) of environment {self.environment}"


REQUESTED_ONLY = guard(
    "occurrence_is_requested", "I2", "I15", says="a REQUESTED occurrence", next_command="dpone occurrence list"
)
PREPARED_ONLY = guard(
    "occurrence_is_prepared", "I12", says="a PREPARED occurrence", next_command="dpone occurrence list"
)
ACTIVE_ONLY = guard("occurrence_is_active", "I5", says="an ACTIVE occurrence", next_command="dpone occurrence list")
RETIRING_ONLY = guard(
    "occurrence_is_retiring", "I1", says="a RETIRING occurrence", next_command="dpone occurrence list"
)
NO_PENDING = guard(
    "no_other_pending",
    "I15",
    says="no other REQUESTED or PREPARED occurrence in the environment",
    next_command="run its cache-sync again to finish it, or `dpone occurrence withdraw ID` to drop it",
)
EXPECTED_PREDECESSOR = guard(
    "predecessor_is_holder",
    "I2",
    "I15",
    says="the environment's holder as the expected predecessor",
    next_command="dpone status, then run cache-sync again with the right --expect-current",
)
DRAIN_FOR_PREDECESSOR = guard(
    "drained_by_its_successor",
    "I5",
    says="a REQUESTED occurrence that names this one as its predecessor",
    next_command="run cache-sync again",
)
NO_UNKNOWN = guard(
    "no_commit_unknown",
    "I10",
    says="no attempt in COMMIT_UNKNOWN",
    next_command="dpone attempt list --unresolved, then `dpone attempt reconcile ID` for each",
)
DRAINED = guard(
    "no_live_attempt",
    "I3",
    "I11",
    says="no RUNNING or COMMIT_UNKNOWN attempt",
    next_command="dpone status; wait, or `dpone recover`",
)
PREDECESSOR_STOPPED = guard(
    "predecessor_takes_no_work",
    "I2",
    "I5",
    says="a predecessor that is RETIRING or RETIRED",
    next_command="run cache-sync again",
)
POINTER_NAMES_IT = guard(
    "pointer_names_it",
    "I12",
    says="a current pointer that names this occurrence",
    next_command="run cache-sync again",
)
HOLDER_IS_IT = guard(
    "environment_held_by_it", "I15", says="the occurrence that holds the environment", next_command="dpone status"
)


def request(new: Occurrence, *, holder: OccurrenceId | None, pending: Occurrence | None) -> Occurrence | Refused:
    """Accept ``new`` into the ledger: nothing else is pending and it names the holder as its predecessor."""
    return (
        unmet(
            str(new),
            (REQUESTED_ONLY, new.state is OccurrenceState.REQUESTED, new.state),
            (NO_PENDING, pending is None, pending),
            (EXPECTED_PREDECESSOR, new.predecessor_id == holder, f"holder {holder}, expected {new.predecessor_id}"),
        )
        or new
    )


def drain(predecessor: Occurrence, *, successor: Occurrence, unknown_attempts: int) -> Occurrence | Refused:
    """ACTIVE → RETIRING for a successor whose row is locked and still REQUESTED."""
    named = successor.state is OccurrenceState.REQUESTED and successor.predecessor_id == predecessor.occurrence_id
    return unmet(
        str(predecessor),
        (ACTIVE_ONLY, predecessor.state is OccurrenceState.ACTIVE, predecessor.state),
        (DRAIN_FOR_PREDECESSOR, named, successor),
        (NO_UNKNOWN, unknown_attempts == 0, f"{unknown_attempts} in COMMIT_UNKNOWN"),
    ) or replace(predecessor, state=OccurrenceState.RETIRING)


def begin_retirement(occurrence: Occurrence, *, unknown_attempts: int) -> Occurrence | Refused:
    """ACTIVE → RETIRING by an operator's word, without a successor."""
    return unmet(
        str(occurrence),
        (ACTIVE_ONLY, occurrence.state is OccurrenceState.ACTIVE, occurrence.state),
        (NO_UNKNOWN, unknown_attempts == 0, f"{unknown_attempts} in COMMIT_UNKNOWN"),
    ) or replace(occurrence, state=OccurrenceState.RETIRING)


def prepare(
    occurrence: Occurrence, *, predecessor: Occurrence | None, holder: OccurrenceId | None, live: int, generation: int
) -> Occurrence | Refused:
    """REQUESTED → PREPARED: the predecessor takes no work and nothing of it lives.

    ``live`` counts the predecessor's RUNNING and COMMIT_UNKNOWN attempts, ``generation`` is the environment's next.
    """
    stopped = predecessor is None or predecessor.state in (OccurrenceState.RETIRING, OccurrenceState.RETIRED)
    expected = predecessor.occurrence_id if predecessor else None
    still_holder = holder in (None, expected)
    return unmet(
        str(occurrence),
        (REQUESTED_ONLY, occurrence.state is OccurrenceState.REQUESTED, occurrence.state),
        (EXPECTED_PREDECESSOR, still_holder and expected == occurrence.predecessor_id, f"holder {holder}"),
        (PREDECESSOR_STOPPED, stopped, predecessor),
        (DRAINED, live == 0, f"{live} live attempts of {predecessor}"),
    ) or replace(occurrence, state=OccurrenceState.PREPARED, generation=generation)


def activate(
    occurrence: Occurrence, *, pointed_at: OccurrenceId | None, holder: OccurrenceId | None
) -> Occurrence | Refused:
    """PREPARED → ACTIVE, only if the pointer names this occurrence and it holds the environment."""
    return unmet(
        str(occurrence),
        (PREPARED_ONLY, occurrence.state is OccurrenceState.PREPARED, occurrence.state),
        (HOLDER_IS_IT, holder == occurrence.occurrence_id, f"holder {holder}"),
        (POINTER_NAMES_IT, pointed_at == occurrence.occurrence_id, f"pointer at {pointed_at}"),
    ) or replace(occurrence, state=OccurrenceState.ACTIVE)


def withdraw(occurrence: Occurrence) -> Occurrence | Refused:
    """REQUESTED → WITHDRAWN: it never owned anything."""
    return unmet(
        str(occurrence), (REQUESTED_ONLY, occurrence.state is OccurrenceState.REQUESTED, occurrence.state)
    ) or replace(occurrence, state=OccurrenceState.WITHDRAWN)


def abandon(occurrence: Occurrence) -> Occurrence | Refused:
    """PREPARED → RETIRING, before it became ACTIVE."""
    return unmet(
        str(occurrence), (PREPARED_ONLY, occurrence.state is OccurrenceState.PREPARED, occurrence.state)
    ) or replace(occurrence, state=OccurrenceState.RETIRING)


def retire(occurrence: Occurrence, *, live: int) -> Occurrence | Refused:
    """RETIRING → RETIRED, when none of its attempts is RUNNING or COMMIT_UNKNOWN."""
    return unmet(
        str(occurrence),
        (RETIRING_ONLY, occurrence.state is OccurrenceState.RETIRING, occurrence.state),
        (DRAINED, live == 0, f"{live} live attempts"),
    ) or replace(occurrence, state=OccurrenceState.RETIRED)


_STOPPED = {
    OccurrenceState.REQUESTED: OccurrenceState.WITHDRAWN,
    OccurrenceState.PREPARED: OccurrenceState.RETIRING,
    OccurrenceState.ACTIVE: OccurrenceState.RETIRING,
}


def readmit(occurrence: Occurrence, *, opened: Readmission | None) -> Occurrence | Refused:
    """REQUESTED → WITHDRAWN, PREPARED | ACTIVE → RETIRING, inside an open readmission; whoever has stopped stays so.

    Attempts that live do not keep an occurrence ACTIVE here: nobody knows what they have done.
    """
    after = _STOPPED.get(occurrence.state, occurrence.state)
    return require_open(str(occurrence), opened) or replace(occurrence, state=after)
