"""``dpone.composition-activation-receipt.v1``: what prepare gave an occurrence."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dpone_provider.documents.model import Document, Part, ordered
from dpone_provider.documents.scalars import Digest, Name, OccurrenceId, Positive, SlotId
from dpone_provider.domain.occurrence import OccurrenceState


class SlotEpoch(Part):
    """A slot at the epoch at which the occurrence gained it."""

    slot_id: SlotId
    epoch: Positive


SlotEpochs = Annotated[
    tuple[SlotEpoch, ...], AfterValidator(lambda them: ordered(them, lambda each: each.slot_id, "slot"))
]


class CompositionActivationReceiptV1(Document):
    """The exact (slot, epoch) pairs that an occurrence holds, and the environment's generation."""

    schema_id: Literal["dpone.composition-activation-receipt.v1"] = Field(
        default="dpone.composition-activation-receipt.v1", alias="schema"
    )
    request_digest: Digest
    occurrence_id: OccurrenceId
    environment: Name
    state: OccurrenceState
    generation: Positive
    epochs: SlotEpochs = Field(min_length=1)
