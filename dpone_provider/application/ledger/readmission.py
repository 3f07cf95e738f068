"""The transactions of a readmission: begin, enter a stray, seal as unknown, settle, end; and those of a forgetting.

Each takes the authority's lock first, exclusively: no other transaction of the ledger is open beside it. Between them
the open readmission keeps the others out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpone_provider.application.ledger import sealing
from dpone_provider.application.ledger.burial import EvidenceOf, bury_all
from dpone_provider.application.ledger.retirement import retire
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.ledger import LedgerTransaction, Lock
from dpone_provider.application.ports.readmission import AuthorityStanding, StrayGate
from dpone_provider.domain import occurrence as occurrences
from dpone_provider.domain import publication as publications
from dpone_provider.domain.attempt import Attempt, AttemptState
from dpone_provider.domain.identity import AttemptId, GateName, SlotId
from dpone_provider.domain.occurrence import FINAL, Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Refused, refuse, unwind
from dpone_provider.domain.readmission import Burial, Readmission, require_open


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What targets, their receipts and the pointers show: the highest epochs and generations, and every attempt id.

    ``generations`` are those of one machine's pointers. ``mark`` is the highest of a target: every promotion takes more
    than one number of the ledger, and tells one to its targets before a pointer names it, on whichever machine; so no
    pointer of any machine names a generation above the highest mark.
    """

    epochs: tuple[tuple[SlotId, int], ...]
    generations: tuple[tuple[str, int], ...]
    attempts: tuple[AttemptId, ...]
    mark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What settling moved: occurrences as they stand now, and the ids that were entered as spent."""

    occurrences: tuple[Occurrence, ...]
    spent: tuple[AttemptId, ...]


MANY = 1_000_000
"""More than an authority ever has of what is still live."""


def begin(tx: LedgerTransaction, wanted: Readmission) -> Readmission | Refused:
    """Nothing → open, or the open one again.

    ``wanted`` says kind, reason and who; from which incarnation to which is read here.
    """
    standing = tx.lock_authority()
    opened = standing.opened
    if opened is not None and opened.kind is not wanted.kind:
        return _another_kind(standing, opened)
    if opened is None or opened.incarnation != standing.observed:
        opened = replace(wanted, from_incarnation=standing.recorded, incarnation=standing.observed)
        tx.add_readmission(opened)
    return opened


def go_above(tx: LedgerTransaction, opened: Readmission, mark: int) -> None:
    """Let the next number be above ``mark``, the highest that a target has seen; only once the readmission is open.

    PostgreSQL's sequences are in no transaction: raised in the one that opens it, and then rolled back, nothing would
    show any more that the ledger went back.
    """
    _required(tx, opened)
    tx.raise_sequence(mark)


def enter_stray(tx: LedgerTransaction, opened: Readmission, stray: StrayGate) -> None:
    """Enter a login that the ledger does not know as closed for good."""
    _required(tx, opened)
    tx.add_stray(opened, stray)


def seal_unknown(
    tx: LedgerTransaction, opened: Readmission, attempt_id: AttemptId, verdict: Verdict
) -> Attempt | Refused:
    """RUNNING → COMMIT_UNKNOWN, its publication with it: the ledger may have forgotten what it did."""
    _required(tx, opened)
    tx.attempt(attempt_id, Lock.UPDATE)
    publication = tx.publication(attempt_id, Lock.UPDATE)
    if publication is not None:
        doubted = publications.doubt(publication, opened=opened, burial=None)
        if isinstance(doubted, Refused):
            return doubted
        if doubted != publication:
            tx.move_publication(publication, doubted)
    return sealing.seal(tx, attempt_id, verdict)


def settle(tx: LedgerTransaction, opened: Readmission, seen: Seen) -> Settled | Refused:
    """Stop every occurrence, go above what was seen, and become the authority that the readmission names."""
    _required(tx, opened)
    moved: list[Occurrence] = []
    for one in _standing_occurrences(tx):
        after = occurrences.readmit(one, opened=opened)
        if isinstance(after, Refused):
            return after
        if after != one:
            tx.move_occurrence(one, after)
            moved.append(after)
        if one.state is OccurrenceState.REQUESTED:
            tx.drop_claims(one.occurrence_id)
    tx.add_floors(opened, seen.epochs, _generations(tx, seen))
    spent = tx.unknown_of(seen.attempts)
    tx.add_spent(opened, spent)
    tx.move_authority(opened)
    return Settled(occurrences=tuple(moved), spent=spent)


def end(tx: LedgerTransaction, opened: Readmission) -> Readmission:
    """Open → ended: from its commit on the ledger lets everybody in again."""
    _required(tx, opened)
    tx.end_readmission(opened)
    return opened


def forget(tx: LedgerTransaction, opened: Readmission, evidence_of: EvidenceOf) -> Settled | Refused:
    """Give up everything that a copy believes about targets, in one transaction, without asking any of them.

    Every service is buried, every live attempt becomes FAILED by the recorded judgement that it is not this ledger's,
    every occurrence ends, and the authority takes the readmission's id: no target names it.
    """
    _required(tx, opened)
    for service_id in tx.services():
        burial = Burial(service_id=service_id, because=opened.because, by=opened.by)
        buried = bury_all(tx, burial, evidence_of)
        if isinstance(buried, Refused):
            return buried
    refused = _fail_all(tx, opened, evidence_of)
    if refused is not None:
        return refused
    moved: list[Occurrence] = []
    for one in _standing_occurrences(tx):
        ended = _ended(tx, one, opened)
        if isinstance(ended, Refused):
            return ended
        moved.append(ended)
    tx.move_authority(opened)
    return Settled(occurrences=tuple(moved), spent=())


def _ended(tx: LedgerTransaction, one: Occurrence, opened: Readmission) -> Occurrence | Refused:
    stopped = occurrences.readmit(one, opened=opened)
    if isinstance(stopped, Refused):
        return stopped
    if stopped != one:
        tx.move_occurrence(one, stopped)
    if one.state is OccurrenceState.REQUESTED:
        tx.drop_claims(one.occurrence_id)
        return stopped
    return retire(tx, one.occurrence_id)


def _fail_all(tx: LedgerTransaction, opened: Readmission, evidence_of: EvidenceOf) -> Refused | None:
    live = tx.attempts(environment=None, unresolved_only=True, limit=MANY)
    for one in sorted(live, key=lambda each: each.attempt_id):
        names = tuple(gate.principal.gate_name for gate in tx.gates(one.attempt_id))
        for outcome in (AttemptState.COMMIT_UNKNOWN, AttemptState.FAILED):
            ended = _judged(tx, opened, one, names, outcome, evidence_of)
            if isinstance(ended, Refused):
                return ended
            one = ended
    return None


def _judged(
    tx: LedgerTransaction,
    opened: Readmission,
    attempt: Attempt,
    names: tuple[GateName, ...],
    outcome: AttemptState,
    evidence_of: EvidenceOf,
) -> Attempt | Refused:
    evidence = evidence_of(attempt, names, outcome)
    if outcome is AttemptState.COMMIT_UNKNOWN:
        return seal_unknown(
            tx, opened, attempt.attempt_id, Verdict(outcome=outcome, evidence=evidence, names_gates=names)
        )
    published = tx.publication(attempt.attempt_id, Lock.NONE)
    verdict = Verdict(
        outcome=outcome,
        evidence=evidence,
        names_gates=names,
        publication=None if published is None else publications.PublicationState.NOT_PUBLISHED,
        staged_object_gone=True,
    )
    return sealing.reconcile(tx, attempt.attempt_id, verdict)


def _standing_occurrences(tx: LedgerTransaction) -> list[Occurrence]:
    """Return the occurrences that have not ended, each locked, in id order."""
    found = sorted(one.occurrence_id for one in tx.occurrences(None) if one.state not in FINAL)
    locked = (tx.occurrence(one, Lock.EXCLUSIVE) for one in found)
    return [one for one in locked if one is not None]


def running(tx: LedgerTransaction) -> tuple[Attempt, ...]:
    """Return every RUNNING attempt of every environment, oldest first."""
    live = tx.attempts(environment=None, unresolved_only=True, limit=MANY)
    return tuple(one for one in reversed(live) if one.state is AttemptState.RUNNING)


def _generations(tx: LedgerTransaction, seen: Seen) -> tuple[tuple[str, int], ...]:
    """Return the floor of every environment that the ledger or a pointer knows."""
    floors = {one.environment: seen.mark for one in tx.occurrences(None)}
    floors |= {name: max(generation, seen.mark) for name, generation in seen.generations}
    return tuple(sorted((name, floor) for name, floor in floors.items() if floor > 0))


def _required(tx: LedgerTransaction, wanted: Readmission) -> None:
    """Lock the authority, and refuse unless ``wanted`` is the open readmission.

    Raises:
        DponeError: Refused ``readmission_is_open``.
    """
    opened = tx.lock_authority().opened
    is_it = opened if opened is not None and opened.readmission_id == wanted.readmission_id else None
    refused = require_open(str(wanted), is_it)
    if refused is not None:
        unwind(refused)


def _another_kind(standing: AuthorityStanding, opened: Readmission) -> Refused:
    return refuse(
        "readmission_of_another_kind",
        f"control authority {standing.authority_id}",
        found=f"{opened}, which has not ended",
        allowed=f"dpone control {opened.kind}, to its end",
        next_command=f"dpone control {opened.kind} --because TEXT",
    )
