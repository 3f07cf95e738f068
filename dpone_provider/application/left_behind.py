"""What stands at a written name and is ours although its slot is not registered: what a forgotten time left.

A restored database is another life of itself, whose slots are new; a ledger that went back has forgotten what it
registered. Either way an object at such a name, under a writer role of ours, was made by a workload of ours.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpone_provider.application.ports.ledger import LedgerTransaction
from dpone_provider.domain.identity import Incarnation, Relation, slot_id


def left_behind(incarnation: Incarnation, classes: Iterable[Relation], tx: LedgerTransaction) -> frozenset[Relation]:
    """Return the relation classes that were registered in another life of the database, or whose slots a target knew
    when the ledger was readmitted."""
    ids = {slot_id(incarnation.incarnation_id, one): one for one in classes}
    known = tx.epoch_floors(ids)
    return frozenset(tx.registered_before(incarnation)) | frozenset(ids[one] for one in known)
