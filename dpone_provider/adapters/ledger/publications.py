"""Publications."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from dpone_provider.adapters.ledger.session import Session, unmoved
from dpone_provider.adapters.ledger.statements import publications as sql
from dpone_provider.application.ports.ledger import Lock
from dpone_provider.domain.identity import AttemptId, Digest, ServiceId, SlotId
from dpone_provider.domain.publication import Publication, PublicationState, Verb


class PublicationRows:
    """The part of ``LedgerTransaction`` that is about publications."""

    session: Session

    def publication(self, attempt_id: AttemptId, lock: Lock) -> Publication | None:
        """Return the attempt's publication."""
        row = self.session.row(sql.PUBLICATION_ROW[lock], id_attempt_id=attempt_id)
        return None if row is None else publication_of_row(row)

    def unresolved_publication(self, slot_id: SlotId) -> Publication | None:
        """Return the publication of the slot that is not settled."""
        row = self.session.row(sql.UNRESOLVED, id_slot_id=slot_id)
        return None if row is None else publication_of_row(row)

    def add_publication(self, publication: Publication) -> None:
        """Insert an INTENDED publication."""
        values = {
            "attempt_id": publication.attempt_id,
            "slot_id": publication.slot_id,
            "service_id": publication.service_id,
            "epoch": publication.epoch,
            "verb": publication.verb.value,
            "staged_identity": publication.staged_identity,
            "target_identity": publication.target_identity,
            "definition_digest": publication.definition_digest,
            "state": publication.state.value,
            "rows": publication.rows,
            "content_digest": publication.content_digest,
        }
        self.session.add(sql.ADD_PUBLICATION, [values])

    def move_publication(self, before: Publication, after: Publication) -> None:
        """Change the state, and from INTENDED to STAGED the content's count and digest."""
        moved = replace(before, state=after.state, rows=after.rows, content_digest=after.content_digest)
        unmoved(before, after, moved == after)
        self.session.move(
            sql.MOVE_PUBLICATION,
            id_attempt_id=before.attempt_id,
            was_state=before.state.value,
            was_rows=before.rows,
            was_content_digest=before.content_digest,
            to_state=after.state.value,
            to_rows=after.rows,
            to_content_digest=after.content_digest,
        )


def publication_of_row(row: Row[Any]) -> Publication:
    """Return the publication of a row of ``publication``."""
    return Publication(
        attempt_id=AttemptId(row.attempt_id),
        slot_id=SlotId(row.slot_id),
        service_id=ServiceId(row.service_id),
        epoch=row.epoch,
        verb=Verb(row.verb),
        staged_identity=row.staged_identity,
        target_identity=row.target_identity,
        definition_digest=Digest(row.definition_digest),
        state=PublicationState(row.state),
        rows=row.rows,
        content_digest=row.content_digest,
    )
