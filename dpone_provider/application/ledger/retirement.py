"""The transactions that end an occurrence without a successor: begin retirement, abandon, retire."""

from __future__ import annotations

from dataclasses import replace

from dpone_provider.application.ledger.promotion import required_occurrence
from dpone_provider.application.ports.ledger import LedgerTransaction, Lock
from dpone_provider.domain import occurrence as occurrences
from dpone_provider.domain import slot as slots
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.identity import OccurrenceId
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Refused


def begin_retirement(tx: LedgerTransaction, occurrence_id: OccurrenceId) -> Occurrence | Refused:
    """ACTIVE → RETIRING by an operator's word."""
    occurrence = required_occurrence(tx, occurrence_id, Lock.EXCLUSIVE)
    if occurrence.state in (OccurrenceState.RETIRING, OccurrenceState.RETIRED):
        return occurrence
    unknown = sum(one.state is AttemptState.COMMIT_UNKNOWN for one in tx.live_attempts(occurrence_id))
    return _moved(tx, occurrence, occurrences.begin_retirement(occurrence, unknown_attempts=unknown))


def abandon(tx: LedgerTransaction, occurrence_id: OccurrenceId) -> Occurrence | Refused:
    """PREPARED → RETIRING, before it became ACTIVE."""
    occurrence = required_occurrence(tx, occurrence_id, Lock.EXCLUSIVE)
    if occurrence.state in (OccurrenceState.RETIRING, OccurrenceState.RETIRED):
        return occurrence
    return _moved(tx, occurrence, occurrences.abandon(occurrence))


def retire(tx: LedgerTransaction, occurrence_id: OccurrenceId) -> Occurrence | Refused:
    """RETIRING → RETIRED: its slots are released and the environment is held by nobody."""
    name = required_occurrence(tx, occurrence_id, Lock.NONE).environment
    environment = tx.environment(name, Lock.UPDATE)
    occurrence = required_occurrence(tx, occurrence_id, Lock.EXCLUSIVE)
    if occurrence.state is OccurrenceState.RETIRED:
        return occurrence
    decided = occurrences.retire(occurrence, live=len(tx.live_attempts(occurrence_id)))
    if isinstance(decided, Refused):
        return decided
    for slot in tx.slots(tx.slots_owned_by(occurrence_id), Lock.EXCLUSIVE):
        released = slots.release(slot, by=occurrence_id)
        if isinstance(released, Refused):
            return released
        tx.move_slot(slot, released)
    if environment is not None and environment.holder_id == occurrence_id:
        tx.move_environment(environment, replace(environment, holder_id=None))
    tx.move_occurrence(occurrence, decided)
    return decided


def _moved(tx: LedgerTransaction, before: Occurrence, after: Occurrence | Refused) -> Occurrence | Refused:
    if isinstance(after, Occurrence):
        tx.move_occurrence(before, after)
    return after
