"""``dpone.composition-attempt-proof.v1``: what was observed of an attempt, and what it proves."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from dpone_provider.documents.canonical import canonical_digest
from dpone_provider.documents.model import Document, Part, invalid, ordered
from dpone_provider.documents.scalars import AttemptId, Digest, Instant, ServiceId, ShortText
from dpone_provider.domain.attempt import AttemptState, ProofKind
from dpone_provider.domain.identity import GateName


class Observation(Part):
    """One thing that was read, in words or as a number written as text. Never a secret."""

    name: ShortText
    value: Annotated[str, Field(max_length=10_000)]


class NamedGate(Part):
    """A gate: the service, and the name of the attempt's login there. Two services may know the same name."""

    service_id: ServiceId
    principal: ShortText

    @classmethod
    def of(cls, name: GateName) -> NamedGate:
        """Write ``name``."""
        return cls(service_id=name.service_id, principal=name.principal)


class Judgement(Part):
    """An operator's word where evidence is missing or says otherwise. ``by`` is the ledger's own login."""

    because: ShortText
    by: ShortText


class CompositionAttemptProofV1(Document):
    """Evidence. ``evidence_digest`` is over the canonical form of ``observed``; ``outcome`` is null for GATES_CLOSED.

    ``names_gates`` are the gates whose closing the observation followed (OUTCOME) or shows (GATES_CLOSED).
    """

    schema_id: Literal["dpone.composition-attempt-proof.v1"] = Field(
        default="dpone.composition-attempt-proof.v1", alias="schema"
    )
    kind: ProofKind
    attempt_id: AttemptId
    names_gates: Annotated[
        tuple[NamedGate, ...],
        AfterValidator(lambda them: ordered(them, lambda each: (each.service_id, each.principal), "gate")),
    ]
    outcome: AttemptState | None = None
    observed: tuple[Observation, ...]
    evidence_digest: Digest
    observed_at: Instant
    judgement: Judgement | None = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> CompositionAttemptProofV1:
        if self.evidence_digest != observations_digest(self.observed):
            raise invalid("the digest of what was observed")
        if (self.kind is ProofKind.OUTCOME) != (self.outcome is not None):
            raise invalid("an outcome with kind OUTCOME, and only with it")
        if self.outcome is AttemptState.RUNNING:
            raise invalid("an end state as outcome")
        return self


def observations_digest(observed: tuple[Observation, ...]) -> Digest:
    """Return the digest over the canonical form of some observations, in their order."""
    return canonical_digest([{"name": each.name, "value": each.value} for each in observed])
