"""What stands in the ledger and in the cache, and what blocks what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpone_provider.application.ledger.calls import require
from dpone_provider.application.ports.cache import DeploymentCache
from dpone_provider.application.ports.ledger import EnvironmentRow, Ledger, LedgerTransaction, Lock
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.gate import Gate, GateState
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Failure, Refused
from dpone_provider.domain.publication import Publication

SECONDS = 30.0
MANY = 1_000
"""How many live attempts are shown, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveAttempt:
    """A live attempt with its gates and its publication."""

    attempt: Attempt
    gates: tuple[Gate, ...]
    publication: Publication | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Something that stops work until somebody acts: what, and the one next command."""

    what: str
    next_command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentStatus:
    """One environment at one instant. ``pointer`` is this machine's, or why it cannot be read.

    ``more_live`` tells that ``live`` are the newest of more, and ``blocks`` those of what is shown.
    """

    name: str
    row: EnvironmentRow | None
    pointer: CurrentPointerV1 | Failure | None
    occurrences: tuple[Occurrence, ...]
    live: tuple[LiveAttempt, ...]
    more_live: bool
    blocks: tuple[Block, ...]


def environment_status(
    ledger: Ledger,
    cache: DeploymentCache,
    clock: Clock,
    environment: str,
    went_back: Sequence[Refused] = (),
    *,
    most: int = MANY,
) -> EnvironmentStatus:
    """Read the status of one environment, also of a ledger that went back; that blocks everything else.

    Raises:
        DponeError: the ledger cannot be read.
    """
    deadline = Deadline.after(clock, SECONDS)
    row, occurrences, live = require(ledger, "read", lambda tx: _read(tx, environment, most + 1), deadline)
    more, live = len(live) > most, live[:most]
    pointer = cache.pointer(environment)
    return EnvironmentStatus(
        name=environment,
        row=row,
        pointer=pointer,
        occurrences=occurrences,
        live=live,
        more_live=more,
        blocks=(
            *_authority_blocks(went_back),
            *_occurrence_blocks(occurrences),
            *_attempt_blocks(live),
            *_pointer_blocks(occurrences, pointer),
        ),
    )


def _read(
    tx: LedgerTransaction, environment: str, most: int
) -> tuple[EnvironmentRow | None, tuple[Occurrence, ...], tuple[LiveAttempt, ...]]:
    live = tx.attempts(environment=environment, unresolved_only=True, limit=most)
    return (
        tx.environment(environment, Lock.NONE),
        tx.occurrences(environment),
        tuple(
            LiveAttempt(
                attempt=attempt,
                gates=tx.gates(attempt.attempt_id),
                publication=tx.publication(attempt.attempt_id, Lock.NONE),
            )
            for attempt in live
        ),
    )


def _authority_blocks(went_back: Sequence[Refused]) -> tuple[Block, ...]:
    problems = [one.problem for one in went_back]
    return tuple(
        Block(what=f"{one.reason}: {one.subject}, {one.found}", next_command=one.next_command) for one in problems
    )


def _occurrence_blocks(occurrences: tuple[Occurrence, ...]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for one in occurrences:
        match one.state:
            case OccurrenceState.REQUESTED:
                out = f"run its cache-sync again, or `dpone occurrence withdraw {one.occurrence_id}`"
            case OccurrenceState.PREPARED:
                out = f"run its cache-sync again, or `dpone occurrence abandon {one.occurrence_id}`"
            case OccurrenceState.RETIRING:
                out = f"run the successor's cache-sync again, or `dpone occurrence retire {one.occurrence_id}`"
            case OccurrenceState.ACTIVE | OccurrenceState.RETIRED | OccurrenceState.WITHDRAWN:
                continue
        blocks.append(Block(what=f"{one} is not finished", next_command=out))
    return tuple(blocks)


def _attempt_blocks(live: tuple[LiveAttempt, ...]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for one in live:
        attempt_id = one.attempt.attempt_id
        ending = any(gate.state in (GateState.CLOSING, GateState.CLOSED) for gate in one.gates)
        if one.attempt.state is AttemptState.COMMIT_UNKNOWN:
            blocks.append(
                Block(what=f"{one.attempt} keeps its slots", next_command=f"dpone attempt reconcile {attempt_id}")
            )
        elif ending:
            gates = ", ".join(str(gate) for gate in one.gates)
            what = f"{one.attempt} is being ended ({gates}); if nobody does it now, it stands still"
            blocks.append(Block(what=what, next_command=f"wait, or `dpone recover --attempt {attempt_id}`"))
    return tuple(blocks)


def _pointer_blocks(
    occurrences: tuple[Occurrence, ...], pointer: CurrentPointerV1 | Failure | None
) -> tuple[Block, ...]:
    active = next((one for one in occurrences if one.state is OccurrenceState.ACTIVE), None)
    match pointer:
        case _ if active is None:
            return ()
        case CurrentPointerV1(occurrence_id=named) if named == active.occurrence_id:
            return ()
        case CurrentPointerV1() | None:
            what = f"this machine's cache does not point at {active}"
        case failure:
            what = f"this machine's pointer cannot be read: {failure.problem}"
    return (Block(what=what, next_command="run cache-sync of its deployment here; it follows"),)
