"""``dpone.current-pointer.v1``: which deployment an environment shows; a projection of the ledger."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dpone_provider.documents.model import Document
from dpone_provider.documents.scalars import Digest, Instant, Name, OccurrenceId, Positive, ShortText


class CurrentPointerV1(Document):
    """The pointer. ``by`` is the ledger's own login; ``note`` is what the command line said, no evidence."""

    schema_id: Literal["dpone.current-pointer.v1"] = Field(default="dpone.current-pointer.v1", alias="schema")
    environment: Name
    deployment_id: Digest
    release_id: Digest
    occurrence_id: OccurrenceId
    generation: Positive
    at: Instant
    by: ShortText
    note: ShortText | None = None
