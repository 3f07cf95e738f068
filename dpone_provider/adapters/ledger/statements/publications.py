"""Publications."""

from __future__ import annotations

from sqlalchemy import select

from dpone_provider.adapters.ledger.locks import lockable, read
from dpone_provider.adapters.ledger.statements.build import add, is_id, move
from dpone_provider.adapters.ledger.tables import PUBLICATION
from dpone_provider.domain.publication import SETTLED

PUBLICATION_ROW = lockable(
    "read publication",
    select(PUBLICATION).where(is_id(PUBLICATION.c.attempt_id)),
    PUBLICATION,
    "publication_pkey (attempt_id)",
)
UNRESOLVED = read(
    "read unresolved publication",
    select(PUBLICATION).where(is_id(PUBLICATION.c.slot_id), PUBLICATION.c.state.not_in(sorted(SETTLED))),
)
ADD_PUBLICATION = add(PUBLICATION)
MOVE_PUBLICATION = move(PUBLICATION, ["attempt_id"], ["state", "rows", "content_digest"])
