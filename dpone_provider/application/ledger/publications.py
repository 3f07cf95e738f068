"""The transactions of a publication: intend, stage, dispatch. Settling belongs to the seal."""

from __future__ import annotations

from dpone_provider.application.ledger.gates import required_attempt
from dpone_provider.application.ports.ledger import LedgerTransaction, Lock
from dpone_provider.domain import publication as publications
from dpone_provider.domain.gate import NOT_YET_CLOSING, GateState
from dpone_provider.domain.guards import unmet
from dpone_provider.domain.identity import AttemptId
from dpone_provider.domain.outcomes import Refused, refuse, unwind
from dpone_provider.domain.publication import Publication, PublicationState


def intend(tx: LedgerTransaction, new: Publication) -> Publication | Refused:
    """Nothing → INTENDED, with both identities and the verb journaled before anything is created.

    Refused once the attempt's service is barred or its login is closing: whoever ends the attempt may have read already
    that nothing was intended.
    """
    attempt = required_attempt(tx, new.attempt_id, Lock.UPDATE)
    standing = tx.publication(new.attempt_id, Lock.NONE)
    if standing == new:
        return standing
    gate = tx.gate(new.attempt_id, new.service_id, Lock.NONE)
    still_open = gate is None or gate.state in (GateState.JOURNALED, GateState.READY)
    ending = unmet(str(new), (NOT_YET_CLOSING, still_open, gate))
    if ending is not None:
        return ending
    decided = publications.intend(new, attempt=attempt, unresolved=tx.unresolved_publication(new.slot_id))
    if isinstance(decided, Publication):
        tx.add_publication(decided)
    return decided


def stage(tx: LedgerTransaction, attempt_id: AttemptId, rows: int, content_digest: str) -> Publication | Refused:
    """INTENDED → STAGED, with what was counted and digested."""
    attempt = required_attempt(tx, attempt_id, Lock.UPDATE)
    publication = required_publication(tx, attempt_id, Lock.UPDATE)
    decided = publications.stage(publication, attempt=attempt, rows=rows, content_digest=content_digest)
    return _moved(tx, publication, decided)


def dispatch(tx: LedgerTransaction, attempt_id: AttemptId) -> Publication | Refused:
    """STAGED → DISPATCHED, while RUNNING and owning its slot; the one mutation is sent after this commit."""
    attempt = required_attempt(tx, attempt_id, Lock.UPDATE)
    peeked = required_publication(tx, attempt_id, Lock.NONE)
    owned = tx.slots((peeked.slot_id,), Lock.SHARE)
    owns = any(
        slot.owner_id == attempt.binding.occurrence_id and slot.epoch == dict(attempt.writes).get(slot.slot_id)
        for slot in owned
    )
    gate = tx.gate(attempt_id, peeked.service_id, Lock.NONE)
    publication = required_publication(tx, attempt_id, Lock.UPDATE)
    decided = publications.dispatch(
        publication, attempt=attempt, owns_slot=owns, writer_gate=gate.state if gate else None
    )
    return _moved(tx, publication, decided)


def standing(tx: LedgerTransaction, attempt_id: AttemptId) -> Publication:
    """Return the attempt's publication as it stands, unlocked.

    Raises:
        DponeError: Refused ``no_such_publication``.
    """
    return required_publication(tx, attempt_id, Lock.NONE)


def required_publication(tx: LedgerTransaction, attempt_id: AttemptId, lock: Lock) -> Publication:
    """Return the attempt's publication.

    Raises:
        DponeError: Refused ``no_such_publication``.
    """
    found = tx.publication(attempt_id, lock)
    if found is None:
        unwind(
            refuse(
                "no_such_publication",
                f"publication of attempt {attempt_id}",
                found="no such row in the ledger",
                allowed="a publication that was intended",
                next_command=f"dpone attempt show {attempt_id}",
            )
        )
    return found


def settled(
    tx: LedgerTransaction, attempt_id: AttemptId, outcome: PublicationState, *, staged_object_gone: bool
) -> Publication | Refused | None:
    """Settle the attempt's publication, if it has one; part of the seal's own transaction."""
    publication = tx.publication(attempt_id, Lock.UPDATE)
    if publication is None or publication.state is outcome:
        return publication
    return _moved(tx, publication, publications.settle(publication, outcome, staged_object_gone=staged_object_gone))


def _moved(tx: LedgerTransaction, before: Publication, after: Publication | Refused) -> Publication | Refused:
    if isinstance(after, Publication):
        tx.move_publication(before, after)
    return after
